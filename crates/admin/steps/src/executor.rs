//! Runs scripts and programs on hosts.

use homing_exec::{Command, CommandInput, CommandOutcome, FAN_OUT, HostResult, InputSpool, Remote};

/// A script or program to run on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// A script of any length for `sh -s`.
    Script(String),
    /// A program and its arguments.
    Program(Vec<String>),
}

impl Call {
    pub(crate) fn script(&self) -> Option<&str> {
        match self {
            Call::Script(text) => Some(text),
            Call::Program(_) => None,
        }
    }
}

/// The result of a call: its standard output, or why it failed.
pub type CallResult = Result<String, String>;

/// Runs scripts and programs on hosts.
pub trait Executor: Sync {
    /// Runs all at the same time. Answers come in the order of the calls.
    fn run(&self, calls: &[(String, Call)]) -> Vec<CallResult>;

    /// Runs calls that only read: they may run again on a host whose progress is unknown.
    fn look(&self, calls: &[(String, Call)]) -> Vec<CallResult> {
        self.run(calls)
    }

    /// Runs programs alone.
    fn programs(&self, programs: &[(String, Vec<String>)]) -> Vec<CallResult> {
        let call = |(host, argv): &(String, Vec<String>)| (host.clone(), Call::Program(argv.clone()));
        self.run(&programs.iter().map(call).collect::<Vec<_>>())
    }
}

/// Runs calls over ssh.
pub struct SshExecutor {
    /// Connections to the hosts.
    pub remote: Remote,
    /// Whether commands begin with `sudo -n`.
    pub sudo: bool,
}

impl Executor for SshExecutor {
    fn run(&self, calls: &[(String, Call)]) -> Vec<CallResult> {
        homing_os::threads::each_of(calls, FAN_OUT, |(host, call)| self.one(host, call))
    }
}

impl SshExecutor {
    pub(crate) fn one(&self, host: &str, call: &Call) -> CallResult {
        SshExecutor::answer(
            self.remote.run(&[host], &self.command(call)?).next().ok_or("no result came from this host")?,
        )
    }

    /// Returns the command of a call, with its standard input.
    pub(crate) fn command(&self, call: &Call) -> Result<Command, String> {
        Ok(match call {
            Call::Program(argv) => Command::argv(self.words(argv.iter().cloned())),
            Call::Script(text) => {
                let spool = InputSpool::of(text.as_bytes())
                    .map_err(|e| format!("making a temporary file for its script: {e}"))?;
                Command::argv(self.shell()).input(CommandInput::Spool(spool))
            }
        })
    }

    /// Returns the command that interprets a script.
    pub(crate) fn shell(&self) -> Vec<String> {
        self.words(["sh".into(), "-s".into()])
    }

    fn words(&self, argv: impl IntoIterator<Item = String>) -> Vec<String> {
        let sudo: &[&str] = if self.sudo { &["sudo", "-n"] } else { &[] };
        sudo.iter().map(|word| word.to_string()).chain(argv).collect()
    }

    pub(crate) fn answer(result: HostResult) -> CallResult {
        if result.dropped > 0 {
            return Err("its output is longer than homing keeps".into());
        }
        let out = String::from_utf8_lossy(&result.stdout).into_owned();
        match result.outcome {
            CommandOutcome::Exited(0) => Ok(out),
            other => Err(reason(&other, &out, &String::from_utf8_lossy(&result.stderr))),
        }
    }
}

/// Returns the last lines that the program printed, or how it ended if it printed nothing.
fn reason(outcome: &CommandOutcome, out: &str, err: &str) -> String {
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
