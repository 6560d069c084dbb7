//! The same mistake has the same exit status in each command. docs/formats.md has the table.

use crate::world::World;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A host that ssh does not know, or does not reach.
const HOST: &[(&str, i32)] = &[
    ("run --hosts h true ::: 1", 254),
    ("plan --hosts h true ::: 1", 254),
    ("exec -w h true", 254),
    ("exec -S -w h true", 255),
    ("exec --json -w h true", 254),
    ("push -w h file", 254),
    ("pull -w h /etc/hostname", 254),
    ("hosts -w h", 254),
    ("hosts -w h --json", 254),
    ("hosts -w h --history", 254),
    ("top -w h --once", 254),
    ("usage -w h", 254),
    ("check -w h", 3),
    ("topology -w h", 254),
    ("bench net -w h,localhost", 254),
    ("bench volume /data -w h", 254),
    ("tune net -w h,localhost --dry-run", 254),
    ("cache install -w h hello --dry-run", 254),
    ("volume list -w h", 254),
    ("volume list --json -w h", 254),
    ("volume status -w h", 254),
    ("power status -w h", 254),
    ("up --cluster h.toml --dry-run", 254),
];

/// An output file below a plain file.
const OUTPUT: &[&str] = &[
    "run --joblog file/x true ::: 1",
    "run --results file/x true ::: 1",
    "run --json=file/x true ::: 1",
    "report last --html file/x",
    "exec -w localhost --outdir file/x true",
    "exec -w localhost --errdir file/x true",
    "make --trace-file file/x -f Makefile all",
    "hosts -w localhost --prometheus file/x",
    "usage --prometheus file/x",
    "check -w localhost --only clocks --prometheus file/x",
    "hosts --init n1 --cluster file/x",
];

/// A missing input, and something that is not there.
const INPUT: &[&str] = &[
    "run -a none true",
    "run --tasks none",
    "run true :::: none",
    "plan -a none true",
    "where none",
    "where --files-from none",
    "exec --hostfile none true",
    "check --hostfile none",
    "push -w localhost none",
    "up none.toml",
    "hosts --cluster none.toml",
    "down n1 --cluster none.toml",
    "usage none",
    "advise none",
    "nodeset --groupsconf none -l",
    "topology -w localhost --snmp none",
    "bench volume --compare none none",
    "report none",
    "resume none",
    "top none",
    "jobs 999999",
    "wait 999999",
    "kill 999999",
    "peek 999999",
    "volume status none",
    "lab status --name none",
    "run --lab none true ::: 1",
    "exec --lab none -a true",
];

/// A wrong value.
const VALUE: &[&str] = &[
    "run -j abc true ::: 1",
    "run --timeout 5x true ::: 1",
    "run --hosts n[1- true ::: 1",
    "plan --hosts @none true ::: 1",
    "exec -w n[1- true",
    "exec -w @none true",
    "exec -w n1 -u 0 true",
    "hosts -w n[1-",
    "check -w @none",
    "check --only none",
    "top -w n[1- --once",
    "usage -w n[1-",
    "usage --by none",
    "runs --since abc",
    "sub --host n[1- true",
    "sub --host n[1-3] true",
    "sub --queue none true",
    "make --hosts n[1- -f Makefile all",
    "on --hosts n[1- true",
    "nodeset -f n[1-",
    "volume list -w n[1-",
    "bench net -w n[1-",
    "tune net --only none -w n1,n2",
    "power status -w n[1-",
    "up --only none",
    "cache install -w n[1- hello",
    "lab up --hosts abc",
];

/// A world with a run, and an ssh that knows no host.
fn world() -> World {
    let world = World::new();
    let file = |name: &str, text: &str| fs::write(world.path().join(name), text).unwrap();
    file("file", "");
    file("Makefile", "all:\n\ttrue\n");
    file("h.toml", "hosts = \"h\"\n");
    file("ssh", "#!/bin/sh\necho 'ssh: Could not resolve hostname h: Name or service not known' >&2\nexit 255\n");
    fs::set_permissions(world.path().join("ssh"), fs::Permissions::from_mode(0o755)).unwrap();
    world.homing(&["run", "true", ":::", "1"]);
    world
}

fn status(world: &World, line: &str) -> (Option<i32>, String) {
    let words: Vec<&str> = line.split(' ').collect();
    let mut command = world.command(&words);
    for (name, file) in [("HOMING_SSH", "ssh"), ("HOMING_QUEUE", "queue"), ("HOMING_VOLUMES", "volumes"), ("HOME", "")]
    {
        command.env(name, world.path().join(file));
    }
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_host_that_cannot_be_reached_has_one_status() {
    let world = world();
    for (line, expected) in HOST {
        let (code, said) = status(&world, line);
        assert_eq!(code, Some(*expected), "homing {line}: {said}");
    }
}

#[test]
fn other_mistakes_have_one_status_each() {
    let world = world();
    for (lines, expected) in [(OUTPUT, 254), (INPUT, 255), (VALUE, 255)] {
        for line in lines {
            let (code, said) = status(&world, line);
            assert_eq!(code, Some(expected), "homing {line}: {said}");
            assert!(said.starts_with("homing: ") || said.starts_with("homing make: "), "homing {line}: {said}");
        }
    }
}
