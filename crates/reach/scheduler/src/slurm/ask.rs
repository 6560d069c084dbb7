//! Queries Slurm by its commands.

use super::account::{Booked, SACCT_FORMAT, booked};
use super::fate::{JobState, job_state};
use super::license::{License, parse_licenses};
use super::nodes::reserved;
use super::nodes::{SINFO_FORMAT, parse_nodes, rows};
use crate::command::{AskError, command};
use crate::{BatchNode, job_name};

use super::topology::parse_topology;
use homing_model::links::Switch;
use std::path::Path;
use std::time::Duration;

/// Whether this machine looks like part of a Slurm cluster; starts no process. Without a configuration the commands
/// would look in the DNS for one.
pub fn is_configured() -> bool {
    let files = ["/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/run/slurm/conf/slurm.conf"];
    std::env::var_os("SLURM_CONF").is_some() || files.iter().any(|f| Path::new(f).exists())
}

/// Returns the nodes of `partition`, or of the default partition.
pub fn nodes(partition: Option<&str>) -> Result<Vec<BatchNode>, AskError> {
    let text =
        query_slurm("reading the nodes from Slurm", &["sinfo", "--noheader", "--Node", "--format", SINFO_FORMAT])?;
    Ok(parse_nodes(&text, partition))
}

/// Returns those of the named nodes that exist, in all partitions.
pub fn nodes_named(names: &[String]) -> Result<Vec<BatchNode>, AskError> {
    let list = format!("--nodes={}", names.join(","));
    let words = ["sinfo", "--noheader", "--Node", "--all", &list, "--format", SINFO_FORMAT];
    let text = query_slurm("reading the state of nodes from Slurm", &words)?;
    Ok(rows(&text).map(|(_, node)| node).collect())
}

/// Returns the nodes of a reservation; an error if there is none of that name.
pub fn reservation(name: &str) -> Result<Vec<String>, AskError> {
    let words = ["scontrol", "show", "reservation", "--oneliner", name];
    let text = query_slurm("reading a reservation from Slurm", &words)?;
    Ok(reserved(text.trim()).unwrap_or_default())
}

/// Returns Slurm's switches; none if it has no topology, or does not answer.
pub fn switches() -> Vec<Switch> {
    query_slurm("reading the topology from Slurm", &["scontrol", "show", "topology"])
        .map_or_else(|_| Vec::new(), |t| parse_topology(&t))
}

/// Returns the licences that Slurm counts, with the users who have them.
pub fn licenses() -> Result<Vec<License>, AskError> {
    let text = query_slurm("reading the licences from Slurm", &["scontrol", "show", "licenses", "--oneliner"])?;
    let words = ["squeue", "--noheader", "--states=RUNNING", "--format", "%u|%W"];
    Ok(parse_licenses(&text, &query_slurm("reading the users of licences from Slurm", &words)?))
}

/// Hours of ten years, the longest time that is requested from the accounting.
const BOOKS_H: u64 = 10 * 365 * 24;

/// Returns the jobs of the last `age` that have ended, of all users or of this one, and some that ended earlier. An
/// error if Slurm keeps no accounting.
pub fn books(age: Duration, all: bool) -> Result<Vec<Booked>, AskError> {
    let since = format!("--starttime=now-{}hours", (age.as_secs() / 3600 + 1).min(BOOKS_H));
    let format = format!("--format={SACCT_FORMAT}");
    let mut words = vec!["env", "SLURM_TIME_FORMAT=%s", "sacct", "--parsable2", "--noheader", &since, &format];
    words.extend(all.then_some("--allusers"));
    Ok(booked(&query_slurm("reading the accounting of Slurm", &words)?))
}

/// Returns slurmctld's state of a job; `None` if it knows no such job or does not answer.
pub fn job(id: &str) -> Option<JobState> {
    job_state(
        query_slurm("reading the state of a job from Slurm", &["scontrol", "show", "job", "--oneliner", id])
            .ok()?
            .lines()
            .next()?,
    )
}

/// Cancels a job, if it still exists.
pub fn cancel(id: &str) {
    let _ = query_slurm("cancelling a job", &["scancel", "--quiet", id]);
}

/// Cancels the jobs of a run on one node, whose numbers are not known.
pub fn cancel_on(node: &str, run: &str) {
    let words = ["scancel", "--quiet", &format!("--name={}", job_name(run)), &format!("--nodelist={node}")];
    let _ = query_slurm("cancelling a run's jobs", &words);
}

fn query_slurm(doing: &'static str, words: &[&str]) -> Result<String, AskError> {
    command(doing, words, &[], None)
}
