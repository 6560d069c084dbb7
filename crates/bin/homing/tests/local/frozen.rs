//! A mount whose server hangs: commands that name its files fail with the reason, all others go on. The mount is
//! bindfs, which is stopped.

use crate::skipped::skipped;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// A folder with a mount `frozen` that answers until [`World::freeze`].
struct World {
    dir: tempfile::TempDir,
    daemon: Child,
}

impl World {
    /// Mounts the folder. Returns `None`, and prints a note, if bindfs is missing or may not be mounted.
    fn new() -> Option<World> {
        let dir = tempfile::tempdir().unwrap();
        for name in ["real", "frozen", "well"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        for n in 1..=10 {
            std::fs::write(dir.path().join(format!("real/{n}")), "x").unwrap();
            std::fs::write(dir.path().join(format!("well/{n}")), "x").unwrap();
        }
        let (real, frozen) = (dir.path().join("real"), dir.path().join("frozen"));
        let mut bindfs = Command::new("bindfs");
        bindfs.args(["-f", "-o", "attr_timeout=0,entry_timeout=0"]).arg(real).arg(&frozen).stdin(Stdio::null());
        let Ok(daemon) = bindfs.stderr(Stdio::null()).spawn() else {
            skipped("bindfs is not installed (tests/packages installs it)");
            return None;
        };
        let mut world = World { dir, daemon };
        while !frozen.join("1").exists() {
            if world.daemon.try_wait().unwrap().is_some() {
                skipped("bindfs cannot mount here");
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(world)
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let _ = rustix::process::kill_process(rustix::process::Pid::from_child(&self.daemon), signal);
    }

    fn freeze(&self) {
        self.signal(rustix::process::Signal::STOP);
    }

    fn homing(&self, args: &[&str]) -> Output {
        self.recording_in("runs", args)
    }

    /// Runs homing with the runs in that folder. `timeout` ends a process that hangs: its status is then 137.
    fn recording_in(&self, runs: &str, args: &[&str]) -> Output {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "120", env!("CARGO_BIN_EXE_homing")]).args(args).current_dir(self.path());
        command.env("HOMING_RUNS", self.path().join(runs)).env("SHELL", "/bin/sh").env_remove("HOMING_CLUSTER");
        command.stdin(Stdio::null()).output().unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.signal(rustix::process::Signal::CONT);
        let _ = Command::new("umount").arg("-l").arg(self.path().join("frozen")).status();
        self.signal(rustix::process::Signal::KILL);
        let _ = self.daemon.wait();
    }
}

#[test]
fn tasks_that_name_files_of_a_frozen_mount_fail_and_the_others_end() {
    let Some(w) = World::new() else { return };
    w.freeze();
    let files: Vec<String> =
        (1..=10).map(|n| format!("{}/{n}", if [3, 7].contains(&n) { "frozen" } else { "well" })).collect();
    let mut words = vec!["run", "-k", "-j2", "--fs-timeout", "1", "--joblog", "log", "cat {} && echo {#}", ":::"];
    words.extend(files.iter().map(String::as_str));
    let output = w.homing(&words);
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(out, "x1\nx2\nx4\nx5\nx6\nx8\nx9\nx10\n", "{err}");
    assert_eq!(output.status.code(), Some(2), "{err}");
    let told = err.matches("does not answer within 1 s").count();
    assert!(told >= 2 && err.contains("/frozen, fuse"), "{told}: {err}");
}

#[test]
fn where_tells_which_files_are_silent_and_where_the_others_lie() {
    let Some(w) = World::new() else { return };
    w.freeze();
    let output = w.homing(&["where", "--fs-timeout", "1", "--json", "well/1", "frozen/1", "well/2"]);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let files = told["files"].as_array().unwrap();
    let silent: Vec<bool> = files.iter().map(|f| f["reason"].is_string()).collect();
    assert_eq!(silent, [false, true, false], "{told}");
    assert!(files[1]["reason"].as_str().unwrap().contains("does not answer within 1 s"), "{told}");
    assert_eq!(output.status.code(), Some(254));
}

/// Checks that each command ends, with the mount in the reason.
#[test]
fn what_chooses_hosts_by_files_of_a_frozen_mount_says_which_mount_is_silent() {
    let Some(w) = World::new() else { return };
    std::fs::write(w.path().join("well/Makefile"), "all:\n\tcat ../frozen/1 > out\n").unwrap();
    // The mount is below the folder of this build, and make watches the whole folder.
    std::fs::write(w.path().join("Makefile"), "all:\n\techo > out\n").unwrap();
    w.freeze();
    for (words, status) in [
        (&["run", "--on", "ssh", "--fs-timeout", "1", "cat {}", ":::", "frozen/1"][..], 254),
        (&["run", "--on", "ssh", "--fs-timeout", "1", "--near", "frozen", "echo {}", ":::", "1"], 254),
        (&["make", "--assume-shared", "--hosts", "localhost", "-C", "well"], 2),
        (&["make", "--assume-shared", "--hosts", "localhost"], 254),
    ] {
        let output = w.homing(words);
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(err.contains("does not answer within") && err.contains("/frozen, fuse"), "{words:?}: {err}");
        assert_eq!(output.status.code(), Some(status), "{words:?}: {err}");
    }
}

#[test]
fn a_build_whose_record_would_lie_on_a_frozen_mount_is_built() {
    let Some(w) = World::new() else { return };
    std::fs::write(w.path().join("well/Makefile"), "all:\n\techo made > out\n").unwrap();
    w.freeze();
    let output = w.recording_in("frozen/runs", &["make", "--assume-shared", "--hosts", "localhost", "-C", "well"]);
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && w.path().join("well/out").exists(), "{err}");
    assert!(err.contains("is not recorded: the folder of runs did not answer within 5 s"), "{err}");
    assert!(err.contains("1 recipe"), "{err}");
}

#[test]
fn iobsub_names_a_silent_mount_and_ends() {
    let Some(w) = World::new() else { return };
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_homing"), w.path().join("iobsub")).unwrap();
    w.freeze();
    let mut iobsub = Command::new("timeout");
    iobsub.args(["-s", "KILL", "120", "./iobsub", "cat frozen/1"]);
    iobsub.current_dir(w.path()).env("HOMING_QUEUE", w.path().join("queue")).env("HOMING_ENGINE", "local");
    let output = iobsub.env_remove("HOMING_CLUSTER").stdin(Stdio::null()).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    // The folder is one of /tmp, and a silent mount does not show which host is its server.
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("frozen/1 does not answer within 5 s") && err.contains("Cannot find fileserver"), "{err}");
}
