//! `kill -9` at every step of a submission, of the runner and of a keeper. The program ends itself at a named step,
//! in builds for tests only.

use super::world::World;
use crate::until::until;
use homing_lease::{LeaseDemand, LeaseFolder, Leases};

/// The steps of a submission, in their order.
pub const SUBMITTER: [&str; 8] = [
    "folder-made",
    "record-written",
    "job-written",
    "submit-locked",
    "number-claimed",
    "job-numbered",
    "runner-missing",
    "runner-started",
];

fn dies_at(world: &World, step: &str, args: &[&str]) {
    let status = world.command(args).env("HOMING_QUEUE_DIE", step).status().unwrap();
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(status.signal(), Some(9), "{step} is never reached");
}

#[test]
fn a_killed_submitter_leaves_a_whole_job_or_none() {
    for step in SUBMITTER {
        let w = World::new(2);
        let others =
            |from: usize| (from..from + 3).for_each(|i| drop(w.out(&["sub", "-q", &format!("echo {i} >> ran")])));
        // This submission is the first: with a runner at work the last two steps are not reached.
        dies_at(&w, &format!("submitter:{step}"), &["sub", "-q", "echo killed >> ran"]);
        others(0);
        w.out(&["wait"]);
        let mut ran = w.lines("ran");
        ran.sort_unstable();
        let numbered = ["job-numbered", "runner-missing", "runner-started"].contains(&step);
        let expected = if numbered { vec!["0", "1", "2", "killed"] } else { vec!["0", "1", "2"] };
        assert_eq!(ran, expected, "{step}");
        // And the next runner removes the remains.
        w.out(&["sub", "-q", "-K", "true"]);
        let names = || std::fs::read_dir(w.own_folder()).unwrap().map(|e| e.unwrap().file_name());
        until("swept", || !names().any(|name| name.to_string_lossy().starts_with(".new.")));
    }
}

#[test]
fn a_killed_runner_is_followed_by_another_and_no_job_runs_twice() {
    for step in ["present", "record-written", "dispatching", "dispatched"] {
        let w = World::new(2);
        let sub = |text: &str| {
            let mut command = w.command(&["sub", "-q", text]);
            command.env("HOMING_QUEUE_DIE", format!("runner:{step}"));
            assert!(command.status().unwrap().success());
        };
        (0..4).for_each(|i| sub(&format!("echo {i} >> ran; sleep 0.1")));
        w.out(&["wait"]);
        let mut ran = w.lines("ran");
        ran.sort_unstable();
        assert_eq!(ran, ["0", "1", "2", "3"], "{step}");
    }
}

#[test]
fn what_a_killed_keeper_kept_is_ended_shown_and_run_again() {
    for step in ["started", "spawned", "ended"] {
        let w = World::new(1);
        // The second process is not the keeper's child, and in a session of its own.
        let job = "echo $$ >> ran; [ -e second ] || setsid sh -c 'echo $$ >> ran; sleep 200; true'";
        let mut command = w.command(&["sub", "-q", if step == "ended" { "echo $$ >> ran" } else { job }]);
        command.env("HOMING_QUEUE_DIE", format!("keeper:{step}"));
        assert!(command.status().unwrap().success());
        // A command before that runner has its lock would start another runner, whose keepers have no such order.
        until("it is started", || w.own_folder().join("1/start.0.json").exists());
        until("it is lost", || w.state("1")["state"] == "LOST");
        // Its processes did not outlive it.
        until("its processes are gone", || {
            w.out(&["jobs"]);
            let alive = |p: &String| std::path::Path::new(&format!("/proc/{p}")).exists();
            !w.lines("ran").iter().any(alive)
        });
        let said = String::from_utf8(w.homing(&["jobs"]).stderr).unwrap();
        assert!(said.contains("homing sub --again 1"), "{said}");
        std::fs::write(w.path().join("second"), "").unwrap();
        until("the runner that had the order to die is gone", || !w.has_runner());
        w.out(&["sub", "--again", "1"]);
        w.out(&["wait", "1"]);
        assert_eq!(w.state("1")["state"], "DONE", "{step}");
    }
}

#[test]
fn a_restart_of_the_machine_interrupts_what_ran_and_goes_on_with_what_waited() {
    let w = World::new(1);
    w.out(&["sub", "-q", "echo 1 >> ran; [ -e second ] || sleep 200"]);
    w.out(&["sub", "-q", "echo 2 >> ran"]);
    until("the first runs", || w.lines("ran") == ["1"]);
    // Kills all at once, as a power cut would: no process can write a last record.
    w.kill_all();
    std::fs::write(w.path().join("second"), "").unwrap();
    let after = |args: &[&str]| {
        let output = w.command(args).env("HOMING_QUEUE_BOOT", "the next").output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (list, said) = after(&["jobs"]);
    assert!(list.contains("LOST"), "{list}");
    assert!(said.contains("homing sub --again 1"), "{said}");
    after(&["wait", "2"]);
    assert_eq!(w.lines("ran"), ["1", "2"]);
    after(&["sub", "--again", "1"]);
    after(&["wait", "1"]);
    assert_eq!(w.lines("ran"), ["1", "2", "1"]);
}

#[test]
fn what_jobs_have_of_slots_that_hosts_share_is_theirs_while_runner_after_runner_is_killed() {
    let w = World::new(4);
    let folder = w.path().join(".homing-leases");
    let wide = format!("[queue.wide]\ndefault = true\nslots = 2\nleases = {folder:?}\n");
    let cluster = std::fs::read_to_string(w.path().join("cluster.toml")).unwrap() + &wide;
    std::fs::write(w.path().join("cluster.toml"), cluster).unwrap();
    (0..2).for_each(|_| drop(w.out(&["sub", "-q", "echo 1 >> ran; until [ -e go ]; do sleep 0.1; done"])));
    until("both run", || w.lines("ran").len() == 2);
    // A runner on another host would start jobs as well.
    let place = LeaseFolder { folder: folder.clone(), server: "queue-wide".into(), limit: Some(2), unfit: None };
    let (mut other, _) = Leases::open(place).unwrap();
    let wish = LeaseDemand { wanted: 2, used: 0, limit: None };
    let mut others_may = || other.turn(wish, true, std::time::Instant::now()).unwrap().may_use;
    let own = format!(".{}.", std::process::id());
    for killed in 0..2 {
        let runner = w.runner().expect("a runner is at work");
        rustix::process::kill_process(runner, rustix::process::Signal::KILL).unwrap();
        until("another has what its jobs use", || {
            assert_eq!(others_may(), 0, "{killed}");
            let names = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
            let names: Vec<String> = names.filter(|name| !name.contains(&own)).collect();
            names.len() == 1 && !names[0].contains(&format!(".{}.", runner.as_raw_nonzero()))
        });
    }
    std::fs::write(w.path().join("go"), "").unwrap();
    until("they are free", || others_may() == 2);
    w.out(&["wait"]);
}

#[test]
fn a_runner_whose_folder_is_gone_ends() {
    let w = World::new(1);
    let ids = [w.out(&["sub", "-q", "sleep 1000"]), w.out(&["sub", "-q", "true"])];
    until("one runs and one waits", || w.state(ids[0].trim())["state"] == "RUN" && w.has_runner());
    std::fs::rename(w.own_folder(), w.path().join("gone")).unwrap();
    until("the runner has ended", || !w.has_runner());
}
