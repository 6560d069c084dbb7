//! Sets the system's clock while the program runs. Nothing may hang or end early, and durations must stay right. The
//! clock is that of `tests/clock_shift.c`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// An hour to either side during a run, and back and forth every 50 ms.
const SHIFTS: [&str; 3] = ["-3600", "3600", "288/50"];

struct World {
    dir: tempfile::TempDir,
    library: PathBuf,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let library = crate::preload::preload(dir.path(), "clock_shift.c");
        World { dir, library }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Returns a command whose clock, and that of its children, follows the file `shift`.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
        command.args(args).current_dir(self.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("HOMING_RUNS", self.path().join("runs")).env("HOMING_QUEUE", self.path().join("queue"));
        command.env("SHELL", "/bin/sh").env("HOMING_ENGINE", "local").env_remove("HOMING_CLUSTER");
        command.env("LD_PRELOAD", &self.library).env("CLOCK_SHIFT", format!("@{}/shift", self.path().display()));
        command
    }

    fn out(&self, args: &[&str]) -> Output {
        ended(self.command(args).spawn().unwrap())
    }
}

/// Waits for the end of a process for 300 s. Each takes far less, unless it waits by a clock that was shifted.
fn ended(mut child: Child) -> Output {
    let pid = rustix::process::Pid::from_child(&child);
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(300) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            panic!("it waits: {}", String::from_utf8_lossy(&child.wait_with_output().unwrap().stderr));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

#[test]
fn a_run_goes_on_and_its_durations_are_right() {
    for shift in SHIFTS {
        let w = World::new();
        let task = format!("test {{}} != 6 || echo {shift} > shift; sleep 0.1");
        let args: Vec<String> = (1..=12).map(|n| n.to_string()).collect();
        let mut words =
            vec!["run", "-q", "-j2", "--timeout", "10000%", "--delay", "0.02", "--joblog", "log", &task, ":::"];
        words.extend(args.iter().map(String::as_str));
        let begun = Instant::now();
        let output = w.out(&words);
        let most_s = begun.elapsed().as_secs_f64();
        assert_eq!(output.status.code(), Some(0), "{shift}: {}", String::from_utf8_lossy(&output.stderr));
        let log = std::fs::read_to_string(w.path().join("log")).unwrap();
        let times: Vec<Vec<f64>> = log
            .lines()
            .skip(1)
            .map(|l| l.split('\t').skip(2).take(2).map(|f| f.trim().parse().unwrap()).collect())
            .collect();
        assert_eq!(times.len(), 12, "{log}");
        assert!(times.iter().all(|t| (0.1..most_s).contains(&t[1])), "{shift}: {log}");
        let starts = times.iter().map(|t| t[0]);
        let spread = starts.clone().fold(f64::MIN, f64::max) - starts.fold(f64::MAX, f64::min);
        assert!((0.4..most_s).contains(&spread), "{shift}: {log}");
        let report: serde_json::Value = serde_json::from_slice(&w.out(&["report", "last", "--json"]).stdout).unwrap();
        let wall_s = report["wall_us"].as_f64().unwrap() / 1e6;
        assert!((0.5..most_s).contains(&wall_s), "{shift}: {report}");
    }
}

#[test]
fn a_kill_after_a_signal_by_a_clock_that_was_ahead_is_a_kill() {
    let w = World::new();
    std::fs::write(w.path().join("shift"), "3600").unwrap();
    w.out(&["sub", "-q", "trap 'echo > heard' USR1; echo > runs; while :; do sleep 0.1; done"]);
    crate::until::until("it runs", || w.path().join("runs").exists());
    w.out(&["kill", "-s", "USR1", "1"]);
    crate::until::until("it heard", || w.path().join("heard").exists());
    std::fs::remove_file(w.path().join("shift")).unwrap();
    w.out(&["kill", "1"]);
    assert_eq!(w.out(&["wait", "1"]).status.code(), Some(143));
}

/// Whether a runner holds its lock: the kernel's list has it by the number of the file.
fn a_runner_is_at_work(w: &World) -> bool {
    let own = format!("queue/homing-queue-{}/runner.lock", rustix::process::geteuid().as_raw());
    let file = std::os::unix::fs::MetadataExt::ino(&w.path().join(own).metadata().unwrap());
    std::fs::read_to_string("/proc/locks").unwrap().contains(&format!(":{file} "))
}

#[test]
fn an_ended_job_is_kept_for_a_week_of_the_clock_that_nobody_sets() {
    let w = World::new();
    // Each job has a runner of its own, which removes old jobs before it starts anything.
    let run_one = |boot: &str| {
        let mut command = w.command(&["sub", "-q", "-K", "true"]);
        assert!(ended(command.env("HOMING_QUEUE_BOOT", boot).spawn().unwrap()).status.success());
        crate::until::until("its runner is gone", || !a_runner_is_at_work(&w));
    };
    let listed = || String::from_utf8(w.out(&["jobs", "-a"]).stdout).unwrap().lines().count() - 1;
    run_one("this");
    std::fs::write(w.path().join("shift"), "777600").unwrap();
    run_one("this");
    assert_eq!(listed(), 2, "nine days of wall time are no week of this boot");
    run_one("the next");
    assert_eq!(listed(), 3, "of its boot no other clock is left, and the last jobs stay whatever a clock says");
}
