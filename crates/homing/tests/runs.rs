//! The list of runs: its order, its times, and how old runs go.

use std::path::Path;
use std::process::{Command, Output};

struct World(tempfile::TempDir);

impl World {
    fn new() -> World {
        World(tempfile::tempdir().unwrap())
    }

    fn runs(&self) -> std::path::PathBuf {
        self.0.path().join("runs")
    }

    fn homing(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
        command.args(args).current_dir(self.0.path()).env("HOMING_RUNS", self.runs()).env_remove("TZ");
        command
    }

    fn out(&self, args: &[&str]) -> String {
        told(&mut self.homing(args))
    }

    /// A run that began and ended at this time, ns since the epoch.
    fn past_run(&self, name: &str, began_ns: i64) {
        let dir = self.runs().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        let began = format!(
            r#"{{"at_ns":{began_ns},"event":"run_started","v":1,"run":"{name}","argv":["homing","run","true"],"cwd":"/","host":"h","pid":1,"tasks":0}}"#
        );
        let ended = format!(r#"{{"at_ns":{began_ns},"event":"run_ended","exit":0,"counts":{{}}}}"#);
        std::fs::write(dir.join("journal.jsonl"), format!("{began}\n{ended}\n")).unwrap();
    }
}

fn told(command: &mut Command) -> String {
    let output: Output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn times_are_those_of_tz_and_name_their_zone() {
    if !Path::new("/usr/share/zoneinfo/America/New_York").exists() {
        eprintln!("SKIPPED: no time zones are installed");
        return;
    }
    let world = World::new();
    world.past_run("winter", 1_767_268_800_000_000_000);
    let list = told(world.homing(&["runs"]).env("TZ", "America/New_York"));
    assert!(list.contains("2026-01-01 07:00:00 EST"), "{list}");
    let list = told(world.homing(&["runs"]).env("TZ", "UTC"));
    assert!(list.contains("2026-01-01 12:00:00 UTC"), "{list}");
}

#[test]
fn the_newest_runs_stand_first_and_a_screen_of_them() {
    let world = World::new();
    for run in 0..23 {
        world.past_run(&format!("r{run:02}"), 1_767_268_800_000_000_000 + run);
    }
    let output = world.homing(&["runs"]).output().unwrap();
    let list = String::from_utf8(output.stdout).unwrap();
    let names: Vec<&str> = list.lines().skip(1).map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!((names.len(), names[0], names[19]), (20, "r22", "r03"), "{list}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "homing: 3 older runs not shown: homing runs --all\n");
    assert_eq!(world.out(&["runs", "--all"]).lines().count(), 24);
}

#[test]
fn old_runs_go_when_that_is_asked_for_and_no_others() {
    let world = World::new();
    for (name, days) in [("old", 31), ("recent", 29), ("held", 40)] {
        world.past_run(name, 1_767_268_800_000_000_000);
        let written = std::time::SystemTime::now() - std::time::Duration::from_secs(days * 86_400);
        let journal = std::fs::OpenOptions::new().append(true).open(world.runs().join(name).join("journal.jsonl"));
        journal.unwrap().set_modified(written).unwrap();
    }
    std::fs::write(world.runs().join("held/lock"), r#"{"host":"elsewhere","pid":1,"boot_id":"b","start":1}"#).unwrap();
    std::fs::create_dir_all(world.runs().join("no-run")).unwrap();
    assert_eq!(world.out(&["runs", "--prune", "--dry-run"]), "old\n");
    assert!(world.runs().join("old/journal.jsonl").exists());
    assert_eq!(world.out(&["runs", "--prune"]), "old\n");
    let mut left: Vec<_> = std::fs::read_dir(world.runs()).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["held", "no-run", "recent"]);
    assert_eq!(world.out(&["runs", "--prune", "1d"]), "recent\n");
    assert_eq!(world.homing(&["runs", "--prune", "soon"]).output().unwrap().status.code(), Some(255));
}

#[test]
fn without_a_home_that_can_be_written_runs_are_kept_in_a_private_folder() {
    let world = World::new();
    let no_home = world.0.path().join("home");
    std::fs::write(&no_home, "a file is no folder, also for root").unwrap();
    let homing = |args: &[&str]| {
        let mut command = world.homing(args);
        command.env_remove("HOMING_RUNS").env_remove("XDG_STATE_HOME").env("HOME", &no_home);
        command.env("TMPDIR", world.0.path()).output().unwrap()
    };
    let run = homing(&["run", "echo {}", ":::", "a"]);
    let said = String::from_utf8(run.stderr).unwrap();
    assert_eq!((run.status.code(), &run.stdout[..]), (Some(0), &b"a\n"[..]), "{said}");
    assert!(said.contains("cannot be written") && said.contains("set HOMING_RUNS"), "{said}");
    let list = String::from_utf8(homing(&["runs"]).stdout).unwrap();
    assert!(list.contains("ended, exit 0"), "{list}");
    let folders = std::fs::read_dir(world.0.path()).unwrap().map(|e| e.unwrap());
    let own = folders.into_iter().find(|e| e.file_name().to_string_lossy().starts_with("homing-")).expect("a folder");
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&own.metadata().unwrap().permissions()) & 0o777, 0o700);
}

#[test]
fn a_terminal_has_colours_unless_somebody_asks_for_none() {
    let world = World::new();
    world.past_run("past", 0);
    let homing = env!("CARGO_BIN_EXE_homing");
    let colored = |line: &str| {
        let mut command = Command::new("script");
        command.args(["-qec", line, "/dev/null"]).current_dir(world.0.path()).env("HOMING_RUNS", world.runs());
        told(command.env_remove("NO_COLOR").stdin(std::process::Stdio::null())).contains("\x1b[")
    };
    // A variable that is set to nothing asks for nothing.
    for (set, expected) in [("", true), ("NO_COLOR=", true), ("NO_COLOR=1", false)] {
        assert_eq!(colored(&format!("{set} {homing} report past")), expected, "{set}");
        assert_eq!(colored(&format!("{set} {homing} run --on local true ::: a")), expected, "{set}");
    }
}
