"""What the benchmarks share: the program under test, interleaved rounds, tables.

Every contender runs once a round, in the same order, so that a slow minute of
the machine meets all of them; ratios are formed within a round and their
median is shown.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = subprocess.run([os.path.join(ROOT, "tests/target")], capture_output=True, text=True, check=True).stdout.strip()
HOMING = os.environ.get("HOMING", os.path.join(TARGET, "release/homing"))


def need_homing():
    if not os.access(HOMING, os.X_OK):
        sys.exit(f"bench: {HOMING} is not there: make build, or set HOMING")
    return HOMING


def scratch():
    """A folder that goes away at exit, with a state folder of its own for homing."""
    folder = tempfile.TemporaryDirectory(prefix="homing-bench-")
    os.environ["XDG_STATE_HOME"] = os.path.join(folder.name, "state")
    return folder


def shell_for_ssh(folder):
    """A program in ssh's place that runs the command on this machine, whatever host it is for."""
    path = os.path.join(folder, "ssh")
    with open(path, "w") as script:
        script.write('#!/bin/sh\nfor last; do :; done\nexec env --default-signal sh -c "$last"\n')
    os.chmod(path, 0o755)
    return path


def workers(cache):
    """Processes of workers whose program lies below this folder: two a host, of which one waits for the other."""
    told = subprocess.run(["pgrep", "-f", "worker-"], capture_output=True, text=True).stdout.split()

    def is_below(pid):
        try:
            return os.readlink(f"/proc/{pid}/exe").startswith(os.path.realpath(cache))
        except OSError:
            return False

    return [int(pid) for pid in told if is_below(pid)]


def compile_c(source, folder):
    binary = os.path.join(folder, os.path.basename(source)[:-2])
    subprocess.run(["cc", "-O2", "-o", binary, os.path.join(ROOT, "bench", source), "-lpthread"], check=True)
    return binary


def installed(program):
    return shutil.which(program) is not None


def seconds(argv, stdin=None, **more):
    """Wall time of a command that has to succeed; its output is thrown away."""
    more.setdefault("stdout", subprocess.DEVNULL)
    more.setdefault("stderr", subprocess.DEVNULL)
    began = time.perf_counter()
    subprocess.run(argv, input=stdin, check=True, **more)
    return time.perf_counter() - began


def interleaved(contenders, rounds):
    """{name: function} -> {name: [result of each round]}"""
    results = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, measure in contenders.items():
            results[name].append(measure())
            print(f"{name}: {results[name][-1]}", file=sys.stderr, flush=True)
    return results


def ratio(results, name, base):
    """Median over the rounds of base's time / name's time: 1 is as fast, more is faster."""
    return statistics.median(b / a for a, b in zip(results[name], results[base]))


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
