//! The effects of admission that users see: the limit in force, and the limit with which the next run of a command
//! begins. The second needs a lab with a slow disk. Without one it prints a note and is skipped.

use crate::support::{EXE, Lab, missing};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Returns the limit of this machine's storage that `homing hosts` reports.
fn in_force(runs: &std::path::Path) -> Value {
    let mut hosts = Command::new(EXE);
    hosts.args(["hosts", "--json"]).env("HOMING_RUNS", runs).env_remove("HOMING_CLUSTER");
    let told: Value = serde_json::from_slice(&hosts.output().unwrap().stdout).unwrap();
    told["hosts"][0]["io_limit"].clone()
}

#[test]
fn hosts_tells_the_limit_of_a_run_that_is_under_way() {
    let dir = tempfile::tempdir().unwrap();
    let (runs, own) = (dir.path().join("runs"), rustix::system::uname().nodename().to_string_lossy().into_owned());
    // A task that reads no file does not change the limit with which its command ended before.
    let task = ": {}; while [ ! -e over ]; do sleep 0.05; done";
    let device = |p: &std::path::Path| std::os::unix::fs::MetadataExt::dev(&p.metadata().unwrap());
    let here = dir.path().canonicalize().unwrap();
    let mount = here.ancestors().take_while(|p| device(p) == device(&here)).last().unwrap();
    let known = serde_json::json!({ format!("{}\t{task}", mount.display()): { "at_ns": 1, "limits": { own: 3 } } });
    std::fs::write(dir.path().join("admission.json"), known.to_string()).unwrap();
    let mut run = Command::new(EXE);
    run.args(["run", "-q", "--io", "auto", "--no-detect", "-j8", task, ":::", "a", "b"]);
    run.current_dir(&here).env("HOMING_RUNS", &runs).env("SHELL", "/bin/sh").stdin(Stdio::null());
    assert_eq!(in_force(&runs), Value::Null);
    let mut run = run.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while in_force(&runs) != 3 {
        assert!(Instant::now() < deadline && run.try_wait().unwrap().is_none(), "the limit is never shown");
    }
    std::fs::write(here.join("over"), "").unwrap();
    assert!(run.wait().unwrap().success());
    assert_eq!(in_force(&runs), Value::Null, "the run is over");
}

/// Raises a lab with files of 8 MB each on a disk with one head: /scratch/in/f1, f2 and so on.
fn slow_disk(name: &str) -> Lab {
    let lab = Lab::up(name, &["--hosts", "1", "--disk", "1G", "--disk-model", "hdd"]);
    lab.ok("n1", "mkdir /scratch/in; for i in $(seq 24); do head -c 8M /dev/urandom > /scratch/in/f$i; done; sync");
    lab
}

/// Runs until a limit was found. On a busy machine that may take several runs: there the disk may not be the
/// bottleneck.
fn find_limit(lab: &Lab, run: &str) -> Value {
    // Files that were read before must come from the disk again. A host of the lab may not drop the machine's caches.
    let cold = || std::fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
    let found = || {
        let kept = lab.on("n1", "cat /scratch/state/admission.json");
        let kept: Value = serde_json::from_slice(&kept.stdout).ok()?;
        let least = kept.as_object()?.values().next()?["limits"]["n1"].as_u64()?;
        (1..16).contains(&least).then_some(kept)
    };
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        cold();
        lab.ok("n1", run);
        if let Some(kept) = found() {
            return kept;
        }
        assert!(Instant::now() < deadline, "no run found a limit on a disk that seeks");
    }
}

/// Returns the limits that the runs have recorded.
fn limits(lab: &Lab) -> Vec<Value> {
    let journal = lab.ok("n1", "cat /scratch/state/runs/*/*.jsonl");
    let events = journal.lines().map(|l| serde_json::from_str::<Value>(l).unwrap());
    events.filter(|e| e["event"] == "limit").collect()
}

/// Checks that a command's first run finds a limit, and that its second begins with it.
fn found_and_begun_with(lab: &Lab, command: &str, inputs: &str) -> (Value, Vec<Value>) {
    lab.ok("n1", "rm -rf /scratch/state");
    let run = format!(
        "cd /scratch/in && HOMING_RUNS=/scratch/state/runs \
         {EXE} run -q --io auto -j16 '{command}' ::: {inputs} >/dev/null"
    );
    let kept = find_limit(lab, &run);
    let found = limits(lab);
    let (key, lesson) = kept.as_object().unwrap().iter().next().unwrap();
    assert_eq!(*key, format!("/scratch\t{command}"));
    let limit = lesson["limits"]["n1"].as_u64().unwrap();
    lab.ok("n1", "rm -r /scratch/state/runs");
    lab.ok("n1", &run);
    let first = limits(lab).remove(0);
    assert_eq!((first["limit"].as_u64(), first["storage"].as_str()), (Some(limit), Some("n1")), "{first}");
    assert_eq!(first["why"], "an earlier run of this command ended with it");
    (lesson.clone(), found)
}

#[test]
fn a_limit_that_was_found_is_begun_with() {
    if missing(&["losetup"]) {
        return;
    }
    let lab = slow_disk("adm");
    let (lesson, _) = found_and_begun_with(&lab, "md5sum", "f*");
    assert_eq!(lesson["movers"], serde_json::json!([]), "its tasks name what they read");
    // The name of the file appears only after the shell has put it together.
    let (lesson, found) = found_and_begun_with(&lab, "md5sum $(echo f){}", "$(seq 24)");
    assert_eq!(lesson["movers"], serde_json::json!(["md5sum"]));
    assert_eq!(found[0]["limit"], 1, "they begin with few: {found:?}");
}
