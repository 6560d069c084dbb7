//! Submissions from a unit of systemd, which scripts imitate.

use super::world::World;
use crate::script::script;
use crate::until::until;

/// Makes a world whose submissions come from a unit with this KillMode. `scope` is the script of systemd-run.
fn in_a_unit(mode: &str, scope: &str) -> World {
    let world = World::new(1);
    std::fs::create_dir(world.path().join("bin")).unwrap();
    std::fs::write(world.path().join("cgroup"), "0::/system.slice/ci.service\n").unwrap();
    script(&world.path().join("bin/systemctl"), &format!("echo {mode}"));
    let asked = world.path().join("asked");
    script(&world.path().join("bin/systemd-run"), &format!("echo \"$*\" >> {}\n{scope}", asked.display()));
    world
}

/// Submits a job and returns standard error.
fn submitted(world: &World) -> String {
    let mut command = world.command(&["sub", "-q", "touch ran"]);
    let path = format!("{}:{}", world.path().join("bin").display(), std::env::var("PATH").unwrap());
    let output = command.env("PATH", path).env("HOMING_QUEUE_CGROUP", world.path().join("cgroup")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn a_runner_that_a_unit_starts_is_in_a_scope_of_its_own() {
    let scope = "while [ $1 != -- ]; do shift; done; shift; sleep 1; echo 0::/run-1.scope > $HOMING_QUEUE_CGROUP.$$; exec \"$@\"";
    let world = in_a_unit("control-group", scope);
    assert_eq!(submitted(&world), "");
    let asked = world.lines("asked");
    assert!(asked[0].contains("--scope") && asked[0].ends_with("-- true"), "{asked:?}");
    assert!(asked[1].contains("queue-runner"), "{asked:?}");
    // The submission waits until the runner has left the unit: the end of the unit could end the runner.
    let scopes = std::fs::read_dir(world.path()).unwrap().flatten();
    assert_eq!(scopes.filter(|entry| entry.file_name().to_string_lossy().starts_with("cgroup.")).count(), 2);
    until("the job runs", || world.path().join("ran").exists());
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
