#!/usr/bin/env python3
"""usage: parallel_tally.py [-v] CALLS.jsonl...   counts the calls by kind; -v prints each difference. The status is 1 if one is wrong."""
import json, sys, re, collections, os
V = "-v" in sys.argv
rows = [json.loads(l) for f in sys.argv[1:] if f != "-v" for l in open(f)]
SSH = re.compile(r"^(-S|--sshlogin|--sshloginfile|--slf|--transfer|--trc|--return|--cleanup|--basefile|--bf|--filter-hosts|--onall|--nonall|--tmux|--tmuxpane|--fg|--semaphore|--sem|--id|--sql|--sqlmaster|--sqlworker|--sqlandworker|--shuf|--citation|--bibtex|--version|-V|--minversion|--help|-h|--embed|--shellcompletion|--record-env|--session|--number-of-|--show-limits|--max-line-length-allowed|--_parset|--shebang|--hashbang|--gnu|--tty|--open-tty|-o|--tollef|--profile|-J|--latestline|--ll|--sshdelay|--controlmaster|-M|--limit|--memfree|--memsuspend|--load|--noswap|--eta|--progress|--bar|--zenity|--use-|--detectshell)(=|$|\S*)", )
def aside(r):
    a = r["args"]
    joined = " ".join(a)
    own = []
    for x in a:
        if x.startswith(":::"): break
        own.append(x)
    for i, x in enumerate(own):
        if x in ("-S", "--sshlogin") :
            return "other hosts"
        if re.match(r"^-S.", x) or re.match(r"^--(sshlogin|slf|sshloginfile|transfer|trc|return|cleanup|basefile|bf|filter-hosts|onall|nonall|transferfile|tf|sshdelay|controlmaster|wc|workdir=\.\.\.)", x): return "other hosts"
        if re.match(r"^--(tmux|sql|sem|fg|id\b|tollef|shebang|hashbang|_parset|embed|shellcompletion|record-env|session|citation|bibtex|version|minversion|help|number-of|show-limits|max-line-length|shellquote|shell-quote|tty|open-tty|memfree|memsuspend|load|noswap|limit|shuf|latest|ll|eta|progress|bar|zenity)", x) and not x.startswith("--session"): return "not eligible: " + x.split("=")[0]
        if x in ("-h", "-V", "-J", "-o", "-M", "--profile", "--session", "--plain"): return "not eligible: " + x
    if re.search(r"(^|\s)-S|sshlogin", r["env"]) or any("{host}" in x or "{hgrp}" in x or "{sshlogin}" in x for x in a): return "other hosts"
    if "--sshlogin takes" in r["h"]["err"]: return "other hosts"
    if r["stdout"] == "order" and "{%}" in joined: return "slots of tasks that end together"
    if any(re.match(r"^-\w*vv", x) for x in own): return "not eligible: -vv prints parallel's own Perl"
    if "--number-of" in r["env"]: return "not eligible: --number-of"
    if r.get("penv") or a in (["{}", "$v", ":::", "echo"], ["doit", ":::", "1"]): return "not eligible: env_parallel"
    if r["env"] and "perl" in r["env"]: return "not eligible: Perl in $PARALLEL"
    if r["g"]["rc"] == -25 or "File too large" in r["h"]["err"]: return "not eligible: 100 MB of output (the harness's limit)"
    if "sshlogin/vm" in str(r["fd"]): return "not eligible: PARALLEL_HOME"
    if a[-1:] == ["test_one"]: return "not eligible: takes parallel's own source"
    if "DISPLAY" in joined or "rand" in joined: return "not eligible: random"
    if not r["stdin_all"]: return "not eligible: endless input"
    if r["g"]["rc"] in ("timeout", 137, 153): return "not eligible: endless"
    return None
