//! Scripts on hosts.

use homing_remote::{Command, Input, Outcome, Remote, Spool};

/// Hosts at work at the same time.
const FAN_OUT: usize = 64;

/// Runs scripts on hosts.
pub trait Executor: Sync {
    /// All at the same time: host and script to standard output, or why it failed. Answers come in the order of the
    /// questions.
    fn run(&self, scripts: &[(String, String)]) -> Vec<Result<String, String>>;
}

/// Over ssh.
pub struct SshExecutor {
    /// Connections to the hosts.
    pub remote: Remote,
    /// Begin commands with `sudo -n`.
    pub sudo: bool,
}

impl Executor for SshExecutor {
    fn run(&self, scripts: &[(String, String)]) -> Vec<Result<String, String>> {
        let one = |(host, script): &(String, String)| self.one(host, script);
        scripts.chunks(FAN_OUT).flat_map(|some| homing_threads::each(some, one)).collect()
    }
}

impl SshExecutor {
    fn one(&self, host: &str, script: &str) -> Result<String, String> {
        let words: &[&str] = if self.sudo { &["sudo", "-n", "sh", "-s"] } else { &["sh", "-s"] };
        let spool = Spool::of(script.as_bytes()).map_err(|e| format!("no temporary file for its script: {e}"))?;
        let command = Command::argv(words.iter().copied()).input(Input::Spool(spool));
        let result = self.remote.run(&[host], &command).next().ok_or("it was not asked")?;
        if result.dropped > 0 {
            return Err("it says more than is kept".into());
        }
        match result.outcome {
            Outcome::Exited(0) => Ok(String::from_utf8_lossy(&result.stdout).into_owned()),
            other => Err(reason(&other, &String::from_utf8_lossy(&result.stderr))),
        }
    }
}

/// The last lines that the script said, or how it ended when it said nothing.
fn reason(outcome: &Outcome, err: &str) -> String {
    let last = homing_remote::last_lines(err);
    if last.is_empty() { outcome.to_string() } else { last }
}
