//! The kinds of work that homing passes on along a tree of hosts.

use crate::rsync::RsyncRequest;
use homing_exec::{
    Command, CommandInput, CommandOutcome, Errand, Giver, InputSpool, Note, PoolEvents, Remote, Scripts,
};
use homing_model::exit;
use homing_steps::{Along, Led, SshExecutor};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

/// Reports on standard error the work that was not done along the tree.
pub fn note() -> Note {
    Arc::new(|text| homing_os::say!("homing: {text}"))
}

/// Carries out steps of hosts along a tree, if there are more than `width`.
pub fn along(direct: SshExecutor, width: usize) -> Along {
    let tree = |remote: &Remote, hosts: &[String], led: Led| {
        let errand = match led {
            Led::Look(command) => Passed::Run { command, again: true },
            Led::Act(words, scripts) => Passed::Act { words, scripts },
        };
        remote.run_tree(hosts, errand, note())
    };
    Along::new(direct, width, Box::new(tree))
}

/// Returns the host that gave another its files. A leader got its own from this machine.
pub fn given_by(giver: Giver, hosts: &[String], host: &str) -> Option<String> {
    match giver {
        Giver::Leader(leader) if hosts[leader] != host => Some(hosts[leader].clone()),
        _ => None,
    }
}

/// Runs one rsync for each host from this machine. `folders`: whether the pulled path is a folder there, by host.
pub fn copies(
    request: &RsyncRequest,
    remote: &Remote,
    hosts: &[String],
    folders: &HashMap<String, bool>,
) -> PoolEvents {
    let (request, folders) = (request.clone(), folders.clone());
    remote.stream_through(hosts, move |host, way| {
        let folder = folders.get(host).copied().unwrap_or(false);
        Command::argv(request.words(host, way, &[folder]))
    })
}

/// All kinds of errands.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Passed {
    /// A copy by rsync.
    Copy(RsyncRequest),
    /// A command, with its standard input. `again`: whether it may be started more than once.
    Run { command: Command, again: bool },
    /// A script for each host, run by the interpreter with these words, and started once. A script on the leader's
    /// own host could end the leader: leaders are spared, and the machine that started the leader runs the script
    /// there.
    Act { words: Vec<String>, scripts: Scripts },
}

impl Errand for Passed {
    fn begin(&self, remote: &Remote, hosts: &[String]) -> PoolEvents {
        match self {
            Passed::Run { command, .. } => remote.stream(hosts, command),
            Passed::Copy(request) => copies(request, remote, hosts, &HashMap::new()),
            Passed::Act { words, scripts } => {
                let (words, scripts) = (words.clone(), scripts.clone());
                remote.stream_each(hosts, move |host| match scripts.input(host) {
                    CommandInput::Nothing => Command::argv(["true"]),
                    input => Command::argv(words.clone()).input(input),
                })
            }
        }
    }

    fn load(&self, remote: &Remote, leader: &str, folder: &str) -> PoolEvents {
        match self {
            Passed::Run { .. } | Passed::Act { .. } => PoolEvents::nothing(),
            Passed::Copy(request) => {
                let (request, folder) = (request.clone(), folder.to_string());
                let words = move |host: &str, way: homing_exec::SshCommand| request.load(host, way, &folder);
                remote.stream_through(&[leader], move |host, way| Command::argv(words(host, way)))
            }
        }
    }

    fn input(&self) -> Option<Arc<InputSpool>> {
        match self {
            Passed::Run { command, .. } => command.spool(),
            Passed::Act { scripts, .. } => scripts.spool(),
            Passed::Copy(_) => None,
        }
    }

    fn only(&self, hosts: &[String]) -> io::Result<Passed> {
        Ok(match self {
            Passed::Act { words, scripts } => Passed::Act { words: words.clone(), scripts: scripts.only(hosts)? },
            Passed::Run { .. } | Passed::Copy(_) => self.clone(),
        })
    }

    fn spares_leaders(&self) -> bool {
        matches!(self, Passed::Act { .. })
    }

    fn can_be_repeated(&self) -> bool {
        matches!(self, Passed::Copy(_) | Passed::Run { again: true, .. })
    }

    fn from(&self, folder: &str, input: Option<Arc<InputSpool>>) -> Passed {
        match self {
            Passed::Run { command, again } => {
                let command = command.clone().input(input.map_or(CommandInput::Nothing, CommandInput::Spool));
                Passed::Run { command, again: *again }
            }
            Passed::Act { words, scripts } => Passed::Act { words: words.clone(), scripts: scripts.with(input) },
            Passed::Copy(request) => Passed::Copy(request.from(folder)),
        }
    }

    fn is_open(&self, outcome: &CommandOutcome) -> bool {
        match (self, outcome) {
            (_, CommandOutcome::Unreachable(_)) => true,
            (_, CommandOutcome::Lost(_)) => self.can_be_repeated(),
            // The status of ssh, that of a shell if rsync is missing, and that of rsync if its other end is gone.
            (Passed::Copy(_), CommandOutcome::Exited(status)) => [12, exit::NO_PROGRAM, 255].contains(status),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_leader_cannot_do_is_told_apart_from_what_a_host_cannot() {
        let copy = Passed::Copy(RsyncRequest::default());
        let open: Vec<i32> = (0..256).filter(|status| copy.is_open(&CommandOutcome::Exited(*status))).collect();
        assert_eq!(open, [12, 127, 255], "a full disk is as full for another");
        assert!(copy.is_open(&CommandOutcome::Lost(String::new())) && !copy.is_open(&CommandOutcome::TimedOut));
        let once = Passed::Run { command: Command::shell("date"), again: false };
        let ends = [
            CommandOutcome::Lost(String::new()),
            CommandOutcome::Exited(255),
            CommandOutcome::Unreachable(String::new()),
        ];
        assert_eq!(ends.map(|end| once.is_open(&end)), [false, false, true], "a command runs once");
    }
}
