//! A worker behind the interactive command of a batch system (`srun`, `bsub -I`), whose standard input and output are
//! the channel.
//!
//! The command ends with this process: its parent-death signal is SIGTERM, on which it gives its job back. For the same
//! reason it is ended with SIGTERM and not with SIGKILL. If it was killed nevertheless, the job is cancelled by its
//! number.

use crate::carrier::{Carrier, Tail};
use crate::error::{LaunchError, verdict};
use crate::handshake::{ChildPipes, Failure, HandshakeProgress};
use crate::payload::Payload;
use crate::{Channel, Options, bootstrap};
use homing_scheduler::{BatchEnd, System, WorkerRequest, WorkerStart};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(100);
/// Longest absence of a daemon that is waited for: a restart or an upgrade.
const CONTROLLER_AWAY: Duration = Duration::from_secs(300);
/// Longest pause between two requests.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A flag that withdraws the requests that are not granted yet.
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

/// A worker that a batch system is to grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchSeat {
    /// The batch system.
    pub system: System,
    /// Its name of the node.
    pub node: String,
    /// The request for it.
    pub request: WorkerRequest,
    /// How often it has been requested and lost before; each time the wait is longer.
    pub round: u32,
    /// Set at the end of the run.
    pub stop: Stop,
}

/// Handle that finds out how a job of a batch system ended.
pub struct Obituary {
    system: System,
    tail: Arc<Tail>,
    job: Option<String>,
    own: bool,
}

impl Obituary {
    /// Finds out how the worker ended, and cancels the rest of a job of our own. Blocks for seconds at most.
    pub fn read(&self) -> Option<BatchEnd> {
        self.tail.wait_for_end(Duration::from_secs(2));
        let system = self.system.words();
        let end = system.end(self.job.as_deref(), self.own, &self.tail.text());
        if let Some(job) = self.job.as_deref().filter(|_| self.own) {
            system.cancel(job);
        }
        end
    }
}

/// Requests a worker and blocks until its hello was read, however long its grant takes.
pub(crate) fn open(host: &str, seat: &BatchSeat, options: &Options) -> Result<Channel, LaunchError> {
    let payload = options.payload()?;
    let mut pause = Duration::from_millis(500);
    if seat.round > 0 {
        seat.stop.sleep((pause * 2u32.pow(seat.round.min(6))).min(LONGEST_PAUSE));
    }
    let (until, system) = (Instant::now() + CONTROLLER_AWAY, seat.system.words());
    loop {
        if seat.stop.is_set() {
            return Err(LaunchError::NotNeeded { host: host.into(), system: system.name() });
        }
        match attempt(host, seat, &payload, options) {
            Err(LaunchError::Ungranted { message, .. }) if system.is_passing(&message) && Instant::now() < until => {
                seat.stop.sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            other => return other,
        }
    }
}

fn attempt(host: &str, seat: &BatchSeat, payload: &Arc<Payload>, options: &Options) -> Result<Channel, LaunchError> {
    let mut command = command(seat, payload);
    let mut child = command.spawn().map_err(|source| LaunchError::Start {
        host: host.into(),
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })?;
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
                let obituary = Some(Obituary { system: seat.system, tail: carrier.tail(), job, own });
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
    seat: &BatchSeat,
    failure: Option<Failure>,
    carrier: Carrier,
    job: Option<String>,
) -> LaunchError {
    let system = seat.system.words();
    let job = job.or_else(|| system.queued_job(&carrier.stderr_tail()));
    let error = match failure {
        None => {
            drop(carrier);
            LaunchError::NotNeeded { host: host.into(), system: system.name() }
        }
        Some(Failure::Ended) => {
            let (_, words) = carrier.last_words(Duration::from_secs(10));
            // The job may be over, and was none of a worker yet: only messages count.
            let message = system.end(job.as_deref(), false, &words).map(|end| end.text);
            let message = message.or_else(|| system.complaint(&words));
            let message = message.unwrap_or_else(|| "its command ended without a message".into());
            let message = system.refusal(&seat.request, &message);
            LaunchError::Ungranted { host: host.into(), system: system.name(), message }
        }
        Some(other) => verdict(host, other, carrier),
    };
    match job {
        _ if seat.request.within.is_some() => {}
        Some(job) => system.cancel(&job),
        // It may have been granted in the moment in which the command was ended.
        None => system.cancel_on(&seat.node, &seat.request.run),
    }
    error
}

fn command(seat: &BatchSeat, payload: &Payload) -> Command {
    let system = seat.system.words();
    let script = bootstrap::script(payload, crate::WORKER);
    let worker = WorkerStart { node: &seat.node, script: &script, program: payload.exe() };
    let words = system.start(&seat.request, worker);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir("/");
    let foreign = std::env::vars_os().filter(|(name, _)| !system.keeps(&name.to_string_lossy()));
    foreign.for_each(|(name, _)| {
        command.env_remove(name);
    });
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0);
    // srun and bsub set our limits on the nodes, too.
    homing_os::process::give_back_files(&mut command);
    homing_os::process::bound_to_thread(&mut command, rustix::process::Signal::TERM);
    command
}
