//! Records in the folder `golden`, written by an earlier version, are still read.
//!
//! The files are as that version wrote them, without locks. A change that no longer reads them breaks the runs, jobs,
//! images and set-ups of everyone who upgrades. Write new ones beside them; never write these anew.

use crate::world::World;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies the records of one kind into a world.
fn copy(kind: &str, to: &Path) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(kind);
    let mut folders = vec![(from, to.to_path_buf())];
    while let Some((from, to)) = folders.pop() {
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(&from).unwrap().map(|entry| entry.unwrap().path()) {
            let target: PathBuf = to.join(entry.file_name().unwrap());
            if entry.is_dir() {
                folders.push((entry, target));
            } else {
                fs::copy(&entry, &target).unwrap();
            }
        }
    }
}

/// Returns the standard output of a command that must succeed.
fn printed(mut command: Command) -> String {
    let output = command.env("TZ", "UTC").output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_journal_is_listed_and_reported() {
    let world = World::new();
    copy("runs", &world.path().join("runs"));
    let runs = printed(world.command(&["runs"]));
    assert!(runs.contains("20261127-181736-zad"), "{runs}");
    let report = printed(world.command(&["report", "20261127-181736-zad"]));
    assert!(report.contains("1 done, 1 failed") && report.contains("task 2: exit 1 on vm"), "{report}");
}

#[test]
fn jobs_are_listed_with_their_ends_and_output() {
    let world = World::new();
    let base = world.path().join("queue");
    copy("queue", &base.join(format!("homing-queue-{}", rustix::process::geteuid().as_raw())));
    let homing = |args: &[&str]| {
        let mut command = world.command(args);
        command.env("HOMING_QUEUE", &base);
        printed(command)
    };
    let jobs = homing(&["jobs", "-a"]);
    let row = |id: &str| {
        let line = jobs.lines().find(|line| line.split_whitespace().next() == Some(id));
        line.unwrap_or_else(|| panic!("{id}: {jobs}")).to_string()
    };
    assert!(row("1").contains("EXIT 3") && row("1").contains("2026-11-27 18:17"), "{jobs}");
    assert!(row("2[1]").contains("DONE") && row("2[2]").contains("DONE"), "{jobs}");
    assert_eq!(homing(&["peek", "1"]), "out\n");
}

#[test]
fn images_of_a_vault_are_listed_and_printed() {
    let world = World::new();
    let bank = world.path().join("bank");
    copy("bank", &bank);
    let homing = |args: &[&str]| {
        let mut command = world.command(args);
        command.args(["--to", &format!("localhost:{}", bank.display())]).env("HOME", world.path());
        printed(command)
    };
    let list = homing(&["snapshot", "list", "src"]);
    assert!(list.lines().filter(|line| line.ends_with("success")).count() == 2, "{list}");
    let cat = |image| homing(&["snapshot", "cat", "src:f", "--at", image]);
    assert_eq!((cat("20261127181736"), cat("20261127181738")), ("first\n".into(), "first\nsecond\n".into()));
}

/// Returns the text of a record of that kind.
fn text(kind: &str, name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(kind);
    fs::read_to_string(folder.join(name)).unwrap()
}

/// Reads an old record with today's type, and checks that nothing of it is lost.
fn unchanged<T: serde::de::DeserializeOwned + serde::Serialize>(text: &str) {
    let before: serde_json::Value = serde_json::from_str(text).unwrap();
    let read: T = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!(serde_json::to_value(read).unwrap(), before);
}

/// `homing up --undo` has only the journal of a host and the record of this machine.
#[test]
fn the_journal_of_a_set_up_and_its_record_lose_nothing() {
    for n in 1..=7 {
        unchanged::<homing_steps::HostChange>(&text("up", &format!("0000000{n}.json")));
    }
    unchanged::<homing_setup::SetupRecord>(&text("up", "record"));
}

/// The second record was interrupted: it has the plan, and the way back of each step.
#[test]
fn volumes_and_an_interrupted_plan_lose_nothing() {
    for name in ["gold.json", "half.json"] {
        unchanged::<homing_volume::VolumeRecord>(&text("volumes", name));
    }
}
