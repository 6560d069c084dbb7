//! Many submissions at once, from terminals that end.

use super::world::World;
use std::process::{Child, Stdio};

/// Returns a job that notices when more than `slots` jobs run at once.
fn watchful(slots: usize) -> String {
    format!(
        "touch running/$HOMING_JOB; [ $(ls running | wc -l) -le {slots} ] || echo $HOMING_JOB >> exceeded; \
         echo $HOMING_JOB >> ran; rm running/$HOMING_JOB"
    )
}

/// Starts a terminal in which `count` jobs are submitted, and which then ends.
fn terminal(world: &World, count: usize, job: &str) -> Child {
    let homing = env!("CARGO_BIN_EXE_homing");
    let line = format!("for i in $(seq {count}); do {homing} sub -q '{job}' 2>> refused || echo $? >> refused; done");
    // `script` gives it a controlling terminal, and hangs up at the end.
    let mut command = std::process::Command::new("script");
    command.args(["-qec", &line, "/dev/null"]);
    world.set_up(&mut command).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Returns the ids of all jobs in the order of their starts; all must be done.
fn order(world: &World) -> Vec<i64> {
    let jobs: serde_json::Value = serde_json::from_str(&world.out(&["jobs", "-a", "--json"])).unwrap();
    let mut jobs: Vec<(i64, i64)> = jobs
        .as_array()
        .unwrap()
        .iter()
        .map(|j| {
            assert_eq!(j["state"], "DONE", "{j}");
            (j["start_ns"].as_i64().unwrap(), j["id"].as_i64().unwrap())
        })
        .collect();
    jobs.sort_unstable();
    jobs.into_iter().map(|(_, id)| id).collect()
}

#[test]
fn two_hundred_from_four_terminals_at_once_and_submitters_killed_among_them() {
    let w = World::new(3);
    std::fs::create_dir(w.path().join("running")).unwrap();
    let terminals: Vec<Child> = (0..4).map(|_| terminal(&w, 50, &watchful(3))).collect();
    for step in super::killed::SUBMITTER {
        // A runner is at work, so the last two steps may never be reached.
        let mut command = w.command(&["sub", "-q", &format!("echo killed at {step} >> ran")]);
        command.env("HOMING_QUEUE_DIE", format!("submitter:{step}")).status().unwrap();
    }
    for mut terminal in terminals {
        assert!(terminal.wait().unwrap().success());
    }
    assert_eq!(w.lines("refused"), Vec::<String>::new());
    w.out(&["wait"]);
    let order = order(&w);
    assert!(order.is_sorted(), "{order:?}");
    let (killed, ran): (Vec<String>, Vec<String>) = w.lines("ran").into_iter().partition(|l| l.starts_with("killed"));
    let mut ran: Vec<i64> = ran.iter().map(|l| l.parse().unwrap()).collect();
    ran.sort_unstable();
    ran.dedup();
    assert_eq!((ran.len(), ran.len() + killed.len()), (200, order.len()), "each once: {killed:?}");
    assert!(
        killed.contains(&"killed at job-numbered".to_string()) && !killed.contains(&"killed at number-claimed".into())
    );
    assert_eq!(w.lines("exceeded"), Vec::<String>::new());
}
