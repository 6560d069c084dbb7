//! The verbs, one after another.

use crate::until::until;
use crate::world::World;
use std::io::Write;
use std::process::Stdio;

#[test]
fn a_job_runs_and_its_output_is_kept() {
    let w = World::new(2);
    assert_eq!(w.out(&["sub", "-q", "echo out; echo err >&2; pwd"]), "1\n");
    assert_eq!(w.homing(&["wait", "1"]).status.code(), Some(0));
    let real = w.path().canonicalize().unwrap();
    assert_eq!(w.out(&["peek", "1"]), format!("out\n{}\nerr\n", real.display()));
    assert_eq!(w.state("1")["state"], "DONE");
    assert_eq!(w.homing(&["sub", "-K", "-o", "o.%J", "echo x; exit 7"]).status.code(), Some(7));
    assert_eq!(std::fs::read_to_string(w.path().join("o.2")).unwrap(), "x\n");
    // Words are a program and its arguments: nothing is quoted twice.
    w.out(&["sub", "-K", "-q", "printf", "%s|", "a b", "c'd"]);
    assert_eq!(w.out(&["peek", "3"]), "a b|c'd|");
}

#[test]
fn arrays_dependencies_and_batches() {
    let w = World::new(2);
    w.out(&["sub", "-J", "a[1-4]%1", "-o", "out", "echo $HOMING_JOB_INDEX"]);
    w.out(&["sub", "--after", "1", "-K", "cat out"]);
    assert_eq!(w.out(&["peek", "2"]), "1\n2\n3\n4\n");
    w.out(&["sub", "-q", "exit 3"]);
    w.out(&["sub", "-q", "--after", "3", "echo never"]);
    assert_eq!(w.homing(&["wait", "4"]).status.code(), Some(130));
    w.out(&["sub", "-q", "-K", "--after", "exit(3,3) && done(2)", "true"]);
    w.out(&["sub", "-q", "-K", "-n1", "--batch", "-k", "echo {}", ":::", "x", "y z"]);
    assert!(w.out(&["peek", "6"]).starts_with("x\ny z\n"));
}

#[test]
fn what_can_never_start_is_refused() {
    let w = World::new(2);
    for words in
        [&["sub", "--after", "99", "true"][..], &["sub", "--after", "done(nobody)", "true"], &["sub", "-n0", "true"]]
    {
        let output = w.homing(words);
        assert_eq!(output.status.code(), Some(255), "{words:?}");
    }
    // Nor does what only Slurm understands go unheard.
    let output = w.homing(&["sub", "--account", "physics", "true"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(255) && said.contains("--account=physics is for Slurm"), "{said}");
    assert_eq!(w.out(&["jobs", "-a", "--json"]).trim(), "[]");
}

#[test]
fn what_waits_and_what_runs_can_be_killed() {
    let w = World::new(1);
    w.out(&["sub", "-q", "echo > runs; sleep 100"]);
    w.out(&["sub", "-q", "echo no > ran"]);
    until("the first runs", || w.path().join("runs").exists());
    w.out(&["sub", "-q", "--after", "1", "true"]);
    let list = w.out(&["jobs", "--why"]);
    assert!(list.contains("PEND: no free slots") && list.contains("PEND: what it waits for has not"), "{list}");
    w.out(&["kill", "2"]);
    w.out(&["kill", "1"]);
    assert_eq!(w.homing(&["wait", "1", "2"]).status.code(), Some(143));
    assert_eq!(w.state("2")["exit"], 130);
    assert!(!w.path().join("ran").exists());
    assert_eq!(w.homing(&["kill", "99"]).status.code(), Some(255));
}

#[test]
fn a_batch_is_checked_at_once_and_may_come_through_a_pipe() {
    let w = World::new(2);
    let refused = w.homing(&["sub", "--batch", "--no-such-option", "echo"]);
    assert_eq!(refused.status.code(), Some(255));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--no-such-option"), "{refused:?}");
    let mut child = w.command(&["sub", "-q", "--batch", "-k", "echo got {}"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"one\ntwo's\n").unwrap();
    assert!(child.wait().unwrap().success());
    w.out(&["wait"]);
    assert!(w.out(&["peek", "1"]).starts_with("got one\ngot two's\n"));
}

#[test]
fn nothing_of_the_submitters_shell_stays_open() {
    let w = World::new(1);
    let homing = env!("CARGO_BIN_EXE_homing");
    let mut shell = std::process::Command::new("sh");
    // The reader of the pipe must come to its end while the job runs.
    w.set_up(&mut shell).args(["-c", &format!("({homing} sub -q 'sleep 60' 5>&1) | cat")]);
    let begun = std::time::Instant::now();
    assert!(shell.status().unwrap().success());
    assert!(begun.elapsed() < std::time::Duration::from_secs(50));
    until("it runs", || w.state("1")["state"] == "RUN");
}

#[test]
fn a_job_that_cannot_be_started_holds_nobody_up() {
    let w = World::new(1);
    w.out(&["sub", "-q", "until [ -e go ]; do sleep 0.05; done"]);
    w.out(&["sub", "-q", "true"]);
    w.out(&["sub", "-q", "true"]);
    let folder = w.path().join(format!("queue/homing-queue-{}/2", rustix::process::geteuid().as_raw()));
    std::fs::write(folder.join("private.json"), "half a reco").unwrap();
    std::fs::write(w.path().join("go"), "").unwrap();
    w.out(&["wait", "3"]);
    // While a keeper tries to start it, it counts as running.
    until("it waits for the next attempt", || w.state("2")["state"] == "PEND");
    w.out(&["kill", "2"]);
    until("its end is written, also when a keeper just tries", || w.state("2")["state"] == "EXIT");
}
