//! The results of all hosts as lines about those that failed, and as an exit status.

use crate::CommandOutcome;
use homing_model::{alike, exit};
use std::collections::BTreeMap;

/// Exit status if a command failed on any host.
pub const FAILED: i32 = 1;
/// Exit status if a command did not end in time; that of `timeout`.
pub const TIMED_OUT: i32 = 124;
/// Exit status if a host could not be reached, or was lost: that of all commands.
pub const UNREACHABLE: i32 = exit::SYSTEM;
/// The same with `-S`, and that of a command that did not end in time or that a signal ended on another host. It is
/// clush's, which gets it from ssh.
pub const NO_STATUS: i32 = 255;

/// Returns the exit status for the outcome of one host. With `own` (`-S`) it is the command's own, as clush's.
pub fn code(outcome: &CommandOutcome, own: bool) -> i32 {
    match outcome {
        CommandOutcome::Exited(0) => 0,
        CommandOutcome::Exited(status) if own => *status,
        CommandOutcome::Exited(_) => FAILED,
        _ if own => NO_STATUS,
        CommandOutcome::Killed => FAILED,
        CommandOutcome::TimedOut => TIMED_OUT,
        CommandOutcome::Unreachable(_) | CommandOutcome::Lost(_) => UNREACHABLE,
    }
}

/// Returns one word for programs.
pub fn word(outcome: &CommandOutcome) -> &'static str {
    match outcome {
        CommandOutcome::Exited(0) => "ok",
        CommandOutcome::Exited(_) => "failed",
        CommandOutcome::Killed => "killed",
        CommandOutcome::TimedOut => "timeout",
        CommandOutcome::Unreachable(_) => "unreachable",
        CommandOutcome::Lost(_) => "lost",
    }
}

/// Returns lines such as `n[1-3] (3): exited with exit code 4`, one for each kind of failure, with the hosts folded.
/// The order is clush's: by status, then the others.
pub fn lines<'a>(outcomes: impl Iterator<Item = (&'a str, &'a CommandOutcome)>) -> Vec<String> {
    let mut kinds: BTreeMap<(u8, i32, String), Vec<String>> = BTreeMap::new();
    let mut single = Vec::new();
    for (host, outcome) in outcomes {
        let rank = match outcome {
            CommandOutcome::Exited(0) => continue,
            CommandOutcome::Exited(status) => (0, *status),
            CommandOutcome::Killed => (1, 0),
            CommandOutcome::TimedOut => (2, 0),
            // The reason contains the host's name.
            CommandOutcome::Unreachable(why) | CommandOutcome::Lost(why) => {
                single.push((host, why.as_str()));
                continue;
            }
        };
        kinds.entry((rank.0, rank.1, outcome.to_string())).or_default().push(host.to_string());
    }
    let folded = kinds.into_iter().map(|((_, _, what), hosts)| format!("{}: {what}", label(hosts)));
    folded.chain(alike::folded(single)).collect()
}

/// Returns `n[1-3] (3)`, without the count for one host.
pub fn label(hosts: Vec<String>) -> String {
    alike::label(&hosts.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_folded_and_apart() {
        let outcomes = [
            ("n1", CommandOutcome::Exited(4)),
            ("n2", CommandOutcome::Exited(0)),
            ("n3", CommandOutcome::Exited(4)),
            ("n4", CommandOutcome::TimedOut),
            ("n5", CommandOutcome::Unreachable("host n5 cannot be reached".into())),
            ("n6", CommandOutcome::Unreachable("host n6 cannot be reached".into())),
        ];
        let told = lines(outcomes.iter().map(|(h, o)| (*h, o)));
        assert_eq!(
            told,
            ["n[1,3] (2): exited with exit code 4", "n4: command timeout", "host n[5-6] cannot be reached"]
        );
        let codes: Vec<i32> = outcomes.iter().map(|(_, o)| code(o, false)).collect();
        assert_eq!(codes, [1, 0, 1, 124, 254, 254]);
        let own: Vec<i32> = outcomes.iter().map(|(_, o)| code(o, true)).collect();
        assert_eq!(own, [4, 0, 4, 255, 255, 255], "as clush -S");
        assert_eq!(
            [code(&CommandOutcome::Killed, true), code(&CommandOutcome::Killed, false)],
            [255, 1],
            "as ssh and clush -S"
        );
    }
}
