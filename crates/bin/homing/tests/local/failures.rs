//! The commands that list failed tasks and compare two runs.

use crate::until::until;
use crate::world::World;
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

fn failing(world: &World, name: &str) {
    let input: String = (1..=20).map(|n| format!("in put{n}\n")).collect();
    let script = "n=$(echo {} | tr -dc 0-9); test $((n % 7)) != 0 || { echo bad $n >&2; exit 4; }";
    world.fed(&["run", "-q", "--name", name, script], &input);
}

#[test]
fn failed_tasks_are_listed_with_inputs_status_and_last_words() {
    let world = World::new();
    failing(&world, "first");
    for words in [&["report", "--failed"][..], &["report", "last", "--failed"], &["report", "first", "--failed"]] {
        let text = world.out(words);
        for wanted in ["in put7", "in put14", "bad 7", "bad 14", "exit 4", "2 failed tasks"] {
            assert!(text.contains(wanted), "{words:?}: no {wanted}: {text}");
        }
    }
    let json: Value = serde_json::from_str(&world.out(&["report", "--failed", "--json"])).unwrap();
    let whole: Value = serde_json::from_str(&world.out(&["report", "--json"])).unwrap();
    assert_eq!(json["failures"], whole["failures"]);
    let second = &json["failures"][1];
    assert_eq!(
        (&second["inputs"][0], &second["exit"], &second["said"]),
        (&"in put14".into(), &4.into(), &"bad 14".into())
    );
    assert_eq!(world.out(&["report", "--failed", "-0"]), "in put7\0in put14\0");
    let list = world.out(&["runs"]);
    let head: Vec<&str> = list.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["RUN", "NAME", "STARTED", "STATE", "DONE", "FAILED", "LEFT", "COMMAND"]);
    assert!(list.contains("first"), "{list}");
}

/// Checks that a task that succeeds when the run is resumed has not failed.
#[test]
fn what_a_resumed_run_has_mended_is_listed_no_more() {
    let world = World::new();
    world.homing(&["run", "-q", "test -e {}", ":::", "a", "b"]);
    std::fs::write(world.path().join("a"), "").unwrap();
    world.homing(&["resume", "--failed", "last"]);
    assert_eq!(world.out(&["report", "--failed", "-0"]), "b\0");
    assert_eq!(world.out(&["runs", "--failed", "--json"]).matches("\"name\"").count(), 1);
}

#[test]
fn two_runs_stand_side_by_side() {
    let world = World::new();
    failing(&world, "first");
    world.homing(&["run", "-q", "--name", "second", "true", ":::", "1", "2"]);
    let text = world.out(&["report", "first", "second"]);
    let words = |label: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.starts_with(label)).unwrap_or_else(|| panic!("no {label}: {text}"));
        line.split_whitespace().map(String::from).collect()
    };
    assert_eq!(
        (words("name")[1..].to_vec(), words("failed"), words("done")[1..].to_vec()),
        (
            vec!["first".into(), "second".into()],
            vec!["failed".to_string(), "2".into(), "0".into()],
            vec!["18".to_string(), "2".into()]
        )
    );
    let json: Value = serde_json::from_str(&world.out(&["report", "first", "second", "--json"])).unwrap();
    assert_eq!((&json["runs"][0]["tasks"]["failed"], &json["runs"][0]["state"]), (&2.into(), &"ended".into()));
    let alone: Value = serde_json::from_str(&world.out(&["report", "first", "--json"])).unwrap();
    assert_eq!(json["runs"][0]["failures"], alone["failures"]);
    assert_eq!((&alone["failures"][1]["task"], &json["runs"][1]["failures"]), (&14.into(), &serde_json::json!([])));
}

#[test]
fn a_run_is_not_compared_with_itself() {
    let world = World::new();
    failing(&world, "first");
    for more in [&["first", "last"][..], &["--cost", "last", "first"]] {
        let refused = world.homing(&[&["report"], more].concat());
        let errors = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(255) && errors.contains("is named twice"), "{more:?}: {errors}");
    }
}

#[test]
fn evidence_as_json_goes_to_the_file_that_is_named() {
    let world = World::new();
    for words in [
        &["run", "--json=a.json", "-q", "true", ":::", "1"][..],
        &["run", "--json", "a.json", "-q", "true", ":::", "1"],
    ] {
        let output = world.homing(words);
        assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        let told: Value = serde_json::from_slice(&std::fs::read(world.path().join("a.json")).unwrap()).unwrap();
        assert_eq!((&told["tasks"]["done"], &told["failures"]), (&1.into(), &serde_json::json!([])));
        std::fs::remove_file(world.path().join("a.json")).unwrap();
    }
    // A word behind the command is no option of homing.
    assert_eq!(world.out(&["run", "-q", "echo", "--json", "b.json", ":::", "1"]), "--json b.json 1\n");
}

