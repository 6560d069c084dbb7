//! `--slurm-health`: checks one host, which drains itself in Slurm when it is ill.

use super::{gather, mutes, now};
use homing_check::HostCheck;
use homing_check::slurm_health::{NodeState, decide};
use homing_exec::Options;
use homing_model::Failure;
use std::time::Duration;

/// Checks this host, and drains or resumes it in Slurm. The exit status is that of a check.
pub fn run(checks: &[&HostCheck], deadline: Duration) -> Result<i32, Failure> {
    let options = Options { command_timeout: Some(deadline), ..Options::default() };
    let mut gathered = gather::query_hosts(options.clone(), &["localhost".into()], "", checks, deadline, None)?;
    if let Some((_, why)) = gathered.silent.first() {
        return Err(Failure::system(format!("checking this host: {why}")));
    }
    gather::once_more(options, &mut gathered.answers, checks, deadline)?;
    let found = homing_check::findings(checks, &gathered.answers);
    let (told, _) = homing_check::mute::sifted(found, &mutes::load()?, now());
    let node = std::env::var("SLURMD_NODENAME")
        .unwrap_or_else(|_| homing_model::hostname::short(&homing_queue::host_name()).into());
    let words = ["sinfo", "--noheader", "--Node", "--nodes", &node, "--format", "%T|%E"];
    let said = homing_scheduler::command("reading the state of this node from Slurm", &words, &[], None)
        .map_err(Failure::system)?;
    let (state, reason) = said.lines().next().and_then(|line| line.split_once('|')).unwrap_or_default();
    let unknown = gathered.unknown(checks);
    unknown.iter().for_each(|(_, what)| eprintln!("homing: unknown: {what}"));
    if let Some(change) = decide(&told, unknown.is_empty(), &NodeState { state, reason }) {
        let name = format!("NodeName={node}");
        let words: Vec<&str> =
            ["scontrol", "update", &name].into_iter().chain(change.iter().map(String::as_str)).collect();
        homing_scheduler::command("updating this node in Slurm", &words, &[], None).map_err(Failure::system)?;
        println!("{node}: {}", change.join(" "));
    }
    let status = told.first().map_or(0, |f| if f.code.severity == homing_check::Severity::Error { 2 } else { 1 });
    Ok(if unknown.is_empty() { status } else { 3 })
}
