//! `homing make` where the clock of one host is 30 s behind: the files are those of a build on one disk, bit for bit.
//! The clock of the host's sessions and of its file system's client is shifted by `tests/clock_shift.c`. A guest's
//! clock is its kernel's.

use crate::support::{EXE, Lab, missing};
use std::path::Path;

/// Headers are made in one make and read in another, which knows their age from the file system alone. Three of them
/// at once are made on three hosts.
const MAKEFILE: &str = "\
HEADERS = gen.1.h gen.2.h gen.3.h
all: $(HEADERS)
\t+@$(MAKE) --no-print-directory program
program: u1.o u2.o u3.o u4.o
\tcc -o $@ $^
$(HEADERS): gen.%.h: round.txt
\t@sleep 0.3; sed 's/.*/static const char gen$*[] = \"& $*\";/' $< > $@
u%.o: u%.c
\t@sleep 0.2; cc -O1 -c -o $@ $<
u1.o u2.o u3.o u4.o: gen.1.h gen.2.h gen.3.h
";

const ROUNDS: u32 = 10;

fn project(at: &Path) {
    std::fs::create_dir(at).unwrap();
    std::fs::write(at.join("Makefile"), MAKEFILE).unwrap();
    for unit in 1..=4 {
        let main = if unit == 1 { "int main(void) { u1(); return 0; }\n" } else { "" };
        let text = format!(
            "#include <stdio.h>\n#include \"gen.1.h\"\n#include \"gen.2.h\"\n#include \"gen.3.h\"\n\
             void u{unit}(void) {{ printf(\"%s %s %s\\n\", gen1, gen2, gen3); }}\n{main}"
        );
        std::fs::write(at.join(format!("u{unit}.c")), text).unwrap();
    }
}

/// Hosts with a volume at `/data`. The project is there, and also on a disk of the first host.
struct World {
    lab: Lab,
    /// The host where make is begun.
    head: &'static str,
    make: String,
    /// Hosts of a lab see the folder at its own path, guests too.
    _folder: tempfile::TempDir,
}

impl World {
    fn new(kind: &str, words: &[&str]) -> World {
        let world = World::over(EXE, kind, words, &["n1", "n2", "n3"]);
        let library = crate::preload::preload(world._folder.path(), "clock_shift.c");
        let set = format!(
            "ssh n3 'cat > /usr/local/lib/shift.so' < {0} && ssh n3 \"echo SetEnv LD_PRELOAD=/usr/local/lib/shift.so \
             CLOCK_SHIFT=-30 > /etc/ssh/sshd_config.d/shift.conf; systemctl reload ssh\"; sleep 1",
            library.display()
        );
        world.lab.ok("n1", &set);
        world
    }

    /// Carries the project and the program to hosts that mount `/data`.
    fn over(exe: &str, kind: &str, words: &[&str], hosts: &[&'static str]) -> World {
        // Hosts of a lab see nothing of this machine's /tmp.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let here = folder.path().join("p");
        project(&here);
        let lab = Lab::up(kind, &[&["--hosts", "3"], words].concat());
        let head = hosts[0];
        let cluster = "/tmp/cluster.toml";
        let slots: String = hosts.iter().map(|host| format!("[host.{host}]\nslots = 1\n")).collect();
        lab.ok(head, &format!("cat > {cluster} <<'END'\nhosts = \"{}\"\n{slots}END", hosts.join(",")));
        for place in ["/data/p", "/data/control", "/tmp/p"] {
            lab.ok(head, &format!("cp -r {} {place}", here.display()));
        }
        lab.ok(head, &format!("{exe} hosts --hosts {}", hosts.join(",")));
        let make = format!("{exe} make --cluster {cluster} -j{}", hosts.len());
        World { lab, head, make, _folder: folder }
    }

    /// Mounts the volume's client on n3 again, in a session whose clock is behind.
    fn mounted_anew(&self, script: &str) {
        self.lab.ok("n1", &format!("ssh n3 'umount /data && {script} && ls /data/p >/dev/null'"));
    }

    /// Runs one round. Returns the digests, if the build succeeded, and a label with standard error.
    fn round(&self, round: u32, make: &str, folder: &str) -> (Option<String>, String) {
        let script =
            format!("cd {folder} && echo round {round} > round.txt && {make} >&2 && sha256sum program *.o *.h");
        let (status, out, err) = self.lab.told(self.head, &script);
        ((status == Some(0)).then_some(out), format!("{folder}, round {round}: {err}"))
    }

    /// Runs all rounds. Returns how many control builds, which ignore clocks, were wrong.
    fn rounds(&self) -> u32 {
        let mut wrong = 0;
        for round in 1..=ROUNDS {
            let (want, said) = self.round(round, "env -u MAKEFLAGS make", "/tmp/p");
            assert!(want.is_some(), "{said}");
            let (made, said) = self.round(round, &self.make, "/data/p");
            assert_eq!(made, want, "{said}");
            // The control may also end because a link step does not find an object from another host. That counts as
            // wrong, too.
            let (made, _) = self.round(round, &format!("{} --no-fence", self.make), "/data/control");
            wrong += u32::from(made != want);
        }
        eprintln!("{wrong} of {ROUNDS} builds are wrong without a look at clocks");
        wrong
    }
}

#[test]
fn a_build_on_glusterfs_is_right_where_a_clock_is_behind() {
    if missing(&["glusterd", "glusterfs"]) {
        return;
    }
    let world = World::new("skew", &["--gluster", "replica=3"]);
    world.mounted_anew("mount -t glusterfs n3:/data /data");
    assert!(world.rounds() > 0, "the control is right, too");
}

/// Takes minutes, and is run by hand, as in `tests/night/skew`. The control was right in each round that was seen, so
/// this test shows less than the one on GlusterFS.
#[test]
#[ignore = "minutes; tests/night/skew"]
fn a_build_on_moosefs_is_right_where_a_clock_is_behind() {
    if missing(&["mfsmaster", "mfsmount"]) {
        return;
    }
    let world = World::new("skewm", &["--disk", "700M", "--moosefs", "goal=2"]);
    world.mounted_anew("mfsmount /data -H n1");
    world.rounds();
}

/// Guests have clocks of their own. The server gives a new file its own time, whatever the client's clock is.
#[test]
#[ignore = "minutes; tests/night/skew"]
fn a_build_on_nfs_is_right_where_a_clock_is_behind() {
    if missing(&["qemu-system-x86_64", "exportfs", "mount.nfs", "rpcbind", "busybox"]) {
        return;
    }
    let program = crate::guests::Program::new("skewn");
    let words = ["--disk", "512M", "--nfs", "--guests", crate::guests::best_kind()];
    let world = World::over(program.0.to_str().unwrap(), "skewn", &words, &["n2", "n3"]);
    world.lab.ok("n3", "date -s '30 seconds ago'");
    let [here, there] = ["n2", "n3"].map(|host| world.lab.ok(host, "date +%s").trim().parse::<i64>().unwrap());
    assert!((20..=40).contains(&(here - there)), "n3's clock is behind: {here} {there}");
    world.rounds();
}
