//! Compares `homing nodeset` with `nodeset`, with groups of every kind.

use crate::skipped::skipped;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const GROUPS: &str = r#"
[Main]
default: local
confdir: $CFGDIR/groups.conf.d
autodir: $CFGDIR/groups.d

[local]
map: sed -n 's/^$GROUP:\(.*\)/\1/p' $CFGDIR/flat
all: sed -n 's/^all:\(.*\)/\1/p' $CFGDIR/flat
list: sed -n 's/^\([0-9A-Za-z_-]*\):.*/\1/p' $CFGDIR/flat
"#;
const FLAT: &str = "adm: n0\nio: n[1-4] n9\nboth: @adm,@io\nnone:\nall: n[0-9]\nrack1: n[1-3]\nrack2: n[4-6]\n";
/// `reverse` gives one answer only, so its use is visible.
const EXTRA: &str = "[slow,sl]\nmap: echo m[1-3] ${GROUP}\nlist: printf 'x\\ny\\n'\nreverse: echo x\n";
const YAML: &str = "racks:\n  old: 'n[1-3]'\n  'new':\n    - n4\n    - '@old,k[1-2]n[1-2]'\n  all: '@old,@new'\ncpu:\n  fast: '@racks:old!n1'\n";

fn world() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["groups.conf.d", "groups.d"] {
        fs::create_dir(dir.path().join(folder)).unwrap();
    }
    for (name, text) in
        [("groups.conf", GROUPS), ("flat", FLAT), ("groups.conf.d/extra.conf", EXTRA), ("groups.d/racks.yaml", YAML)]
    {
        fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

fn answer(world: &Path, program: &str, args: &[&str]) -> (bool, String) {
    let mut command = Command::new(program);
    if program.contains("homing") {
        command.arg("nodeset");
    }
    command.args(args).env("CLUSTERSHELL_CFGDIR", world).env("HOME", world).env_remove("XDG_CONFIG_HOME");
    let output = command.current_dir(world).stdin(Stdio::null()).output().unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn answers_are_nodesets() {
    if Command::new("nodeset").arg("--version").output().is_err() {
        skipped("nodeset is missing; install clustershell");
        return;
    }
    let world = world();
    let lines = "-f n1 n2 n[3-7/2]
        -e n[1-3] m[01-02]
        -c n[1-3] n2
        -f n[1-9] -x n[2-3] n3 -i n[1-5] -X n[5-6]
        -e -S , n[8-11]
        -e -S \\n n[8-11]
        -f -I 1-3,5 n[1-9] a
        -e --split 3 n[1-10]
        -f --split 4 n1 n2
        -f -R 1-4,7 6
        -e -R 9-11
        -c -R 1-10/3
        -f @io @adm
        -f @both!n9
        -f @rack[1-2]
        -f @*
        -f @racks:*
        -f @racks:new
        -f @cpu:fast
        -f @@racks
        -f n?&n[3-99]
        -f *
        -f -a
        -f -a -x @io
        -f -s racks @new
        -f -s racks -a
        -f @slow:any
        -f @sl:x
        -l
        -ll
        -l -s racks
        -ll -s racks
        -l n1
        -ll n[1-4]
        -l -s slow m1
        -f --autostep=3 a1 a3 a5 a7
        -f --autostep 4 a1 a3 a5
        -f --autostep=auto n[2-20/2]
        -f --autostep=auto n1 n3
        -f --autostep=50% n1 n3 n5 n8 n9
        -f --autostep=3 -R 0-20/4,50
        -f --autostep=3 r[1-3]n[2-8/2]
        -f --autostep=3 --split 2 n[1-11/2]
        -f --autostep=3 -I 0-3 n[1-19/2]
        -f --autostep=3 n[1-9/2] -X n5
        -f --autostep=many n1
        -f --contiguous a1 a2 a5
        -e --contiguous r[1-2,4]n[1,3-4] b
        -f --contiguous --split 2 n[1-4]
        -f -R --contiguous 1-3,5,7-8
        -f --axis 1 r[1-2]n[3-4]
        -f --axis=2 r[1-2]n[3-4]x[5-6]
        -f --axis=1-2 r[1-2]n[3-4]x[5-6]
        -f --axis -1 r[1-2]n[3-4]
        -f --axis 0 n[1-3]
        -e --axis 1 n[1-3]
        -e -O %s-x a[1-3]
        -e -O %s.lan -S, a[1-3]
        -eS, a[1-3]
        -f -O %s-ib0 a[1-3]
        -f -R -O <%s> 1-3
        -c -O %s_nodes a[1-3]
        -c -O %d a[1-3]
        -e -O %5s| a[1-3]
        -e -O %% a1
        -I0 -f n[1-9]
        -f -I0 n[1-9]
        -f -I2-3,0 n[1-9]
        -f -I 20 n[1-9]
        -f --pick 0 n[1-3]
        -f --pick 5 n[1-3]
        -c --pick 2 n[1-9]
        -c --pick=3 n[1-9]
        -fq n1
        -f n[1-9] --exclude n2 --intersection n[1-5]
        -r n[1-4] n9
        -r n[0-9]
        -r -s racks n[1-4]
        -r -G -s racks n[1-4]
        -r n[5-7]
        -ll -G -s racks n1
        --groupsconf=./groups.conf -f @adm
        --list-sources -q
        -f @nowhere:x
        -f n[1-
        -f n1,,n2";
    for line in lines.lines() {
        let args: Vec<&str> = line.split_whitespace().collect();
        let (ours, theirs) =
            (answer(world.path(), env!("CARGO_BIN_EXE_homing"), &args), answer(world.path(), "nodeset", &args));
        // The order of groups depends on Python's dictionaries and on the files.
        let sorted = |(ok, text): (bool, String)| {
            let mut lines: Vec<String> = text.lines().map(String::from).collect();
            if args[0].starts_with("-l") {
                lines.sort();
            }
            (ok, lines)
        };
        assert_eq!(sorted(ours), sorted(theirs), "{line}");
    }
}

#[test]
fn groups_serve_every_command_and_harm_none() {
    let world = world();
    let homing = env!("CARGO_BIN_EXE_homing");
    let run = |args: &[&str]| {
        let mut command = Command::new(homing);
        command.args(args).env("CLUSTERSHELL_CFGDIR", world.path()).env("HOME", world.path());
        command.current_dir(world.path()).env_remove("XDG_CONFIG_HOME").stdin(Stdio::null()).output().unwrap()
    };
    let told = run(&["exec", "--dry-run", "-g", "io", "-X", "rack1", "uptime"]);
    assert_eq!(String::from_utf8_lossy(&told.stdout), "n[4,9] (2): uptime\n");
    // The cluster file's own groups come first.
    fs::write(world.path().join("cluster.toml"), "hosts = \"h[1-3]\"\n[groups]\nio = \"h1\"\n").unwrap();
    let told = run(&["nodeset", "-f", "@io,@adm,@*"]);
    assert_eq!(String::from_utf8_lossy(&told.stdout), "h[1-3],n0\n");
    // An unknown group is a mistake, an empty one is not. A name is no shell command.
    assert_eq!(run(&["nodeset", "-c", "@none"]).stdout, b"0\n");
    for odd in ["@nosuch", "@a;touch harm", "@slow:$(touch harm)"] {
        let refused = run(&["nodeset", "-f", odd]);
        assert_eq!(refused.status.code(), Some(255), "{odd}");
    }
    assert!(!world.path().join("harm").exists());
}
