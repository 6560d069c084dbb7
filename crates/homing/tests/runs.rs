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
