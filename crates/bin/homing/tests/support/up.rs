//! A lab for `homing up`.
#![allow(dead_code, reason = "each test file takes what it needs")]

use crate::support::{EXE, Lab, err};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A lab that `homing up` sets up, with a home for its records.
pub struct Up {
    pub lab: Lab,
    pub state: tempfile::TempDir,
}

impl Up {
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(EXE);
        self.as_called(command.arg("up").arg(self.state.path().join("c.toml")).args(words).arg("--yes"));
        command
    }

    pub fn as_called<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let config = PathBuf::from("/var/lib/homing/labs").join(&self.lab.name).join("ssh_config");
        command.env("HOMING_SSH", format!("ssh -F {}", config.display())).env("XDG_STATE_HOME", self.state.path());
        command.env("XDG_RUNTIME_DIR", self.state.path()).env_remove("HOMING_CLUSTER").stdin(Stdio::null())
    }

    pub fn up(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    pub fn json(&self, words: &[&str]) -> Value {
        let output = self.up(&[words, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output)))
    }

    /// Kills `homing up` as soon as it reports that this area has begun.
    pub fn killed_at(&self, area: &str) {
        let mut child = self.command(&["--no-check"]).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let begun = lines.any(|line| line.unwrap().starts_with(&format!("{area} on ")));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(begun, "{area} did not begin");
    }
}

/// Returns the failures of a host.
pub fn failed<'v>(told: &'v Value, host: &str) -> Vec<&'v str> {
    let row = told["hosts"].as_array().unwrap().iter().find(|row| row["host"] == host).unwrap();
    row["failed"].as_array().unwrap().iter().map(|why| why.as_str().unwrap()).collect()
}

/// Replaces the program that hosts keep. The replacement has the same size, so homing accepts it. Its output as a
/// leader passes through this command of sed.
pub fn lies(lab: &Lab, host: &str, words: &str) {
    let script = r#"set -e; cd /root/.cache/homing; f=$(ls | grep 'worker-x86_64-[0-9a-f]*$\|worker-aarch64-[0-9a-f]*$')
n=$(stat -c %s $f); mv $f /root/true
cat > $f <<'END'
#!/bin/sh
/root/true "$@" | sed -u -E 'WORDS'
exit
END
truncate -s $n $f; chmod 700 $f"#;
    lab.ok(host, &script.replace("WORDS", words));
}
