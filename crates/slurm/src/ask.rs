//! Running Slurm's commands, with a deadline: slurmctld may be away.

use crate::fate::{JobState, job_state};
use crate::nodes::{Node, SINFO_FORMAT, parse_nodes};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A command of Slurm's gave no answer.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: `{command}` {what}")]
pub struct AskError {
    doing: &'static str,
    command: String,
    what: String,
}

/// Whether this machine looks like part of a Slurm cluster; costs no process.
/// Without a configuration the commands would look in the DNS for one.
pub fn is_configured() -> bool {
    let files = ["/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/run/slurm/conf/slurm.conf"];
    std::env::var_os("SLURM_CONF").is_some() || files.iter().any(|f| Path::new(f).exists())
}

/// The nodes of `partition`, else of the default partition.
pub fn nodes(partition: Option<&str>) -> Result<Vec<Node>, AskError> {
    let text = ask("asking Slurm for its nodes", &["sinfo", "--noheader", "--Node", "--format", SINFO_FORMAT])?;
    Ok(parse_nodes(&text, partition))
}

/// What slurmctld knows of a job; `None` when it knows nothing or does not answer.
pub fn job(id: &str) -> Option<JobState> {
    job_state(ask("asking Slurm for a job", &["scontrol", "show", "job", "--oneliner", id]).ok()?.lines().next()?)
}

/// Gives a job back, if there is still something of it.
pub fn cancel(id: &str) {
    let _ = ask("cancelling a job", &["scancel", "--quiet", id]);
}

fn ask(doing: &'static str, words: &[&str]) -> Result<String, AskError> {
    let command = words.join(" ");
    let failed = |what: String| AskError { doing, command: command.clone(), what };
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| failed(format!("did not start: {e}")))?;
    let (out, err) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let until = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|e| failed(e.to_string()))? {
            break status;
        }
        if Instant::now() > until {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed(format!("gave no answer in {} s; is slurmctld up?", PATIENCE.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let text = out.join().unwrap_or_default();
    if status.success() {
        return Ok(text);
    }
    let said = err.join().unwrap_or_default();
    Err(failed(format!("ended with {status}: {}", said.trim().lines().last().unwrap_or("it said nothing"))))
}

fn reader(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