def piping(own): return any(x in ("--pipe", "--spreadstdin", "--pipepart") for x in own)
def norm(s): return re.sub(r"[ \t]+", " ", re.sub(r"(?m)^[ \t]+", "", s))
n = collections.Counter(); kinds = collections.defaultdict(list)
for r in rows:
    why = aside(r)
    if why: n["aside"] += 1; kinds["aside | " + why].append(r); continue
    if r["verdict"] == "same": n["eligible"] += 1; n["same"] += 1; continue
    if r["unstable"]: n["aside"] += 1; kinds["aside | parallel itself differs in two runs"].append(r); continue
    n["eligible"] += 1
    e = r["h"]["err"]; j = " ".join(r["args"])
    m = re.search(r"GNU parallel's (\S+) is not supported; instead: (.*)", e) or re.search(r"(\S+) is a variable inside of (GNU parallel)", e) or re.search(r"has no option (\S+)", e)
    if r["stdout"] != "same" and r["status"] and r["files"] and norm(r["g"]["out"]) == norm(r["h"]["out"]) and r["g"]["n"] < 3000:
        n["same but for blanks of wc (documented: a file in memory)"] += 1; n["same"] += 1; continue
    own = r["args"][:next((i for i, x in enumerate(r["args"]) if x.startswith(":::")), len(r["args"]))]
    if any(re.match(r"^-[a-zA-Z0-9]*q", x) for x in own[:4]) and r["h"]["rc"] != 255: n["documented: -q"] += 1; n["documented"] += 1; continue
    if "-d" in own and ":::" in r["args"] and r["h"]["rc"] == 0: n["documented: -d and :::"] += 1; n["documented"] += 1; continue
    if "--pipe" in own and r["stdout"] == "same" and r["files"] and r["h"]["rc"] == 0: n["documented: --pipe need not read"] += 1; n["documented"] += 1; continue
    if "--regexp" in own and "--recstart" in own and any(x.startswith("-N") for x in own): n["documented: -N counts the text before the first match"] += 1; n["documented"] += 1; continue
    if "--compress" in own and "--results" in own and r["stdout"] == "same" and r["status"]: n["documented: files of --results are not compressed"] += 1; n["documented"] += 1; continue
    if re.search(r"\{\d*uniq\}|\{choose_k\}|skip\(\)", j) and r["stdout"] == "same" and r["files"] and r["h"]["rc"] == 0: n["documented: a task that is passed over is no failure"] += 1; n["documented"] += 1; continue
    if r["g"]["rc"] == 255 and r["h"]["rc"] == 0 and "too long" in r["g"]["err"]: n["documented: a longer command line"] += 1; n["documented"] += 1; continue
    if any(re.match(r"^-\w*[Xm]", x) for x in own) and "wc" in j and r["status"] and r["files"] and r["h"]["rc"] == 0: n["documented: -X, -m as long as a line may be"] += 1; n["documented"] += 1; continue
    if "gzip" in j and piping(own) and r["status"] and r["files"] and r["g"]["n"] == r["h"]["n"]: n["documented: gzip writes the time of a block"] += 1; n["documented"] += 1; continue
    if "--tee" in j + r["env"] and "{%}" in j and r["status"] and r["files"]: n["documented: --tee needs no slot for each value"] += 1; n["documented"] += 1; continue
    limit = re.search(r"--timeout[ =](\d+)", j)
    if limit and re.search(r"\bsleep\b", j) and limit[1] in r["args"][len(own):] and "time limit" in r["h"]["err"]: n["documented: a time limit is kept to milliseconds"] += 1; n["documented"] += 1; continue
    if "--tee" in own and r["g"]["n"] != r["h"]["n"] and r["status"] and r["files"]: n["documented: --tee gives each command all"] += 1; n["documented"] += 1; continue
    if "--xargs" in own and r["status"] and r["files"] and "".join(r["g"]["out"].split())[:2000] == "".join(r["h"]["out"].split())[:2000]: n["documented: -X, -m as long as a line may be"] += 1; n["documented"] += 1; continue
    if "-u" in own and "--retries" in own and r["status"] and r["files"]: n["documented: -u shows the last attempt"] += 1; n["documented"] += 1; continue
    if r["g"]["rc"] == 25 and r["h"]["rc"] == 255: n["documented: a failing expression has 255"] += 1; n["documented"] += 1; continue
    if r["status"] and r["files"] and any(re.match(r"^-\w*[Xm]", x) for x in own) and "".join(r["g"]["out"].split())[:2000] == "".join(r["h"]["out"].split())[:2000]: n["documented: -X, -m as long as a line may be"] += 1; n["documented"] += 1; continue
    if "is Perl, which homing does not run" in e: k = "refused: {= perl =} -> --rpl"
    elif m: k = "refused: " + m.group(1) + (" -> " + m.group(2) if m.lastindex > 1 else "")
    elif r["h"]["rc"] == 255 and r["g"]["rc"] != 255: k = "refused otherwise: " + e.split("\n")[0][:150]
    elif r["h"]["rc"] == "timeout": k = "hung"
    elif not r["status"]: k = "status %s instead of %s" % (r["h"]["rc"], r["g"]["rc"])
    elif r["stdout"] == "order": k = "order"
    elif r["stdout"] == "diff": k = "output"
    else: k = "files"
    kinds[k].append(r); n["refused" if k.startswith("refused") else "wrong"] += 1
print(dict(n), "of", len(rows))
for k, v in sorted(kinds.items(), key=lambda x: (x[0].startswith("aside"), -len(x[1]))):
    print("%4d  %s" % (len(v), k))
    if V and not k.startswith("aside"):
        for r in v[:40]:
            print("      ", r["script"], r["args"], "stdin=%r" % r["stdin"][:60] if r["stdin_n"] else "", "env=%r" % r["env"] if r["env"] else "")
            print("          G %s %r" % (r["g"]["rc"], r["g"]["out"][:160])); print("          H %s %r %s %s" % (r["h"]["rc"], r["h"]["out"][:160], r["h"]["err"][:160].replace("\n", " "), r["fd"] if not r["files"] else ""))
sys.exit(1 if n["wrong"] else 0)
