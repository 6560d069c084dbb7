"""A drawing for a benchmark's results: SVG by hand, readable in light and dark."""

import json

WIDE, TALL, LEFT, TOP, GAP = 640, 110, 60, 26, 52
STYLE = """text{font:12px sans-serif;fill:#777}.name{font-weight:bold}path{fill:none}
.grid{stroke:#8884}.limit{stroke:#d33;stroke-width:2}.moved{stroke:#38c;stroke-width:1.2}.stall{fill:#e902;stroke:#e90}"""


def limits(curves, path):
    """{device: events of a run} as one panel each: the limit, what the disks and links moved, pressure."""
    parts = [panel(name, events, n * (TALL + GAP)) for n, (name, events) in enumerate(curves.items())]
    height = len(parts) * (TALL + GAP) + TOP
    with open(path, "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE + LEFT + 20} {height}">\n'
                   f"<style>{STYLE}</style>\n{''.join(parts)}</svg>\n")


def panel(name, events, top):
    began = events[0]["at_ns"]
    length = (events[-1]["at_ns"] - began) / 1e9 or 1.0
    most = next((e["slots"] for e in events if e["event"] == "host_up"), 50)
    base = TOP + top + TALL

    def x(at_ns):
        return LEFT + (at_ns - began) / 1e9 / length * WIDE

    def y(share):
        return base - min(max(share, 0), 1) * TALL

    # Powers of two apart: 1 and 2 differ as much as 16 and 32 do.
    def height(limit):
        return (limit - 1).bit_length() / max((most - 1).bit_length(), 1) * 0.94 + 0.03

    out = [f'<text class="name" x="{LEFT}" y="{TOP + top - 8}">{name}: limit (red, powers of two), tasks ended '
           f"per second (blue), io pressure (orange)</text>\n"]
    for limit in (1, 4, 16, 50):
        if limit <= most:
            at = y(height(limit))
            out.append(f'<path class="grid" d="M{LEFT} {at:.0f}h{WIDE}"/>'
                       f'<text x="{LEFT - 8}" y="{at + 4:.0f}" text-anchor="end">{limit}</text>\n')
    for tick in range(5):
        out.append(f'<text x="{LEFT + WIDE * tick / 4:.0f}" y="{base + 16}" text-anchor="middle">'
                   f"{length * tick / 4:.1f} s</text>\n")
    out += [pressure(events, x, y, base), ended(events, began, length, y), line(events, x, y, height, most, base)]
    return "".join(out)


def line(events, x, y, height, most, base):
    limit = 1
    path = f"M{x(events[0]['at_ns']):.1f} {y(height(limit)):.1f}"
    for e in events:
        if e["event"] == "limit":
            limit = e["limit"] or most
            path += f"H{x(e['at_ns']):.1f}V{y(height(limit)):.1f}"
    return f'<path class="limit" d="{path}H{LEFT + WIDE}"/>\n'


def ended(events, began, length, y):
    bins = [0] * 40
    for e in events:
        if e["event"] == "task_ended":
            bins[min(int((e["at_ns"] - began) / 1e9 / length * 40), 39)] += 1
    most = max(bins) or 1
    path = f"M{LEFT} {y(bins[0] / most):.1f}" + "".join(
        f"V{y(n / most):.1f}h{WIDE / 40}" for n in bins)
    return f'<path class="moved" d="{path}"/>\n'


def pressure(events, x, y, base):
    samples = [e for e in events if e["event"] == "sample" and e["sample"]["io_some_us"] is not None]
    path = f"M{LEFT} {base}"
    for a, b in zip(samples, samples[1:]):
        took = (b["sample"]["at_ns"] - a["sample"]["at_ns"]) / 1e3
        share = (b["sample"]["io_some_us"] - a["sample"]["io_some_us"]) / max(took, 1)
        path += f"L{x(a['at_ns']):.1f} {y(share):.1f}L{x(b['at_ns']):.1f} {y(share):.1f}"
    return f'<path class="stall" d="{path}V{base}z"/>\n' if len(samples) > 1 else ""


def main(paths):
    """Redraws from journals: NAME=FILE..."""
    curves = {}
    for name, path in (word.split("=", 1) for word in paths[1:]):
        with open(path) as file:
            curves[name] = [json.loads(text) for text in file]
    limits(curves, paths[0])


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
