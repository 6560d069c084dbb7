//! A command and its standard input.

use crate::input::InputSpool;
use homing_model::text::WordReader;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// A command for all hosts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    pub(crate) program: Program,
    /// The bytes travel separately to another host.
    #[serde(skip)]
    pub(crate) input: CommandInput,
    pub(crate) merged: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Program {
    Argv(Vec<String>),
    Shell(String),
}

/// The standard input of a command.
#[derive(Clone, Debug, Default)]
pub enum CommandInput {
    /// Empty.
    #[default]
    Nothing,
    /// The same bytes on every host.
    Spool(Arc<InputSpool>),
    /// Parts of these bytes, one after the other.
    Parts(Arc<InputSpool>, Vec<Range<u64>>),
}

impl Command {
    /// Returns a command of a program and its arguments, which no shell expands.
    pub fn argv<S: Into<String>>(words: impl IntoIterator<Item = S>) -> Command {
        Command {
            program: Program::Argv(words.into_iter().map(Into::into).collect()),
            input: CommandInput::Nothing,
            merged: false,
        }
    }

    /// Returns a command line for the user's shell on each host.
    pub fn shell(line: impl Into<String>) -> Command {
        Command { program: Program::Shell(line.into()), input: CommandInput::Nothing, merged: false }
    }

    /// Gives all hosts the same standard input.
    pub fn input(mut self, input: CommandInput) -> Command {
        self.input = input;
        self
    }

    /// Returns the standard input of all hosts, if there is one.
    pub fn spool(&self) -> Option<Arc<InputSpool>> {
        match &self.input {
            CommandInput::Nothing => None,
            CommandInput::Spool(spool) | CommandInput::Parts(spool, _) => Some(spool.clone()),
        }
    }

    /// Merges standard error into standard output, in the order in which both come.
    pub fn merged(mut self) -> Command {
        self.merged = true;
        self
    }

    /// Returns the line for sshd, which passes it to the login shell with `-c`.
    pub(crate) fn remote_line(&self, limit: Option<Duration>) -> String {
        match (&self.program, limit) {
            (Program::Argv(words), None) => quoted(words),
            (Program::Shell(line), None) => line.clone(),
            (Program::Argv(words), Some(limit)) => format!("{}{}", bound(limit), quoted(words)),
            // sshd sets SHELL, and all shells expand this word.
            (Program::Shell(line), Some(limit)) => {
                format!("{}\"$SHELL\" -c {}", bound(limit), WordReader::LoginShell.quoted(line))
            }
        }
    }

    /// Returns the words for a child on this machine.
    pub(crate) fn local_words(&self) -> Vec<String> {
        match &self.program {
            Program::Argv(words) => words.clone(),
            Program::Shell(line) => {
                let shell = std::env::var("SHELL").ok().filter(|s| s.starts_with('/'));
                vec![shell.unwrap_or_else(|| "/bin/sh".into()), "-c".into(), line.clone()]
            }
        }
    }
}

/// Returns the prefix that limits the time of a command. sshd does not end the processes of a session with it. The
/// far side therefore enforces the limit: coreutils' `timeout` kills the whole process group.
fn bound(limit: Duration) -> String {
    format!("timeout -k 2 {:.3} ", limit.as_secs_f64().max(0.001))
}

fn quoted(words: &[String]) -> String {
    words.iter().map(|word| WordReader::LoginShell.quoted(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_arrive_as_they_are() {
        let words = ["printf", "%s|", "a b", "", "it's", "$HOME", "*", "-n", "a\nb"];
        let line = Command::argv(words).remote_line(None);
        let output = std::process::Command::new("/bin/sh").args(["-c", &line]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "a b||it's|$HOME|*|-n|a\nb|");
    }

    #[test]
    fn a_limit_is_kept_there() {
        let line = Command::shell("echo $((1+1)); sleep 9").remote_line(Some(Duration::from_millis(200)));
        let output =
            std::process::Command::new("/bin/sh").args(["-c", &line]).env("SHELL", "/bin/sh").output().unwrap();
        assert_eq!((output.stdout.as_slice(), output.status.code()), (&b"2\n"[..], Some(124)));
    }
}
