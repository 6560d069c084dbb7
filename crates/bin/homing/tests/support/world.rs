//! Runs homing as a user does, on one machine, with real processes.
#![allow(dead_code, reason = "each test file takes what it needs")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A folder of its own, with its own record of runs.
pub struct World {
    dir: tempfile::TempDir,
}

impl World {
    /// Makes an empty world.
    pub fn new() -> World {
        World { dir: tempfile::tempdir().unwrap() }
    }
    /// Returns the path of its folder.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
    /// Returns a command that runs homing in the folder, without standard input.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
        command.args(args).current_dir(self.path()).env("HOMING_RUNS", self.path().join("runs"));
        command.env("SHELL", "/bin/sh").env_remove("HOMING_CLUSTER").stdin(Stdio::null());
        command
    }
    /// Runs a command and returns its output.
    pub fn homing(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }
    /// Returns the standard output of a command, which must succeed.
    pub fn out(&self, args: &[&str]) -> String {
        let output = self.homing(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
    /// Returns the standard output of a command with this input.
    pub fn fed(&self, args: &[&str], input: &str) -> String {
        let mut child = self.command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    }
}
