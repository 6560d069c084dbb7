//! What jobs take until nothing is left: the disk, their memory.

use crate::world::World;
use std::process::Command;

#[test]
fn a_job_that_fills_the_disk_ends_and_the_cause_is_said() {
    let w = World::new(1);
    let queue = w.path().join("queue");
    std::fs::create_dir(&queue).unwrap();
    let mut alone = Command::new("unshare");
    // A user who may not mount may do so as root of a name space.
    alone.args(if rustix::process::geteuid().is_root() { &["-m"][..] } else { &["-rm"] });
    let homing = env!("CARGO_BIN_EXE_homing");
    let line = format!(
        "mount -t tmpfs -o size=1m,mode=1777 none {} && {homing} sub -K 'head -c 8M /dev/zero; exit 3'; \
         echo $?; {homing} jobs 1",
        queue.display()
    );
    let output = w.set_up(&mut alone).args(["sh", "-c", &line]).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let cause = format!("job 1 ended with 3: no space left in {}", queue.display());
    assert!(err.contains(&cause), "{err}");
    assert!(out.contains("\n3\n") && out.contains("EXIT 3: no space left in"), "{out}");
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
