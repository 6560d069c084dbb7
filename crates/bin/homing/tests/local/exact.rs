//! Commands and names reach a program as they are: quoted as in the shell, and byte by byte.

use crate::world::World;
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

#[test]
fn a_plan_prints_the_commands_that_run() {
    let world = World::new();
    for name in ["a b", "it's", "new\nline"] {
        std::fs::write(world.path().join(name), "x").unwrap();
    }
    let words = ["cat {} {%}", ":::", "a b", "it's", "new\nline"];
    let of = |first: &[&str]| world.out(&[first, &words].concat());
    let dry = of(&["run", "--dry-run"]);
    let plan: Value = serde_json::from_str(&of(&["plan", "--json"])).unwrap();
    let commands: Vec<&str> =
        plan["tasks"].as_array().unwrap().iter().map(|task| task["command"].as_str().unwrap()).collect();
    assert_eq!(commands.join("\n") + "\n", dry);
    let text = of(&["plan"]);
    let printed: Vec<&str> = text.lines().map(|line| line.rsplit('\t').next().unwrap()).collect();
    assert_eq!(printed, ["cat 'a b' 1", "cat 'it'\"'\"'s' 1", "cat 'new\\nline' 1"]);
    assert_eq!(world.out(&["run", "-j1", "cat {}", ":::", "a b", "it's", "new\nline"]), "xxx");
}

#[test]
fn a_plan_names_inputs_that_count_as_read_before() {
    let world = World::new();
    std::fs::write(world.path().join("in"), "four").unwrap();
    let text = world.out(&["plan", "grep -c {} in", ":::", "a", "b", "c"]);
    let why: Vec<&str> = text.lines().map(|line| line.split('\t').nth(2).unwrap()).collect();
    let before = "its inputs count as read there before";
    assert_eq!(why, ["holds 100 % of 4 B", before, before]);
    assert_eq!(world.out(&["plan", "echo", ":::", "a"]).split('\t').nth(2), Some("no input on a volume"));
}

/// Checks that the record of a run and its reports have the command that ran, byte by byte.
#[test]
fn the_command_of_a_failed_task_is_exact() {
    let world = World::new();
    world.homing(&["run", "-q", "--name", "other", "test -e {}", ":::", "new\nline"]);
    let run = |name: &[u8]| {
        let mut command = world.command(&["run", "-q", "test -e {}", ":::"]);
        command.arg(OsStr::from_bytes(name)).output().unwrap();
        let parsed = |text: String| serde_json::from_str::<Value>(&text).unwrap();
        let failures = parsed(world.out(&["report", "--json"]))["failures"][0]["command"].clone();
        let compared = parsed(world.out(&["report", "last", "other", "--json"]));
        assert_eq!(compared["runs"][0]["slowest"][0]["command"], failures);
        failures
    };
    assert_eq!(run(b"new\nline"), "test -e 'new\nline'");
    let bytes = run(b"\xff x");
    assert!(bytes["b64"].is_string(), "{bytes}");
    let text = world.out(&["report", "--failed"]);
    assert!(text.contains("test -e '\u{fffd} x'"), "{text}");
    for entry in std::fs::read_dir(world.path().join("runs")).unwrap().flatten() {
        let Ok(journal) = std::fs::read_to_string(entry.path().join("journal.jsonl")) else { continue };
        let started = journal.lines().find(|line| line.contains("task_started")).expect("a task began");
        assert!(started.contains("test -e 'new\\nline'") || started.contains("{\"b64\":"), "{started}");
    }
}