/// Both sides of `homing report last --failed -0 | homing run -0` begin together. `last` is no run that only waits for
/// its input.
#[test]
fn the_last_run_is_not_the_reader_of_the_report() {
    let world = World::new();
    failing(&world, "first");
    let mut reader = world.command(&["run", "-q", "-0", "echo again {}"]);
    let mut reader = reader.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let has_two = || std::fs::read_dir(world.path().join("runs")).unwrap().flatten().filter(is_run).count() == 2;
    until("the run that reads has its folder", has_two);
    for words in [&["report", "--failed", "-0"][..], &["report", "last", "--failed", "-0"]] {
        assert_eq!(world.out(words), "in put7\0in put14\0", "{words:?}");
    }
    reader.stdin.take().unwrap().write_all(b"in put7\0").unwrap();
    let output = reader.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "again in put7\n");
    assert_eq!(world.out(&["report", "last", "--failed", "-0"]), "");
}

fn is_run(entry: &std::fs::DirEntry) -> bool {
    entry.path().join("journal.jsonl").exists()
}

#[test]
fn a_task_of_a_file_has_the_inputs_that_it_declares() {
    let world = World::new();
    let task = r#"{"name":"q1","command":"false","inputs":["raw/a b.fastq","raw/ref"]}"#;
    std::fs::write(world.path().join("t.jsonl"), task).unwrap();
    world.homing(&["run", "-q", "--tasks", "t.jsonl"]);
    assert_eq!(world.out(&["report", "--failed", "-0"]), "raw/a b.fastq\0raw/ref\0");
    let json: Value = serde_json::from_str(&world.out(&["report", "--failed", "--json"])).unwrap();
    assert_eq!(json["failures"][0]["inputs"], serde_json::json!(["raw/a b.fastq", "raw/ref"]));
    assert!(world.out(&["report", "--failed"]).contains("raw/a b.fastq raw/ref"));
}

#[test]
fn the_file_of_the_evidence_is_opened_first_and_silences_nothing() {
    let world = World::new();
    let output = world.homing(&["run", "--json=none/r.json", "touch {}", ":::", "made"]);
    assert_eq!(output.status.code(), Some(254));
    assert!(!world.path().join("made").exists(), "nothing runs");
    // The file keeps its text until the whole document is there.
    std::fs::write(world.path().join("r.json"), "old").unwrap();
    let refused = world.homing(&["run", "--json=r.json", "--tasks", "none"]);
    assert_eq!(refused.status.code(), Some(255), "{}", String::from_utf8_lossy(&refused.stderr));
    assert_eq!(world.out(&["run", "-q", "-j1", "--json=r.json", "cat r.json #{}", ":::", "a"]), "old");
    let output = world.homing(&["run", "--json=r.json", "exit 3", ":::", "a"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("1 failed") && told.contains("task 1: exit 3"), "{told}");
    let json: Value = serde_json::from_slice(&std::fs::read(world.path().join("r.json")).unwrap()).unwrap();
    assert_eq!(json["failures"][0]["exit"], 3);
}

#[test]
fn a_run_without_any_input_says_why_it_did_nothing() {
    let world = World::new();
    let told = |args: &[&str]| String::from_utf8_lossy(&world.homing(args).stderr).into_owned();
    let text = told(&["run", "echo", "{}", "--", "a", "b"]);
    assert!(text.contains("standard input was empty") && text.contains(":::"), "{text}");
    std::fs::write(world.path().join("none"), "").unwrap();
    for other in [&["run", "echo", "{}", ":::", "a"][..], &["run", "-q", "echo"], &["run", "-q", "echo", ":::"]] {
        assert!(!told(other).contains("so there are no tasks"), "{other:?}");
    }
    for (source, lack) in [
        (&["echo", "::::", "none"][..], "none was empty"),
        (&["-a", "none", "echo"], "none was empty"),
        (&["--tasks", "none"], "none was empty"),
        (&["--tasks", "-"], "standard input was empty"),
        (&["--pipe", "cat"], "standard input was empty"),
        (&["--pipepart", "-a", "none", "cat"], "none was empty"),
        (&["echo", ":::"], "':::' has no value behind it"),
    ] {
        for command in [&["run"][..], &["run", "--dry-run"], &["plan"]] {
            let text = told(&[command, source].concat());
            assert!(
                text.contains(&format!("homing: {lack}, so there are no tasks\n")),
                "{command:?} {source:?}: {text}"
            );
        }
    }
}
