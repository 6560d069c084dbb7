#!/usr/bin/env python3
"""usage: nodeset_compare.py RECORD.jsonl HOMING EMPTY_DIR [MAX]
Compares the answers in ClusterShell's own tests with those of `homing nodeset`. Prints a table; the status is 1 if one is wrong."""
import json, subprocess, sys, os, re, collections, random
rec, H, NOCONF = sys.argv[1:4]; most = int(sys.argv[4]) if len(sys.argv) > 4 else 10**9
rows = []
for l in open(rec):
    try: rows.append(json.loads(l))
    except ValueError: pass
random.Random(1).shuffle(rows)
n = collections.Counter(); bad = []
def run(args, stdin=None, conf=None):
    env = dict(os.environ); env.pop("HOMING_CLUSTER", None)
    env["CLUSTERSHELL_CFGDIR"] = conf or NOCONF
    p = subprocess.run([H, "nodeset"] + args, input=(stdin or "").encode(), capture_output=True, env=env, timeout=30)
    return p.returncode, p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace")
for r in rows:
    k = r["kind"]
    if n["all"] >= most: break
    if k in ("nodeset", "rangeset"):
        if r.get("res") == "True" or "@" in r["expr"]: n["aside: own resolver"] += 1; continue
        if r["expr"].startswith("-"): n["aside"] += 1; continue
        if "\n" in r["expr"]: n["aside"] += 1; continue
        R = ["-R"] if k == "rangeset" else []
        if "error" in r:
            n["all"] += 1
            rc, o, e = run(R + ["-f", r["expr"]])
            ok = rc != 0
            if not ok and "Empty" in r["error"]: n["documented: an empty range"] += 1; continue
            if not ok and (re.search(r"[0-9]{101}", r["expr"]) or (R and " " in r["expr"].strip())): n["documented: blanks in ranges, long numbers"] += 1; continue
            n["same" if ok else "wrong"] += 1
            if not ok: bad.append((k, "accepted what ClusterShell refuses", r["expr"], r["error"], o.strip()))
            continue
        if r["autostep"] not in ("None",): n["aside: autostep"] += 1; continue
        for mode, want in (("-f", r["str"]), ("-c", str(r["n"])), ("-e", " ".join(r["expand"]) if r.get("expand") is not None else None)):
            if want is None or (mode == "-e" and r["n"] > 2999): continue
            n["all"] += 1
            rc, o, e = run(R + [mode, r["expr"]])
            ok = rc == 0 and o.strip("\n") == want
            if not ok and not R and " " in r["expr"].strip(): n["documented: blanks separate node sets"] += 1; continue
            if not ok and re.search(r"\[-\d", r["expr"]) and "is not a range of numbers" in e: n["refused"] += 1; continue
            n["same" if ok else "wrong"] += 1
            if not ok: bad.append((k, mode, r["expr"], want[:300], (o or e).strip()[:300]))
    elif k.endswith("-op"):
        if r["a"] is None or r["b"] is None or "@" in r["a"] + r["b"]: n["aside"] += 1; continue
        if not r["a"] or not r["b"]: n["aside: empty"] += 1; continue
        R = ["-R"] if k.startswith("rangeset") else []
        flag = {"|": [], "&": ["-i"], "-": ["-x"], "^": ["-X"]}[r["op"]]
        n["all"] += 1
        rc, o, e = run(R + ["-f", r["a"]] + flag + [r["b"]])
        if r["str"] == "NotImplemented": n["aside: no answer in Python"] += 1; continue
        ok = rc == 0 and o.strip("\n") == r["str"]
        # The test has set an autostep before, which the recorder does not see: the same nodes, folded otherwise.
        if not ok and rc == 0 and "/" in r["str"] and run(R + ["-e", o.strip("\n")])[1] == run(R + ["-e", r["str"]])[1]:
            n["same, folded with steps"] += 1; continue
        n["same" if ok else "wrong"] += 1
        if not ok: bad.append((k, r["op"], (r["a"], r["b"]), r["str"][:300], (o or e).strip()[:300]))
    else:
        if r["conf"] == "resolver": n["aside: a resolver in Python"] += 1; continue
        if any(x.startswith("/tmp/") and not os.path.exists(x) for x in r["args"]): n["aside: a file that is gone"] += 1; continue
        n["all"] += 1
        rc, o, e = run(r["args"], r["stdin"], r["conf"])
        want = r["out"]
        leading = next((i for i, x in enumerate(r["args"]) if x in ("-x", "-i", "-X", "--exclude", "--intersection", "--xor")), None)
        lists = any(re.match(r"^-(l+|L+)$|^--list", x) for x in r["args"])
        if want is None or o == want: kind = "same" if (rc == 0) == (r["rc"] == 0) else "wrong"
        elif lists and sorted(o.split()) == sorted(want.split()): kind = "documented: the order of groups"
        elif rc != 0 and "\n  try: " in e: kind = "refused"
        elif leading is not None and not any(re.match(r"^[a-z@0-9]", x) for x in r["args"][:leading]): kind = "documented: an operation before the first set"
        else: kind = "wrong"
        n[kind] += 1
        if kind in ("wrong", "refused"): bad.append((kind, r["test"].split(".")[-1], r["args"], r["stdin"], "want %s %r" % (r["rc"], (want or "")[:200]), "got %s %r %s" % (rc, o[:200], e.strip()[:200])))
wrong = n.pop("wrong", 0)
for kind, count in sorted(n.items()): print("%6d  %s" % (count, kind))
print("%6d  wrong" % wrong)
for b in bad: print("       ", *b)
sys.exit(1 if wrong else 0)
