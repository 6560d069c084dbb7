#!/usr/bin/env python3
"""usage: cd SOURCE/tests && nodeset_record.py OUT.jsonl CONF_DIR
Runs ClusterShell's own tests with a recorder: each `nodeset` command line of CLINodesetTest with its real answer, each
string that a NodeSet or RangeSet is made of, and each operation of two sets. nodeset_compare.py OUT.jsonl runs them."""
import sys, json, os, io, unittest, warnings
warnings.simplefilter("ignore")
out = open(sys.argv[1], "w"); sys.path.insert(0, os.getcwd()); sys.path.insert(0, os.path.join(os.getcwd(), "../lib"))
import ClusterShell.NodeSet as N, ClusterShell.RangeSet as R
depth = [0]; seen = set()
def put(**k):
    s = json.dumps(k, sort_keys=True)
    if s not in seen:
        seen.add(s); out.write(s + "\n"); out.flush()
def wrap_init(cls, kind):
    old = cls.__init__
    def init(self, *a, **k):
        depth[0] += 1
        try:
            try:
                old(self, *a, **k)
            except Exception as e:
                if depth[0] == 1 and a and isinstance(a[0], str):
                    put(kind=kind, expr=a[0], error=type(e).__name__ + ": " + str(e), autostep=str(k.get("autostep")), res=str(k.get("resolver") is not None))
                raise
            if depth[0] == 1 and a and isinstance(a[0], str):
                try:
                    put(kind=kind, expr=a[0], str=str(self), n=len(self), expand=[str(x) for x in self][:3000] if kind == "nodeset" else list(self.striter())[:3000] if hasattr(self, "striter") else None, autostep=str(k.get("autostep", a[1] if len(a) > 1 else None)), res=str(k.get("resolver") is not None))
                except Exception as e:
                    pass
        finally:
            depth[0] -= 1
    cls.__init__ = init
wrap_init(N.NodeSet, "nodeset"); wrap_init(R.RangeSet, "rangeset")
def wrap_op(cls, kind, name, op):
    old = getattr(cls, name)
    def f(self, other, *a, **k):
        if depth[0]:
            return old(self, other, *a, **k)
        depth[0] += 1
        try:
            b = str(self); o = str(other) if other is not None else None
            r = old(self, other, *a, **k)
            try:
                put(kind=kind + "-op", a=b, op=op, b=o, str=str(r if not name.endswith("update") and name not in ("__ior__", "__iand__", "__isub__", "__ixor__", "update", "add", "remove") else self))
            except Exception:
                pass
            return r
        finally:
            depth[0] -= 1
    setattr(cls, name, f)
for cls, kind in ((N.NodeSet, "nodeset"), (R.RangeSet, "rangeset")):
    for name, op in (("union", "|"), ("update", "|"), ("intersection", "&"), ("intersection_update", "&"), ("difference", "-"), ("difference_update", "-"), ("symmetric_difference", "^"), ("symmetric_difference_update", "^"), ("__or__", "|"), ("__and__", "&"), ("__sub__", "-"), ("__xor__", "^")):
        if hasattr(cls, name):
            wrap_op(cls, kind, name, op)
import TLib
mods = ["NodeSetTest", "RangeSetTest", "NodeSetGroupTest"]
suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromName(m) for m in mods)
r = unittest.TextTestRunner(stream=io.StringIO(), verbosity=0).run(suite)
print("library tests", r.testsRun, "failures", len(r.failures), "errors", len(r.errors), file=sys.stderr)
# the command line's tests
import CLINodesetTest as C
def t(self, args, stdin, expected_stdout, expected_rc=0, expected_stderr=None):
    put(kind="cli", args=args, stdin=stdin if stdin is None or isinstance(stdin, str) else stdin.decode(), out=expected_stdout.decode() if isinstance(expected_stdout, bytes) else expected_stdout, rc=expected_rc, err=expected_stderr.decode() if isinstance(expected_stderr, bytes) else expected_stderr, test=self.id(), conf=CONF[0])
    old(self, args, stdin, expected_stdout, expected_rc, expected_stderr)
CONF = [None]
old = C.CLINodesetTestBase._nodeset_t
C.CLINodesetTestBase._nodeset_t = t
oldset = C.set_std_group_resolver_config
KEEP = []
def setc(path, *a):
    CONF[0] = None
    if path:
        import shutil
        d = sys.argv[2] + "/conf-%d" % len(KEEP); KEEP.append(d)
        os.makedirs(d, exist_ok=True); shutil.copy(path, d + "/groups.conf"); CONF[0] = d
    return oldset(path, *a)
C.set_std_group_resolver_config = setc
oldr = C.set_std_group_resolver
def setr(x):
    CONF[0] = None if x is None else "resolver"
    return oldr(x)
C.set_std_group_resolver = setr
depth[0] = 1  # the command lines alone from here on
r = unittest.TextTestRunner(stream=io.StringIO(), verbosity=0).run(unittest.defaultTestLoader.loadTestsFromModule(C))
print("cli tests", r.testsRun, "failures", len(r.failures), "errors", len(r.errors), file=sys.stderr)
for f in (r.failures + r.errors)[:3]: print(f[0], f[1][-600:], file=sys.stderr)
