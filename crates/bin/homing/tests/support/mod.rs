//! A lab of real hosts for one test, taken down however the test ends.
#![allow(dead_code, reason = "each test program takes what it needs")]

use crate::skipped::skipped;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The program under test.
pub const EXE: &str = env!("CARGO_BIN_EXE_homing");

/// A script that takes perl away from a host of a lab: homing needs none there.
pub const NO_PERL: &str = "[ ! -e /usr/bin/perl ] || mount --bind /dev/null /usr/bin/perl";

/// Runs the program here.
pub fn homing(args: &[&str]) -> Output {
    Command::new(EXE).args(args).output().unwrap()
}

/// Returns standard error.
pub fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns whether a lab with these programs is impossible here, and prints a note then.
pub fn missing(programs: &[&str]) -> bool {
    let there = |p: &&str| ["/usr/sbin", "/usr/bin", "/sbin"].iter().any(|d| Path::new(d).join(p).exists());
    let left_out = !rustix::process::geteuid().is_root() || !programs.iter().all(there);
    if left_out {
        skipped(&format!("the lab needs root and {}", programs.join(", ")));
    }
    left_out
}

/// The time limit of a script. No script takes as long on the slowest machine. `tests/run` ends a whole suite after
/// more than twice that.
const HANGS: Duration = Duration::from_secs(600);

/// Hosts that are up.
pub struct Lab {
    /// Includes the number of the process: two checkouts may be tested at once.
    pub name: String,
}

impl Lab {
    /// Raises the lab with these words of `homing lab up`.
    pub fn up(kind: &str, words: &[&str]) -> Lab {
        let lab = Lab { name: format!("{kind}{}", std::process::id()) };
        lab.down();
        let up = homing(&[&["lab", "up", "--name", &lab.name], words].concat());
        assert!(up.status.success(), "{}", err(&up));
        lab
    }

    /// Runs the script with a shell on the host. A script that hangs fails, with the processes on the hosts.
    pub fn on(&self, host: &str, script: &str) -> Output {
        let child = self.shell(host, script).spawn().unwrap();
        let (ended, end) = mpsc::channel();
        std::thread::spawn(move || ended.send(child.wait_with_output()));
        match end.recv_timeout(HANGS) {
            Ok(output) => output.unwrap(),
            Err(_) => panic!("{host} hangs in: {script}\n{}", self.at_work()),
        }
    }

    fn shell(&self, host: &str, script: &str) -> Command {
        let mut command = Command::new(EXE);
        command.args(["lab", "exec", "--name", &self.name, host, "--", "bash", "-c", script]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Returns the processes of the first hosts, and Slurm's view.
    fn at_work(&self) -> String {
        let look = "timeout 10 ps -eo pid,ppid,etimes,stat,wchan:20,args --forest; \
                    for say in 'squeue -l' 'sinfo -N -l' 'scontrol show licenses'; do timeout 10 $say; done 2>/dev/null";
        let host = |n: u8| {
            let shell = self.shell(&format!("n{n}"), look).output().unwrap();
            format!("n{n}:\n{}", String::from_utf8_lossy(&shell.stdout))
        };
        (1..=4).map(host).collect()
    }

    /// Returns exit status, standard output and standard error of a script.
    pub fn told(&self, host: &str, script: &str) -> (Option<i32>, String, String) {
        let output = self.on(host, script);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), err(&output))
    }

    /// Returns the standard output of a script that must succeed.
    pub fn ok(&self, host: &str, script: &str) -> String {
        let (status, out, err) = self.told(host, script);
        assert_eq!(status, Some(0), "{host}: {script}\n{out}\n{err}");
        out
    }

    /// Runs one test of this program on a host, with `marker` set. An unknown test name fails.
    pub fn test(&self, host: &str, marker: &str, test: &str) {
        let me = std::env::current_exe().unwrap();
        let out =
            self.ok(host, &format!("{marker}=1 {} --exact {test} --include-ignored --nocapture 2>&1", me.display()));
        assert!(out.contains("1 passed"), "{host}: no test {test}\n{out}");
    }

    fn down(&self) -> Output {
        homing(&["lab", "down", "--name", &self.name])
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let down = self.down();
        // A test that has failed prints its own reason.
        let is_gone = matches!(down.status.code(), Some(0 | 255));
        assert!(is_gone || std::thread::panicking(), "lab {} stays: {}", self.name, err(&down));
    }
}
