//! `homing make` on a real GlusterFS volume with all its caches on: the object files of a local build, bit for bit.
//! Needs root and GlusterFS; otherwise prints a note and is skipped.

use crate::support::{EXE, Lab, missing};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const UNITS: usize = 12;

/// A C project of the usual kind. It has units with headers, one of which is made first, and dependency files that no
/// rule names. It has an archive, a folder of its own for objects, make in make, and a program that prints its
/// sources. `meet` ends only when both its recipes run at once, which with one slot a host means on two hosts.
const MAKEFILE: &str = "\
all: meet
\t+@$(MAKE) --no-print-directory -C . program
program: main.o obj/libunits.a
\tcc -o $@ main.o -Lobj -lunits
UNITS = $(patsubst %.c,obj/%.o,$(wildcard unit*.c))
obj/libunits.a: $(UNITS)
\trm -f $@
\tar rcsD $@ $^
obj/%.o: %.c table.h | obj
\tcc -O1 -MMD -c -o $@ $<
main.o: main.c table.h
\tcc -O1 -MMD -c -o $@ $<
table.h: round.txt
\tsed 's/.*/static const char table[] = \"&\";/' $< > $@
obj:
\tmkdir $@
meet: meet.1 meet.2
meet.1 meet.2: meet.%:
\t@n=0; until touch met.$* && [ -e met.1 ] && [ -e met.2 ]; do n=$$((n+1)); [ $$n -lt 600 ] || exit 9; sleep 0.1; done
-include $(wildcard *.d obj/*.d)
";

fn project(at: &Path) {
    std::fs::create_dir(at).unwrap();
    std::fs::write(at.join("Makefile"), MAKEFILE).unwrap();
    let mut main = String::from("#include <stdio.h>\n#include \"table.h\"\n");
    let mut calls = String::new();
    for u in 0..UNITS {
        let unit = format!(
            "#include \"table.h\"\nconst char *unit{u}(int n) {{\n  int sum = 0;\n  for (int i = 0; i < n; i++) sum += i * {u};\n  return sum >= 0 ? table : \"\";\n}}\n"
        );
        std::fs::write(at.join(format!("unit{u}.c")), unit).unwrap();
        let _ = writeln!(main, "const char *unit{u}(int);");
        let _ = writeln!(calls, "  puts(unit{u}(3));");
    }
    let _ = write!(main, "int main(void) {{\n  puts(table);\n{calls}  return 0;\n}}\n");
    std::fs::write(at.join("main.c"), main).unwrap();
}

const DIGESTS: &str = "sha256sum program table.h *.o *.d obj/*";

/// Builds each round on a local disk, and returns the digests.
fn made_here(at: &Path, rounds: &[u32]) -> Vec<String> {
    let make = |round: &u32| {
        let script = format!("echo round {round} > round.txt && make -s -j2 program >&2 && {DIGESTS}");
        let mut command = Command::new("sh");
        for name in ["MAKEFLAGS", "MAKELEVEL", "MFLAGS"] {
            command.env_remove(name);
        }
        let output = command.args(["-c", &script]).current_dir(at).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    rounds.iter().map(make).collect()
}

/// Returns the hosts on which recipes with this word ran.
fn hosts_of(trace: &str, word: &str) -> BTreeSet<String> {
    let trace: serde_json::Value = serde_json::from_str(trace).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let name_of = |pid: &serde_json::Value| {
        let process = events.iter().find(|e| e["ph"] == "M" && e["pid"] == *pid).unwrap();
        process["args"]["name"].as_str().unwrap().to_string()
    };
    let recipes = events.iter().filter(|e| e["ph"] == "X" && e["name"].as_str().unwrap().contains(word));
    recipes.map(|e| name_of(&e["pid"])).collect()
}

#[test]
fn objects_are_those_of_a_local_build_bit_for_bit() {
    if missing(&["glusterd", "glusterfs"]) {
        return;
    }
    // Hosts of a lab see nothing of this machine's /tmp.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let here = folder.path().join("p");
    project(&here);
    let lab = Lab::up("make", &["--hosts", "3", "--gluster", "replica=3"]);
    lab.ok("n1", &format!("cp -r {} /data/p", here.display()));
    let slots = "hosts = \"n[1-3]\"\n[host.n2]\nslots = 1\n[host.n3]\nslots = 1\n";
    let cluster = folder.path().join("cluster.toml");
    std::fs::write(&cluster, slots).unwrap();
    // Carries the program to the hosts.
    lab.ok("n1", &format!("{EXE} hosts --hosts 'n[1-3]'"));

    let rounds = [10, 11];
    let want = made_here(&here, &rounds);
    let make = format!("{EXE} make --cluster {}", cluster.display());
    for (round, want) in rounds.iter().zip(&want) {
        let script = format!(
            "cd /data/p && rm -f met.* && echo round {round} > round.txt && \
             {make} --hosts 'n[2-3]' --trace-file /tmp/trace -j4 >&2 && {DIGESTS} && echo =$(cat /tmp/trace)"
        );
        let (status, out, err) = lab.told("n1", &script);
        assert_eq!(status, Some(0), "{out}\n{err}");
        let (made, trace) = out.split_once('=').unwrap();
        assert_eq!(made, want, "round {round}: {err}");
        let both = BTreeSet::from(["n2".to_string(), "n3".to_string()]);
        assert_eq!(hosts_of(trace, "cc -O1"), both, "round {round}: {err}");
    }

    // n2 reaches only the gateway n1, and prints the output and status of make there.
    let script = format!("cd /data/p && echo round 12 > round.txt && {make} --gateway n1 --hosts 'n[1-3]' -j2 program");
    let (status, _, err) = lab.told("n2", &format!("{script} && ./program | grep -c 'round 12'"));
    assert!(status == Some(0) && err.contains("recipes"), "{err}");
    let out = lab.ok("n2", &format!("cd /data/p && {make} --gateway n1 --hosts 'n[1-3]' nothing; echo $?"));
    assert!(out.ends_with("2\n"), "{out}");
}
