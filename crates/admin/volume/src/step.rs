//! A plan: commands per host in phases, with reasons and ways back. A value
//! that can be printed, compared and carried out.

use homing_model::text::quoted_unless;
use serde::{Deserialize, Serialize};

/// One command on one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Where.
    pub host: String,
    /// Program and arguments; no shell changes them.
    pub argv: Vec<String>,
    /// What it is for, as said to the user when it is done.
    pub why: String,
    /// What takes it back; must do no harm when the step was never carried out.
    pub undo: Option<Vec<String>>,
}

/// Steps that do not wait for each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// What they do together.
    pub why: String,
    /// At most one a host.
    pub steps: Vec<Step>,
    /// A host on which it fails is told, and the others go on.
    pub each_for_itself: bool,
}

/// What follows the phases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Then {
    /// The wanted state is reached.
    #[default]
    Done,
    /// Ask the hosts again: what is to be done depends on daemons that had to be started first.
    Again,
    /// A long movement of bytes goes on; ask again when it has ended.
    Wait(Watch),
}

/// A long movement of bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Watch {
    /// Files are spread again.
    Rebalance,
    /// These are being emptied: bricks (GlusterFS), or the host with these addresses (MooseFS).
    Drain(Vec<String>),
    /// Copies are brought up to date.
    Heal,
}

impl Watch {
    /// The movement in a word.
    pub fn name(&self) -> &'static str {
        match self {
            Watch::Rebalance => "rebalance",
            Watch::Drain(_) => "drain",
            Watch::Heal => "heal",
        }
    }
}

/// Phases in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// In order; a phase begins when the one before it has ended on all hosts.
    pub phases: Vec<Phase>,
    /// What the user should know: options that were chosen, and why.
    pub notes: Vec<String>,
    /// What follows.
    pub then: Then,
}

impl Plan {
    /// Nothing is left to do.
    pub fn is_empty(&self) -> bool {
        self.phases.is_empty() && self.then == Then::Done
    }

    pub(crate) fn phase(&mut self, why: impl Into<String>, steps: Vec<Step>) {
        if !steps.is_empty() {
            self.phases.push(Phase { why: why.into(), steps, each_for_itself: false });
        }
    }

    pub(crate) fn phase_each(&mut self, why: impl Into<String>, steps: Vec<Step>) {
        if !steps.is_empty() {
            self.phases.push(Phase { why: why.into(), steps, each_for_itself: true });
        }
    }
}

impl Step {
    pub(crate) fn new(host: &str, argv: Vec<String>, why: impl Into<String>) -> Step {
        Step { host: host.into(), argv, why: why.into(), undo: None }
    }

    pub(crate) fn undo(mut self, argv: Vec<String>) -> Step {
        self.undo = Some(argv);
        self
    }
}

/// Words of a command.
pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| w.to_string()).collect()
}

/// A script for sh, its arguments as `$1`, `$2`, ...: never pasted into it.
pub(crate) fn script(text: &str, args: &[&str]) -> Vec<String> {
    let text = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join("\n");
    let mut argv = words(&["sh", "-c", &text, "sh"]);
    argv.extend(args.iter().map(|a| a.to_string()));
    argv
}

/// A command as a line that a shell reads back. Single quotes alone: shlex's
/// change of quotes within a word makes a script of several lines unreadable.
pub fn shown(argv: &[String]) -> String {
    argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    quoted_unless(word, |c| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_command_is_read_back_by_a_shell() {
        let argv = words(&["printf", "%s|", "a b", "", "it's $HOME", "--mode=script", "*", "a\nb"]);
        let said = std::process::Command::new("sh").args(["-c", &shown(&argv)]).output().unwrap();
        assert_eq!(String::from_utf8(said.stdout).unwrap(), "a b||it's $HOME|--mode=script|*|a\nb|");
    }
}
