//! Runs Slurm's commands with a deadline: slurmctld may be away.

use crate::account::{Booked, SACCT_FORMAT, booked};
use crate::allocation::reserved;
use crate::fate::{JobState, job_state};
use crate::license::{License, parse_licenses};
use crate::nodes::{SINFO_FORMAT, SlurmNode, parse_nodes, rows};
use crate::request::job_name;
use crate::topology::parse_topology;
use homing_model::RawText;
use homing_model::links::Switch;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The error of a Slurm command that gave no answer.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: `{command}` {what}")]
pub struct AskError {
    doing: &'static str,
    command: String,
    what: String,
}

/// Whether this machine looks like part of a Slurm cluster; starts no process. Without a configuration the commands
/// would look in the DNS for one.
pub fn is_configured() -> bool {
    let files = ["/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/run/slurm/conf/slurm.conf"];
    std::env::var_os("SLURM_CONF").is_some() || files.iter().any(|f| Path::new(f).exists())
}

/// Returns the nodes of `partition`, or of the default partition.
pub fn nodes(partition: Option<&str>) -> Result<Vec<SlurmNode>, AskError> {
    let text =
        query_slurm("reading the nodes from Slurm", &["sinfo", "--noheader", "--Node", "--format", SINFO_FORMAT])?;
    Ok(parse_nodes(&text, partition))
}

/// Returns those of the named nodes that exist, in all partitions.
pub fn nodes_named(names: &[String]) -> Result<Vec<SlurmNode>, AskError> {
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

/// Runs a Slurm command with this standard input. `env`, if given, replaces the environment.
pub fn command(
    doing: &'static str,
    words: &[&str],
    input: &[u8],
    env: Option<&[(RawText, RawText)]>,
) -> Result<String, AskError> {
    let shown = words.join(" ");
    let failed = |what: String| AskError { doing, command: shown.clone(), what };
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(env) = env {
        command.env_clear().envs(env.iter().map(|(name, value)| (name.as_os(), value.as_os())));
    }
    let mut child = command.spawn().map_err(|e| failed(format!("did not start: {e}")))?;
    let (mut pipe, input) = (child.stdin.take(), input.to_vec());
    // A separate thread: a long input may have to wait until answers are read.
    let writer = homing_os::threads::begin(move || pipe.as_mut().map(|p| p.write_all(&input)));
    let streams = (child.stdout.take(), child.stderr.take());
    let begun = || -> io::Result<_> { Ok((writer?, reader(streams.0)?, reader(streams.1)?)) };
    let (writer, out, err) = begun().map_err(|e| {
        let _ = child.kill();
        let _ = child.wait();
        failed(e.to_string())
    })?;
    let ended = homing_os::process::ended_within(&mut child, PATIENCE).map_err(|e| failed(e.to_string()))?;
    let Some(status) = ended else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(failed(format!("gave no answer in {} s; is slurmctld up?", PATIENCE.as_secs())));
    };
    let text = out.join().unwrap_or_default();
    let _ = writer.join();
    if status.success() {
        return Ok(text);
    }
    let said = err.join().unwrap_or_default();
    Err(failed(format!("ended with {status}: {}", said.trim().lines().last().unwrap_or("it printed no message"))))
}

fn reader(stream: Option<impl Read + Send + 'static>) -> io::Result<JoinHandle<String>> {
    homing_os::threads::begin(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
