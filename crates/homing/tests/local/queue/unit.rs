//! Submissions from a unit of systemd, of which there is a stand-in.

use super::world::World;
use crate::script::script;

/// A world whose submissions come from a unit with this KillMode; `scope` is what systemd-run does.
fn in_a_unit(mode: &str, scope: &str) -> World {
    let world = World::new(1);
    std::fs::create_dir(world.path().join("bin")).unwrap();
    std::fs::write(world.path().join("cgroup"), "0::/system.slice/ci.service\n").unwrap();
    script(&world.path().join("bin/systemctl"), &format!("echo {mode}"));
    let asked = world.path().join("asked");
    script(&world.path().join("bin/systemd-run"), &format!("echo \"$*\" >> {}\n{scope}", asked.display()));
    world
}

/// What the submission of a job says; the job has run.
fn submitted(world: &World) -> String {
    let mut command = world.command(&["sub", "-q", "-K", "touch ran"]);
    let path = format!("{}:{}", world.path().join("bin").display(), std::env::var("PATH").unwrap());
    let output = command.env("PATH", path).env("HOMING_QUEUE_CGROUP", world.path().join("cgroup")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && world.path().join("ran").exists(), "{said}");
    said
}

#[test]
fn a_runner_that_a_unit_starts_is_in_a_scope_of_its_own() {
    let world = in_a_unit("control-group", "while [ $1 != -- ]; do shift; done; shift; exec \"$@\"");
    let said = submitted(&world);
    // The scope is not real: the next submission sees the runner in the unit still, and may say so. This one does not.
    assert!(!said.contains("ci.service"), "{said}");
    let asked = world.lines("asked");
    assert!(asked[0].contains("--scope") && asked[0].ends_with("-- true"), "{asked:?}");
    assert!(asked[1].contains("queue-runner"), "{asked:?}");
}

#[test]
fn where_systemd_gives_no_scope_the_submission_says_what_ends_its_jobs() {
    let world = in_a_unit("control-group", "exit 1");
    let said = submitted(&world);
    assert!(said.contains("jobs end with the unit ci.service") && said.contains("KillMode=process"), "{said}");
}

#[test]
fn a_unit_that_leaves_its_processes_alone_is_no_matter() {
    let world = in_a_unit("process", "exit 1");
    assert_eq!((submitted(&world), world.lines("asked")), (String::new(), Vec::new()));
}
