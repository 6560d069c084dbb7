//! Queries hosts for the work that goes on there.

use homing_exec::{Command, CommandOutcome, Options, Remote};
use homing_power::{ActivityResult, HERE, HostActivity, SCRIPT};
use std::collections::BTreeMap;
use std::time::Duration;

/// The time limit of a host. Listing processes takes no disk; a host that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the answer of each host, in their order. This machine is not queried, because it always stays on.
pub fn all(names: &[String], kept: &BTreeMap<String, String>) -> Vec<(String, ActivityResult)> {
    let is_here = |name: &String| kept.get(name).is_some_and(|why| why == HERE);
    let asked: Vec<&String> = names.iter().filter(|name| !is_here(name)).collect();
    let mut answers: BTreeMap<String, ActivityResult> =
        asked.iter().map(|host| host.to_string()).zip(these(&asked)).collect();
    let mut of = |host: &String| {
        answers.remove(host).unwrap_or_else(|| Ok(HostActivity { cores: cores(), ..HostActivity::default() }))
    };
    names.iter().map(|host| (host.clone(), of(host))).collect()
}

fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// Returns the answers of these hosts.
pub fn these(names: &[impl AsRef<str>]) -> Vec<ActivityResult> {
    // A kept connection could be one to the host as it was before it was switched off.
    let options = Options { command_timeout: Some(PATIENCE), persist: Duration::ZERO, ..Options::default() };
    let results: Vec<_> = Remote::new(options).run(names, &Command::argv(["sh", "-c", SCRIPT])).collect();
    let of = |name: &str| match results.iter().find(|result| result.host == name) {
        Some(result) if result.outcome == CommandOutcome::Exited(0) => {
            let seen = HostActivity::read(&String::from_utf8_lossy(&result.stdout));
            seen.ok_or_else(|| "cannot list its processes: it has no stat, or no /proc".into())
        }
        Some(result) => Err(result.why()),
        None => Err("no command was sent to it".into()),
    };
    names.iter().map(|name| of(name.as_ref())).collect()
}
