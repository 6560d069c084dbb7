//! Scripts and programs on hosts.

use homing_exec::{Command, Input, Outcome, Remote, Spool};

/// Hosts at work at the same time.
const FAN_OUT: usize = 64;

/// What is run on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// A text for `sh -s`, however long.
    Script(String),
    /// A program and its arguments.
    Program(Vec<String>),
}

/// What a call came to: its standard output, or why it failed.
pub type Answer = Result<String, String>;

/// Runs scripts and programs on hosts.
pub trait Executor: Sync {
    /// All at the same time. Answers come in the order of the questions.
    fn run(&self, calls: &[(String, Call)]) -> Vec<Answer>;

    /// The same for programs alone.
    fn programs(&self, programs: &[(String, Vec<String>)]) -> Vec<Answer> {
        let call = |(host, argv): &(String, Vec<String>)| (host.clone(), Call::Program(argv.clone()));
        self.run(&programs.iter().map(call).collect::<Vec<_>>())
    }
}

/// Over ssh.
pub struct SshExecutor {
    /// Connections to the hosts.
    pub remote: Remote,
    /// Begin commands with `sudo -n`.
    pub sudo: bool,
}

impl Executor for SshExecutor {
    fn run(&self, calls: &[(String, Call)]) -> Vec<Answer> {
        let one = |(host, call): &(String, Call)| self.one(host, call);
        calls.chunks(FAN_OUT).flat_map(|some| homing_threads::each(some, one)).collect()
    }
}

impl SshExecutor {
    fn one(&self, host: &str, call: &Call) -> Answer {
        let words = |argv: &[&str]| {
            let sudo: &[&str] = if self.sudo { &["sudo", "-n"] } else { &[] };
            Command::argv(sudo.iter().chain(argv).copied())
        };
        let command = match call {
            Call::Program(argv) => words(&argv.iter().map(String::as_str).collect::<Vec<_>>()),
            Call::Script(text) => {
                let spool = Spool::of(text.as_bytes()).map_err(|e| format!("no temporary file for its script: {e}"))?;
                words(&["sh", "-s"]).input(Input::Spool(spool))
            }
        };
        let result = self.remote.run(&[host], &command).next().ok_or("it was not asked")?;
        if result.dropped > 0 {
            return Err("it says more than is kept".into());
        }
        let out = String::from_utf8_lossy(&result.stdout).into_owned();
        match result.outcome {
            Outcome::Exited(0) => Ok(out),
            other => Err(reason(&other, &out, &String::from_utf8_lossy(&result.stderr))),
        }
    }
}

/// The last lines that the program said, or how it ended when it said nothing.
fn reason(outcome: &Outcome, out: &str, err: &str) -> String {
    let last = homing_exec::last_lines(if err.trim().is_empty() { out } else { err });
    if last.is_empty() { outcome.to_string() } else { format!("{last} ({outcome})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_and_programs_answer_in_order_with_what_was_said_last() {
        let here = SshExecutor { remote: Remote::new(homing_exec::Options::default()), sudo: false };
        let script = |text: &str| ("localhost".to_string(), Call::Script(text.into()));
        let program = ("localhost".to_string(), Call::Program(vec!["echo".into(), "it's $HOME".into()]));
        let said = here.run(&[script("sleep 0.1; echo first"), program, script("echo why >&2; exit 3")]);
        assert_eq!(said[..2], [Ok("first\n".to_string()), Ok("it's $HOME\n".to_string())]);
        let why = said[2].as_ref().unwrap_err();
        assert!(why.starts_with("why (") && why.contains('3'), "{why}");
    }
}
