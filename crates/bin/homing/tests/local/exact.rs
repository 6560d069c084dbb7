//! Commands and names reach a program as they are: quoted as in the shell, and byte by byte.

use crate::world::World;
use serde_json::Value;

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
