//! A worker behind `srun`, whose standard input and output are the channel.
//!
//! srun ends with this process: its parent-death signal is SIGTERM, on which it gives its job back. For the same
//! reason it is ended with SIGTERM and not with SIGKILL. If it was killed nevertheless, the job is cancelled by its
//! number.

use crate::carrier::{Carrier, Tail};
use crate::error::{LaunchError, last_line, verdict};
use crate::handshake::{ChildPipes, Failure, HandshakeProgress};
use crate::payload::Payload;
use crate::{Channel, Options, bootstrap};
use homing_slurm::{SlurmEnd, WorkerRequest};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(100);
/// Longest absence of slurmctld that is waited for: a restart or an upgrade.
const CONTROLLER_AWAY: Duration = Duration::from_secs(300);
/// Longest pause between two requests.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A flag that withdraws the requests that Slurm has not granted yet.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl PartialEq for Stop {
    fn eq(&self, other: &Stop) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Stop {}

impl Stop {
    /// Sets the flag: no more workers are wanted.
    pub fn stop(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn sleep(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while !self.is_set() && Instant::now() < until {
            std::thread::sleep(LOOK.min(pause));
        }
    }
}

/// A worker that Slurm is to grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlurmSeat {
    /// Slurm's name of the node.
    pub node: String,
    /// The request for it.
    pub request: WorkerRequest,
    /// How often it has been requested and lost before; each time the wait is longer.
    pub round: u32,
    /// Set at the end of the run.
    pub stop: Stop,
}

/// Returns those of the named nodes that their administrators want empty, with the reason. Blocks until slurmctld has
/// answered; empty if it did not.
pub fn wanted_empty(names: &[String]) -> Vec<(String, String)> {
    let known = homing_slurm::ask::nodes_named(names).unwrap_or_default();
    known.into_iter().filter_map(|node| Some((node.is_wanted_empty()?, node.name))).map(|(why, n)| (n, why)).collect()
}

/// Handle that finds out how a Slurm job ended.
pub struct Obituary {
    tail: Arc<Tail>,
    job: Option<String>,
    own: bool,
}

impl Obituary {
    /// Finds out how the worker ended, from srun's last words or else from slurmctld, and cancels the rest of a job
    /// of our own. Blocks for seconds at most.
    pub fn read(&self) -> Option<SlurmEnd> {
        self.tail.wait_for_end(Duration::from_secs(2));
        let said = self.tail.text();
        let job = self.job.as_deref();
        let heard = homing_slurm::fate(job, None, &said);
        let fate = heard.or_else(|| {
            // The state of a job of somebody else does not show how one step in it ended.
            let state = job.filter(|_| self.own).and_then(settled);
            homing_slurm::fate(job, state.as_ref(), "")
        });
        if let Some(job) = job.filter(|_| self.own) {
            homing_slurm::ask::cancel(job);
        }
        fate
    }
}

/// Returns the state of a job once it shows how the job ended, or after 2 s.
fn settled(job: &str) -> Option<homing_slurm::JobState> {
    let until = Instant::now() + Duration::from_secs(2);
    loop {
        let state = homing_slurm::ask::job(job)?;
        if state.is_over() || state.reason != "None" || Instant::now() > until {
            return Some(state);
        }
        std::thread::sleep(LOOK);
    }
}

