//! Reads the histories of hosts from their own `homing hosts --history`, line by line.

use super::{STEPS, kept};
use homing_exec::{Command, CommandOutcome, Options, Remote};
use homing_model::{Failure, exit};
use homing_os::names::is_here;
use homing_watch::history::{HostHistory, HostRecords, read};
use std::time::Duration;

/// The time limit of a host, which reads a megabyte and prints some lines. A host that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(20);

const MISSING: &str =
    "homing is not in the PATH of the host: install it (homing help install), then run homing hosts --schedule";

/// Returns the samples of each host in the last `age`, in at most `steps` steps and in the order of the names. This
/// host needs no connection.
pub fn histories(names: &[String], age: Duration, steps: u64) -> Vec<HostHistory> {
    let others: Vec<String> = names.iter().filter(|name| !is_here(name)).cloned().collect();
    let mut words = ["homing", "hosts", "--lines", &format!("--history={}s", age.as_secs())].map(String::from).to_vec();
    // A homing from before this option has this number of steps by default.
    words.extend((steps != STEPS).then(|| format!("--steps={steps}")));
    let options = Options { command_timeout: Some(PATIENCE), ..Options::default() };
    let results: Vec<_> = Remote::new(options).run(&others, &Command::argv(words)).collect();
    let of = |name: &String| match results.iter().find(|result| result.host == *name) {
        _ if is_here(name) => here(age, steps),
        Some(result) if result.outcome == CommandOutcome::Exited(0) => read(&result.stdout),
        Some(result) => Err(reason(&result.outcome, &result.why())),
        None => Err("no command was sent to it".into()),
    };
    names.iter().map(of).collect()
}

/// Returns the reason of a failure. A message of homing is the reason itself; a message of the shell gets its origin
/// added.
fn reason(outcome: &CommandOutcome, printed: &str) -> String {
    match outcome {
        CommandOutcome::Exited(exit::NO_PROGRAM) => MISSING.into(),
        CommandOutcome::Exited(_) => {
            let own = printed.strip_prefix("homing: ");
            own.map_or_else(|| format!("homing hosts --history on the host: {printed}"), String::from)
        }
        other => other.to_string(),
    }
}

fn here(age: Duration, steps: u64) -> HostHistory {
    // In the words that a remote host uses, so that hosts with the same reason share a line.
    let why = |failure: Failure| {
        failure.hint.map_or(failure.message.clone(), |hint| format!("{}; try: {hint}", failure.message))
    };
    let records = kept(age, steps).map_err(why)?;
    Ok(HostRecords { records, facts: Some(homing_probe::facts()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_homing_gets_the_command_that_installs_it() {
        let of = |status: i32, printed: &str| reason(&CommandOutcome::Exited(status), printed);
        // The status is the same in each language.
        assert!(of(127, "sh: 1: homing: nicht gefunden").contains("homing help install"));
        assert_eq!(of(255, "homing: no sample is kept"), "no sample is kept");
        assert_eq!(of(1, "Killed"), "homing hosts --history on the host: Killed");
    }
}
