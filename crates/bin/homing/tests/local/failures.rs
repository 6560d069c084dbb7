//! The commands that list failed tasks and compare two runs.

use crate::world::World;
use serde_json::Value;

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
    assert_eq!(json["runs"][0]["tasks"]["failed"], 2);
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
