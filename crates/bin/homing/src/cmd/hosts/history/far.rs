//! Reads the histories of hosts from their own `homing hosts --history`, line by line.

use super::{STEPS, kept};
use homing_exec::{Command, CommandOutcome, Options, Remote};
use homing_model::{Failure, exit};
use homing_os::names::is_here;
use homing_watch::history::{HostHistory, HostRecords, read};
use std::time::Duration;

/// The time limit of a host, which reads a megabyte and prints some lines. A host that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(20);

const MISSING: &str = "homing is not in the PATH there: install it (homing help install), then homing hosts --schedule";

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
        Some(result) if result.outcome == CommandOutcome::Exited(exit::NO_PROGRAM) => Err(MISSING.into()),
        Some(result) if matches!(result.outcome, CommandOutcome::Exited(_)) => Err(there(&result.why())),
        Some(result) => Err(result.outcome.to_string()),
        None => Err("it was not asked".into()),
    };
    names.iter().map(of).collect()
}

/// Returns the reason of a failure. A message of homing is the reason itself; a message of the shell gets its origin
/// added.
fn there(said: &str) -> String {
    said.strip_prefix("homing: ").map_or_else(|| format!("homing hosts --history there: {said}"), String::from)
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
        for said in ["timeout: failed to run command 'homing': No such file or directory", "sh: 1: homing: not found"] {
            assert!(there(said).contains("homing help install"), "{said}");
        }
        assert_eq!(there("homing: no sample is kept"), "no sample is kept");
        assert_eq!(there("Killed"), "homing hosts --history there: Killed");
    }
}
