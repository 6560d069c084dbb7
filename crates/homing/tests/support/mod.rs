//! A lab of real hosts for one test, taken down however the test ends.

use std::path::Path;
use std::process::{Command, Output};

/// The program under test.
pub const EXE: &str = env!("CARGO_BIN_EXE_homing");

/// Runs the program here.
pub fn homing(args: &[&str]) -> Output {
    Command::new(EXE).args(args).output().unwrap()
}

/// What was said on standard error.
pub fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether a lab with these programs cannot be had here; says so.
pub fn missing(programs: &[&str]) -> bool {
    let there = |p: &&str| ["/usr/sbin", "/usr/bin", "/sbin"].iter().any(|d| Path::new(d).join(p).exists());
    let left_out = !rustix::process::geteuid().is_root() || !programs.iter().all(there);
    if left_out {
        eprintln!("SKIPPED: the lab needs root and {}", programs.join(", "));
    }
    left_out
}

/// Hosts that are up.
pub struct Lab {
    /// With the process's number: two checkouts may be tested at once.
    pub name: String,
}

impl Lab {
    /// Raises it with these words of `homing lab up`.
    pub fn up(kind: &str, words: &[&str]) -> Lab {
        let lab = Lab { name: format!("{kind}{}", std::process::id()) };
        lab.down();
        let up = homing(&[&["lab", "up", "--name", &lab.name], words].concat());
        assert!(up.status.success(), "{}", err(&up));
        lab
    }

    /// What a shell on the host makes of the script.
    pub fn on(&self, host: &str, script: &str) -> Output {
        homing(&["lab", "exec", "--name", &self.name, host, "--", "bash", "-c", script])
    }

    /// Exit status, standard output, error output of a script.
    pub fn told(&self, host: &str, script: &str) -> (Option<i32>, String, String) {
        let output = self.on(host, script);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), err(&output))
    }

    /// Standard output of a script that must succeed.
    pub fn ok(&self, host: &str, script: &str) -> String {
        let (status, out, err) = self.told(host, script);
        assert_eq!(status, Some(0), "{host}: {script}\n{out}\n{err}");
        out
    }

    fn down(&self) -> Output {
        homing(&["lab", "down", "--name", &self.name])
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let down = self.down();
        // A test that has failed says its own reason.
        assert!(down.status.success() || std::thread::panicking(), "lab {} stays: {}", self.name, err(&down));
    }
}
