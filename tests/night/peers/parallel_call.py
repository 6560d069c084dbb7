#!/usr/bin/env python3
"""Stands in for `parallel` in GNU parallel's own test scripts: each call is made with GNU parallel and, in a copy of the
same world, with `homing run`, and both are written to $PEER_LOG. The program gnu-parallel, beside this folder, starts it."""
import hashlib, json, os, re, shutil, subprocess, sys, tempfile, time, select, stat

GNU = "/usr/bin/parallel"
HOM = os.environ["PEER_HOMING"]
PLACE = os.environ["PEER_PLACE"]
args = sys.argv[1:]
mode = os.environ.get("PEER_MODE", "")
if mode == "gnu":
    os.execv(GNU, ["parallel"] + args)
if mode == "hom":
    os.execv(HOM, ["homing", "run", "-q", "--io", "off"] + args)
# The scripts' own outer loop over their units: one at a time, each of them again with this shim
if any("/tmp/jl-" in a for a in args):
    args = [re.sub(r"^-(v?)j\S+$", lambda m: "-" + m.group(1) + "j1" if m.group(1) else "-j1", a) for a in args]
    args = [a for a in args if not re.match(r"^--(timeout|retries)=", a)]
    os.execv(GNU, ["parallel", "--timeout", "400"] + args)

W = os.environ["PEER_WORLD"]
LOG = os.environ["PEER_LOG"]
DEAD = float(os.environ.get("PEER_LIMIT", "40"))
cwd = os.getcwd()
joined = " ".join(args)
piped = any(a.startswith(("--pipe", "--spreadstdin", "-a")) for a in args)
sources = any(a.startswith(":::") for a in args) or any(re.match(r"^(-a|--arg-?file)", a) for a in args)
stdin = b""
seen = True
try:
    mode0 = os.fstat(0).st_mode
    if stat.S_ISREG(mode0) or (stat.S_ISFIFO(mode0) or stat.S_ISSOCK(mode0)):
        limit = time.time() + (1.0 if sources and not piped else 25)
        parts = []
        n = 0
        while True:
            left = limit - time.time()
            if left <= 0 or n > 300_000_000:
                seen = False
                break
            if not select.select([0], [], [], left)[0]:
                seen = False
                break
            b = os.read(0, 1 << 20)
            if not b:
                break
            parts.append(b); n += len(b)
        stdin = b"".join(parts)
except OSError:
    pass

def digest(b):
    return hashlib.sha1(b).hexdigest()[:12]

def copy(to):
    subprocess.run(["cp", "-a", W, to], stderr=subprocess.DEVNULL)

NOISE = re.compile(r"(^|/)(\.parallel|\.local|\.cache|\.config|runs|\.homing|peer-)")
def tree(root):
    out = {}
    for d, dirs, files in os.walk(root):
        rel = os.path.relpath(d, root)
        if NOISE.search("/" + rel):
            dirs[:] = []
            continue
        for n in files + dirs:
            p = os.path.join(d, n); r = os.path.join(rel, n)
            if NOISE.search("/" + r):
                continue
            try:
                st = os.lstat(p)
                if stat.S_ISREG(st.st_mode):
                    b = open(p, "rb").read() if st.st_size < 20_000_000 else str(st.st_size).encode()
                    # job logs: start time and run time differ by nature
                    if b.startswith(b"Seq\tHost"):
                        rows = [l.split(b"\t") for l in b.split(b"\n")]
                        b = b"\n".join(sorted(b"\t".join(x for i, x in enumerate(r_) if i not in (2, 3)) for r_ in rows))
                    out[r] = "f:" + digest(b)
                elif stat.S_ISLNK(st.st_mode):
                    out[r] = "l:" + os.readlink(p)
                elif stat.S_ISDIR(st.st_mode):
                    out[r] = "d"
                else:
                    out[r] = "o"
            except OSError:
                pass
    return out

