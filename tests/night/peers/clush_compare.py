#!/usr/bin/env python3
"""usage: clush_compare.py SOURCE LAB HOMING WORK_DIR
Each command line of ClusterShell's CLIClushTest.py, and lines as in clush's manual, with clush and with `homing exec` on the
hosts n1 to n3 of a lab. Prints a table; the status is 1 if one is wrong."""
import ast, json, subprocess, sys, os, re, collections
src, lab, H, work = sys.argv[1:5]
outf = work + "/clush.jsonl"
cfg = "/var/lib/homing/labs/%s/ssh_config" % lab
lines = []
class Env(dict):
    pass
tree = ast.parse(open(src + "/tests/CLIClushTest.py").read())
for node in ast.walk(tree):
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "_clush_t" and node.args:
        a = node.args
        try:
            args = eval(compile(ast.Expression(a[0]), "x", "eval"), {"HOSTNAME": "n1"})
            stdin = eval(compile(ast.Expression(a[1]), "x", "eval"), {"HOSTNAME": "n1"}) if len(a) > 1 else None
        except Exception:
            continue
        if isinstance(args, list): lines.append(("test", args, stdin))
for l in [
 "-w n[1-3] uname -s", "-w n[1-3] -b uname -s", "-w n[1-3] -B uname -s", "-w n[1-3] -L uname -s", "-w n[1-3] -x n2 hostname", "-w n1,n3 -b hostname",
 "-w n[1-3] -bL hostname", "-w n[1-3] --diff hostname", "-w n[1-3] -S false", "-w n[1-3] false", "-w n[1-3] -b -S 'exit 3'", "-w n[1-3] -N echo x",
 "-w n[1-3] -q echo x", "-w n[1-3] -v echo x", "-w n[1-3] -f 1 echo x", "-w n[1-3] -u 5 echo x", "-w n[1-3] -t 5 echo x", "-w n[1-3] -l root whoami",
 "-w n[1-3] --color=always echo x", "-w n[1-3] --color=never echo x", "-w n[1-3] -E 'echo x; echo y >&2'", "-w n[1-3] --nostdin cat", "-w n[1-3] -b 'echo a; echo b'",
 "-w n[1-3] -b 'hostname; date +%Y'", "-w n[1-3] -G echo x", "-w n[1-3] -r -b hostname", "-w n[1-3] --pick 3 -b echo x", "-w n[1-3] -P -b hostname",
 "-w n[1-3] -w n2 hostname", "-w n1 -w n2 hostname", "-w n[1-3]!n2 hostname", "-w n[1-3]&n[2-9] hostname", "-w n[1-3]^n2 hostname", "-w n[1-3] -X @nogroup echo", "-w n[1-3] -O node_count=no -b uname -s",
 "-w n[1-3] --maxrc echo x", "-w n[1-3] -O fanout=2 echo x", "-w n[1-3] -bq 'exit 2'", "-w n[1-3] -b 'test $(hostname) = n2 && exit 4; true'", "-w n[1-3] -Sb 'test $(hostname) = n2 && exit 4; true'",
 "-w n[1-3] -b 'test $(hostname) = n2 && echo odd || echo even'", "-w n[1-3] --diff 'test $(hostname) = n2 && echo odd || echo even'", "-w n[1-3] -bB 'echo o; echo e >&2'", "-w n[1-3] -b --outdir="+work+"/o hostname", "-w n[1-3] --outdir="+work+"/o2 --errdir="+work+"/e2 'hostname; hostname >&2'",
 "-w n[1-3] -R ssh echo x", "-w n[1-3] --worker=exec echo %h", "-w n[1-3] -m foo echo", "-w n[1-3] -y echo x", "-w n[1-3] -d echo x", "-n -w n[1-3] cat", "-w n[3,2,1] -L hostname", "-w n[1-3] -L 'sleep 0.$((4-$(hostname|tr -d n)));hostname'",
 "-w n[1-3] echo '%h %rank'", "-w n[1-3] 'kill -9 $$'", "-w n[1-3] -S 'kill -9 $$'", "-w n[1-3] -S nosuchcommand", "-w n[1-3] -b printf 'a\\nb'", "-w n[1-3] printf 'a\\n\\nb'", "-w n[1-3] -b 'printf \"a\\n\\n\"'", "--hostfile "+work+"/hf hostname", "--machinefile "+work+"/hf -b hostname",
]:
    import shlex
    lines.append(("manual", shlex.split(l), None))
os.makedirs(""+work+"", exist_ok=True); open(""+work+"/hf", "w").write("n[1-2]\nn3\n")
lines.append(("manual", ["-w", "n[1-3]", "cat"], "from stdin\n")); lines.append(("manual", ["-w", "n[1-3]", "-b", "cat"], "x\ny\n"))
n = collections.Counter(); seen = set()
# clush reaches the lab by a program, so that lines with -o of their own reach it too.
ssh = work + "/ssh"
open(ssh, "w").write("#!/bin/sh\nexec ssh -F %s \"$@\"\n" % cfg); os.chmod(ssh, 0o755)
def run(argv, stdin):
    try:
        p = subprocess.run(argv, input=(stdin if isinstance(stdin, bytes) else (stdin or "").encode()) if stdin is not None else None, stdin=subprocess.DEVNULL if stdin is None else None, capture_output=True, timeout=60)
        return p.returncode, p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return "timeout", "", ""
with open(outf, "w") as f:
    for kind, args, stdin in lines:
        key = json.dumps([args, repr(stdin)])
        if key in seen: continue
        seen.add(key)
        if any(x in ("--copy", "-c", "--rcopy", "--version", "--conf", "-h", "--help") or x.startswith("--copy") or x.startswith("--rcopy") for x in args) or "sleep 60" in " ".join(args): n["aside"] += 1; continue
        c = run(["clush", "-O", "ssh_path=%s" % ssh] + args, stdin)
        h = run([H, "exec", "--lab", lab] + args, stdin)
        so = c[1] == h[1] or (sorted(c[1].split("\n")) == sorted(h[1].split("\n")))
        rc = (c[0] == 0) == (h[0] == 0)
        if so and rc: v = "same"
        elif so and c[0] in (0, 255): v = "documented: the status is that of the worst host"
        elif h[0] == 255 and "\n  try: " in h[2]: v = "refused, with a replacement"
        elif "localhost" in " ".join(args) and "connect to host localhost" in c[2]: v = "aside: clush needs sshd on this machine"
        elif "--pick" in args: v = "same" if len(c[1].split("\n")) == len(h[1].split("\n")) else "wrong"
        else: v = "wrong"
        n[v] += 1
        if v not in ("same",) and not v.startswith("documented"): print("       ", v, args, stdin, c[:2], h)
        f.write(json.dumps(dict(kind=kind, args=args, stdin=repr(stdin), clush=c, homing=h, v=v)) + "\n"); f.flush()
for kind, count in sorted(n.items()): print("%6d  %s" % (count, kind))
sys.exit(1 if n["wrong"] else 0)
