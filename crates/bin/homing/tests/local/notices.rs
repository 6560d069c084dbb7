//! `--on-exit` runs a command after the end of a run or a job, however it ended.

use crate::world::World;
use std::time::{Duration, Instant};

const LINE: &str = "echo $HOMING_EXIT $HOMING_DONE $HOMING_FAILED $HOMING_NAME > part; mv part told";

fn told(world: &World) -> String {
    std::fs::read_to_string(world.path().join("told")).unwrap_or_default()
}

#[test]
fn the_command_of_a_run_has_its_status_and_its_counts() {
    let world = World::new();
    let output = world.homing(&["run", "-q", "--name", "night", "--on-exit", LINE, "exit {}", ":::", "0", "0", "3"]);
    assert_eq!((output.status.code(), told(&world).as_str()), (Some(1), "1 2 1 night\n"));
    let line = "test -n \"$HOMING_RUN\" && echo hello && exit 7";
    let output = world.homing(&["run", "-q", "--on-exit", line, "echo out", ":::", "1"]);
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stdout).as_ref()), (Some(0), "out 1\n"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("hello") && errors.contains("--on-exit") && errors.contains("exit status: 7"), "{errors}");
}

#[test]
fn an_interrupted_run_runs_it_too() {
    let world = World::new();
    let words = ["run", "-q", "--on-exit", LINE, "touch began; exec sleep 600", ":::", "1"];
    let mut run = world.command(&words).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !world.path().join("began").exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = rustix::process::Pid::from_child(&run);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let status = run.wait().unwrap();
    assert_eq!((status.code(), told(&world).as_str()), (Some(143), "143 0 0\n"));
}
