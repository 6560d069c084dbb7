//! A plan: commands for each host in phases, with reasons and undo commands. It is a value that can be printed,
//! compared and carried out.

use homing_model::text::WordReader;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// One command on one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandStep {
    /// The host.
    pub host: String,
    /// Program and arguments; no shell changes them.
    pub argv: Vec<String>,
    /// Its purpose, as reported to the user.
    pub why: String,
    /// The command that undoes it. It must do no harm if the step was never carried out.
    pub undo: Option<Vec<String>>,
}

/// Steps that do not depend on each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandPhase {
    /// Their common purpose.
    pub why: String,
    /// At most one step for each host.
    pub steps: Vec<CommandStep>,
    /// Whether the other hosts go on if the step fails on one host, which is reported.
    pub each_for_itself: bool,
}

/// The continuation after the phases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Then {
    /// The wanted state is reached.
    #[default]
    Done,
    /// The hosts are queried again: the next steps depend on daemons that had to be started first.
    Again,
    /// A long movement of bytes goes on; the hosts are queried again when it has ended.
    Wait(DataMovement),
}

/// A long movement of bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DataMovement {
    /// Files are redistributed.
    Rebalance,
    /// These are emptied: bricks (GlusterFS), or the host with these addresses (MooseFS).
    Drain(Vec<String>),
    /// Copies are brought up to date.
    Heal,
}

impl DataMovement {
    /// Returns the name of the movement.
    pub fn name(&self) -> &'static str {
        match self {
            DataMovement::Rebalance => "rebalance",
            DataMovement::Drain(_) => "drain",
            DataMovement::Heal => "heal",
        }
    }
}

/// Things beside a volume that its changes made for it. Its deletion undoes them, where no other volume needs them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeBeside {
    /// Hosts whose daemon was started and enabled.
    #[serde(default)]
    pub daemons: BTreeSet<String>,
    /// Hosts that joined the pool.
    #[serde(default)]
    pub peers: BTreeSet<String>,
    /// Folders above the stores: the host and the path.
    #[serde(default)]
    pub folders: BTreeSet<(String, String)>,
}

impl MadeBeside {
    /// Whether nothing was made.
    pub fn is_empty(&self) -> bool {
        self.daemons.is_empty() && self.peers.is_empty() && self.folders.is_empty()
    }

    pub(crate) fn add(&mut self, more: &MadeBeside) {
        self.daemons.extend(more.daemons.iter().cloned());
        self.peers.extend(more.peers.iter().cloned());
        self.folders.extend(more.folders.iter().cloned());
    }

    /// Returns the folders on a host, those below others first.
    pub(crate) fn folders_on(&self, host: &str) -> Vec<&str> {
        let own = self.folders.iter().filter(|(of, _)| of == host).map(|(_, path)| path.as_str());
        let mut own: Vec<&str> = own.collect();
        own.sort_by_key(|path| std::cmp::Reverse(path.len()));
        own
    }
}

/// The phases of a change in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumePlan {
    /// The phases; one begins when the one before it has ended on all hosts.
    pub phases: Vec<CommandPhase>,
    /// Notes for the user: options that were chosen, and the reasons.
    pub notes: Vec<String>,
    /// The continuation after the phases.
    pub then: Then,
    /// Things beside the volume that the phases make.
    #[serde(default, skip_serializing_if = "MadeBeside::is_empty")]
    pub made: MadeBeside,
}

impl VolumePlan {
    /// Whether nothing is left to do.
    pub fn is_empty(&self) -> bool {
        self.phases.is_empty() && self.then == Then::Done
    }

    pub(crate) fn phase(&mut self, why: impl Into<String>, steps: Vec<CommandStep>) {
        if !steps.is_empty() {
            self.phases.push(CommandPhase { why: why.into(), steps, each_for_itself: false });
        }
    }

    pub(crate) fn phase_each(&mut self, why: impl Into<String>, steps: Vec<CommandStep>) {
        if !steps.is_empty() {
            self.phases.push(CommandPhase { why: why.into(), steps, each_for_itself: true });
        }
    }
}

impl CommandStep {
    pub(crate) fn new(host: &str, argv: Vec<String>, why: impl Into<String>) -> CommandStep {
        CommandStep { host: host.into(), argv, why: why.into(), undo: None }
    }

    pub(crate) fn undo(mut self, argv: Vec<String>) -> CommandStep {
        self.undo = Some(argv);
        self
    }
}

/// Returns the line that runs a shell command as root on hosts, for a person to paste.
pub(crate) fn on_hosts(hosts: &str, command: &str) -> String {
    shown(&words(&["homing", "exec", "-w", hosts, command]))
}

/// Returns the words of a command.
pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| w.to_string()).collect()
}

/// Builds a command for sh. The arguments are `$1`, `$2`, ... and never become part of the script.
pub(crate) fn script(text: &str, args: &[&str]) -> Vec<String> {
    let text = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join("\n");
    let mut argv = words(&["sh", "-c", &text, "sh"]);
    argv.extend(args.iter().map(|a| a.to_string()));
    argv
}

/// Returns a command as a line that a shell reads back. It uses only single quotes: shlex changes quotes within a
/// word, which makes scripts of several lines unreadable.
pub fn shown(argv: &[String]) -> String {
    argv.iter().map(|word| WordReader::Sh.quoted(word)).collect::<Vec<_>>().join(" ")
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