def run(argv, world, mode, limit):
    """argv in its own mount namespace in which `world` stands where W was; /tmp is W/tmp."""
    env = dict(os.environ, PEER_MODE=mode)
    for k in ("PEER_LOG",):
        env.pop(k, None)
    so, se = tempfile.TemporaryFile(dir=PLACE), tempfile.TemporaryFile(dir=PLACE)
    si = tempfile.TemporaryFile(dir=PLACE); si.write(stdin); si.flush(); si.seek(0)
    if world == W:
        cmd = argv
    else:
        script = 'mount --bind "$0" "$1" && mount --bind "$1/tmp" /tmp && cd "$2" && shift 2 && exec "$@"'
        cmd = ["unshare", "-m", "--propagation", "private", "bash", "-c", script, world, W, cwd] + argv
    # stdin as a pipe would be: a file is fine for both
    t = time.time()
    p = subprocess.Popen(cmd, stdin=si, stdout=so, stderr=se, env=env, cwd=cwd, start_new_session=True, preexec_fn=lambda: __import__("resource").setrlimit(1, (100_000_000, 100_000_000)))
    try:
        rc = p.wait(limit)
    except subprocess.TimeoutExpired:
        try:
            os.killpg(p.pid, 15); time.sleep(0.3); os.killpg(p.pid, 9)
        except OSError:
            pass
        p.wait(); rc = "timeout"
    so.seek(0); se.seek(0)
    return rc, so.read(), se.read(), time.time() - t

base = tempfile.mkdtemp(prefix="w", dir=PLACE)
try:
    copy(base + "/h"); copy(base + "/g")
    env_words = os.environ.get("PARALLEL", "")
    rc, out, err, secs = run([GNU] + args, W, "gnu", DEAD)
    tg = tree(W)
    argv = [HOM, "run", "-q", "--io", "off"]
    hrc, hout, herr, hsecs = run(argv + args, base + "/h", "hom", min(secs * 3 + 15, 60))
    th = tree(base + "/h")
    keep = bool(re.search(r"(^|\s)(-\w*k|--keep-order|--keeporder|-\w*j\s?1(\s|$)|-P\s?1(\s|$)|--jobs[ =]1(\s|$))", joined + " " + env_words))
    def same_out(a, b):
        if a == b: return "same"
        if sorted(a.split(b"\n")) == sorted(b.split(b"\n")): return "same" if not keep else "order"
        # Without -k, lines of two tasks whose ends are missing may be in any order.
        if not keep and sorted(a) == sorted(b): return "same"
        return "diff"
    o = same_out(out, hout); s = rc == hrc; f = tg == th
    verdict = "same" if (o == "same" and s and f) else "differs"
    unstable = False
    if verdict != "same":
        rc2, out2, err2, _ = run([GNU] + args, base + "/g", "gnu", DEAD)
        t2 = tree(base + "/g")
        if rc2 != rc or (out2 != out if keep else sorted(out2.split(b"\n")) != sorted(out.split(b"\n"))) or t2 != tg:
            unstable = True
    fd = {k: [tg.get(k), th.get(k)] for k in set(tg) | set(th) if tg.get(k) != th.get(k)}
    rec = dict(script=os.environ.get("PEER_SCRIPT", ""), unit=os.environ.get("PEER_UNIT", ""), args=args, env=env_words, cwd=cwd.replace(W, "W"),
        stdin=stdin[:400].decode("utf-8", "backslashreplace"), stdin_n=len(stdin), stdin_all=seen,
        g=dict(rc=rc, out=out[:3000].decode("utf-8", "backslashreplace"), n=len(out), err=err[:1500].decode("utf-8", "backslashreplace"), s=round(secs, 2)),
        h=dict(rc=hrc, out=hout[:3000].decode("utf-8", "backslashreplace"), n=len(hout), err=herr[:1500].decode("utf-8", "backslashreplace"), s=round(hsecs, 2)),
        stdout=o, status=s, files=f, fd=dict(list(fd.items())[:12]), verdict=verdict, unstable=unstable, penv=len(os.environ.get("PARALLEL_ENV", "")))
    with open(LOG, "a") as lf:
        lf.write(json.dumps(rec) + "\n")
finally:
    shutil.rmtree(base, ignore_errors=True)
sys.stdout.buffer.write(out); sys.stdout.flush()
sys.stderr.buffer.write(err); sys.stderr.flush()
sys.exit(rc if isinstance(rc, int) and rc >= 0 else 137)