/// Requests a worker and blocks until its hello was read, however long Slurm takes to grant it.
pub(crate) fn open(host: &str, seat: &SlurmSeat, options: &Options) -> Result<Channel, LaunchError> {
    let payload = options.payload()?;
    let mut pause = Duration::from_millis(500);
    if seat.round > 0 {
        seat.stop.sleep((pause * 2u32.pow(seat.round.min(6))).min(LONGEST_PAUSE));
    }
    let until = Instant::now() + CONTROLLER_AWAY;
    loop {
        if seat.stop.is_set() {
            return Err(LaunchError::NotNeeded { host: host.into() });
        }
        match attempt(host, seat, &payload, options) {
            Err(LaunchError::Slurm { said, .. }) if homing_slurm::is_passing(&said) && Instant::now() < until => {
                seat.stop.sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            other => return other,
        }
    }
}

fn attempt(host: &str, seat: &SlurmSeat, payload: &Arc<Payload>, options: &Options) -> Result<Channel, LaunchError> {
    let mut command = srun(seat, payload);
    let mut child =
        command.spawn().map_err(|source| LaunchError::Start { host: host.into(), program: "srun".into(), source })?;
    let ends = ChildPipes::take_from(&mut child);
    let carrier = Carrier::polite(child);
    let reports = crate::conversed(host, ends, Some(payload.clone()), options)?;
    let patience = options.patience();
    let (mut job, mut heard) = (None, None);
    let failure = loop {
        match reports.recv_timeout(LOOK) {
            Ok(HandshakeProgress::Alive) => heard = heard.map(|_| Instant::now()),
            // From here on the job runs: silence is a fault, not a queue.
            Ok(HandshakeProgress::Job(id)) => (job, heard) = (Some(id), Some(Instant::now())),
            Ok(HandshakeProgress::Hello { facts, ends }) => {
                let own = seat.request.within.is_none();
                let obituary = Some(Obituary { tail: carrier.tail(), job, own });
                return Ok(Channel::of(*facts, ends, carrier, obituary));
            }
            Ok(HandshakeProgress::Failed(failure)) => break Some(failure),
            Err(RecvTimeoutError::Timeout) if seat.stop.is_set() => break None,
            Err(RecvTimeoutError::Timeout) if heard.is_some_and(|at: Instant| at.elapsed() > patience) => {
                break Some(Failure::Silent(patience));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break Some(Failure::Ended),
        }
    };
    Err(failed(host, seat, failure, carrier, job))
}

/// Returns why there is no worker, and gives its job back if it has one.
fn failed(
    host: &str,
    seat: &SlurmSeat,
    failure: Option<Failure>,
    carrier: Carrier,
    job: Option<String>,
) -> LaunchError {
    let job = job.or_else(|| homing_slurm::queued_job(&carrier.stderr_tail()));
    let error = match failure {
        None => {
            drop(carrier);
            LaunchError::NotNeeded { host: host.into() }
        }
        Some(Failure::Ended) => {
            let (_, words) = carrier.last_words(Duration::from_secs(10));
            let fate = homing_slurm::fate(job.as_deref(), None, &words);
            let said =
                fate.map(|f| f.text).or_else(|| complaint(&words)).unwrap_or("srun ended without a message".into());
            LaunchError::Slurm { host: host.into(), said: seat.request.refusal(&said) }
        }
        Some(other) => verdict(host, other, carrier),
    };
    match job {
        _ if seat.request.within.is_some() => {}
        Some(job) => homing_slurm::ask::cancel(&job),
        // Slurm may have granted it in the moment in which srun was ended.
        None => homing_slurm::ask::cancel_on(&seat.node, &seat.request.run),
    }
    error
}

/// Returns the most useful line of srun's: the last error, else the first line that is no news of the queue.
fn complaint(words: &str) -> Option<String> {
    let news = ["queued and waiting", "has been allocated", "Granted job"];
    let plain = |l: &&str| l.starts_with("srun: ") && !news.iter().any(|n| l.contains(n));
    let told = words.lines().rfind(|l| l.contains("error:")).or_else(|| words.lines().find(plain));
    let told = told.or_else(|| last_line(words))?.trim();
    Some(told.trim_start_matches("srun: ").trim_start_matches("error: ").to_string())
}

fn srun(seat: &SlurmSeat, payload: &Payload) -> Command {
    let mut command = Command::new("srun");
    command.args(seat.request.arguments(&seat.node, &bootstrap::script(payload, crate::WORKER), payload.exe()));
    let foreign = std::env::vars_os().filter(|(name, _)| !WorkerRequest::keeps(&name.to_string_lossy()));
    foreign.for_each(|(name, _)| {
        command.env_remove(name);
    });
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0);
    // srun sets its own limits on the nodes, too.
    homing_os::process::give_back_files(&mut command);
    homing_os::process::bound_to_thread(&mut command, rustix::process::Signal::TERM);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_srun_complained_of() {
        let option = "srun: unrecognized option '--nope'\nTry \"srun --help\" for more information";
        assert_eq!(complaint(option).as_deref(), Some("unrecognized option '--nope'"));
        let account = "srun: job 3 queued and waiting for resources\n\
                       srun: error: Unable to allocate resources: Invalid account or account/partition combination specified";
        assert!(complaint(account).is_some_and(|c| c.starts_with("Unable to allocate resources: Invalid account")));
        assert_eq!(complaint("srun: job 3 has been allocated resources\nbye").as_deref(), Some("bye"));
        assert_eq!(complaint(""), None);
    }
}
