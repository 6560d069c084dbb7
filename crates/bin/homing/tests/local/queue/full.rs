//! Jobs that exhaust a resource: the disk, their memory.

use super::world::World;
use std::process::Command;

/// Returns a command that runs the rest in a mount name space of its own.
fn alone() -> Command {
    let mut alone = Command::new("unshare");
    // A user who may not mount may do so as root of a user namespace.
    alone.args(if rustix::process::geteuid().is_root() { &["-m"][..] } else { &["-rm"] });
    alone
}

#[test]
fn a_job_that_fills_the_disk_ends_and_the_cause_is_said() {
    let w = World::new(1);
    let queue = w.path().join("queue");
    std::fs::create_dir(&queue).unwrap();
    let homing = env!("CARGO_BIN_EXE_homing");
    let line = format!(
        "mount -t tmpfs -o size=1m,mode=1777 none {} && {homing} sub -K 'head -c 8M /dev/zero; exit 3'; \
         echo $?; {homing} jobs 1",
        queue.display()
    );
    let output = w.set_up(&mut alone()).args(["sh", "-c", &line]).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let cause = format!("job 1 ended with 3: no space left in {}", queue.display());
    assert!(err.contains(&cause), "{err}");
    assert!(out.contains("\n3\n") && out.contains("EXIT 3: no space left in"), "{out}");
}

/// A file fills the queue's disk, and is later removed. A running job has its end. The jobs that wait for it start,
/// or end, without another command.
#[test]
fn a_queue_whose_disk_was_full_goes_on_when_there_is_room() {
    let w = World::new(1);
    let queue = w.path().join("queue");
    std::fs::create_dir(&queue).unwrap();
    let homing = env!("CARGO_BIN_EXE_homing");
    let line = format!(
        "set -e; mount -t tmpfs -o size=1m,mode=1777 none {0}; within() {{ for n in $(seq 600); do \
           if eval \"$1\"; then return; fi; sleep 0.1; done; echo \"never: $1\" >&2; exit 1; }}
         {homing} sub -q 'until [ -e go ]; do sleep 0.1; done; echo 1 >> ran; exit 5'
         {homing} sub -q --after 'done(1)' 'echo 2 >> ran'; {homing} sub -q --after 'ended(1)' 'echo 3 >> ran'
         within '[ -e {0}/*/1/start.0.json ]'; cat /dev/zero > {0}/fill 2>/dev/null || true; touch go
         within '[ -e {0}/*/1/end.0.json ]'; sleep 2; {homing} jobs -a --json >full; rm {0}/fill
         within '[ -e {0}/*/3/end.0.json ]'; {homing} jobs -a --json >after",
        queue.display()
    );
    let output = w.set_up(&mut alone()).args(["sh", "-c", &line]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let states = |name: &str| {
        let jobs: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(w.path().join(name)).unwrap()).unwrap();
        jobs.as_array().unwrap().iter().map(|job| job["state"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(states("full"), ["EXIT", "PEND", "PEND"]);
    assert_eq!(states("after"), ["EXIT", "EXIT", "DONE"]);
    assert_eq!(w.lines("ran"), ["1", "3"]);
}

#[test]
fn a_job_with_more_memory_than_it_was_to_have_is_ended() {
    let w = World::new(2);
    let grow = "x=x; while :; do x=$x$x; sleep 0.01; done";
    let output = w.homing(&["sub", "-K", "--mem", "40M", "sh", "-c", grow]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("memory limit"), "{said}");
    assert_eq!(w.homing(&["sub", "-K", "--mem", "1G", "sleep 0.3"]).status.code(), Some(0));
}
