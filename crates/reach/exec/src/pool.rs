//! Runs a job on many hosts with a bounded number of threads, each of which serves one host at a time.

use crate::CommandOutcome;
use crate::connect::Connector;
use crate::session::{Sink, Which};
use crate::wait::Cancel;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Most pieces of output under way; a piece has at most 32 KiB.
pub(crate) const PIECES: usize = 256;

/// Something that happened on a host.
#[derive(Clone, Debug)]
pub struct HostProgress {
    /// Its index in the list of hosts.
    pub host: usize,
    /// The source of the command's data for this host.
    pub giver: Giver,
    /// The kind of event.
    pub what: HostEventKind,
}

/// The machine that serves a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Giver {
    /// This machine.
    Here,
    /// This machine, which at the moment only loads the host as a leader with the data to pass on.
    Load,
    /// A leader, by its index in the list of hosts.
    Leader(usize),
}

/// The kind of an event.
#[derive(Clone, Debug)]
pub enum HostEventKind {
    /// The work on this host begins.
    Begun,
    /// Its leader reports that the host has answered and still works.
    Alive,
    /// Standard output.
    Stdout(Vec<u8>),
    /// Standard error.
    Stderr(Vec<u8>),
    /// The end, with the time that it took, connection included.
    Done(CommandOutcome, Duration),
}

/// Events of all hosts; ends when all are done. Dropping it ends the commands that still run.
pub struct PoolEvents {
    events: Option<Receiver<HostProgress>>,
    cancel: Option<OwnedFd>,
    threads: Vec<JoinHandle<()>>,
}

/// The work on each host; returns `None` if it was cancelled.
pub(crate) type HostWork = Box<dyn Fn(&Connector, &str, &Cancel, Sink) -> Option<CommandOutcome> + Send + Sync>;

struct Work {
    connector: Arc<Connector>,
    hosts: Vec<String>,
    job: HostWork,
    next: AtomicUsize,
    cancel: Cancel,
}

pub(crate) fn start(connector: Arc<Connector>, hosts: Vec<String>, job: HostWork) -> PoolEvents {
    let threads = connector.options.fan_out.clamp(1, hosts.len().max(1));
    let (to, events) = sync_channel(PIECES);
    let (cancel, write) = match Cancel::new() {
        Ok(ends) => ends,
        Err(why) => return PoolEvents::refused(hosts.len(), &why),
    };
    let work = Arc::new(Work { connector, hosts, job, next: AtomicUsize::new(0), cancel });
    let spawn = |_| {
        let (work, to) = (work.clone(), to.clone());
        homing_os::threads::begin_as(Builder::new().stack_size(256 << 10), move || work.through(&to))
    };
    let first = match spawn(0) {
        Ok(first) => first,
        Err(e) => return PoolEvents::refused(work.hosts.len(), &e.to_string()),
    };
    // With fewer threads than requested it takes longer.
    let threads = std::iter::once(first).chain((1..threads).map_while(|i| spawn(i).ok())).collect();
    PoolEvents::new(events, write, threads)
}

impl Work {
    fn through(&self, to: &SyncSender<HostProgress>) {
        loop {
            let host = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(name) = self.hosts.get(host) else { return };
            let begun = Instant::now();
            let send = |what| to.send(HostProgress { host, giver: Giver::Here, what }).is_ok();
            let mut sink = |which, bytes: &[u8]| {
                send(match which {
                    Which::Out => HostEventKind::Stdout(bytes.to_vec()),
                    Which::Err => HostEventKind::Stderr(bytes.to_vec()),
                })
            };
            if !send(HostEventKind::Begun) {
                return;
            }
            let outcome = (self.job)(&self.connector, name, &self.cancel, &mut sink);
            if !outcome.is_some_and(|outcome| send(HostEventKind::Done(outcome, begun.elapsed()))) {
                return;
            }
        }
    }
}

impl Iterator for PoolEvents {
    type Item = HostProgress;

    fn next(&mut self) -> Option<HostProgress> {
        self.events.as_ref()?.recv().ok()
    }
}

impl PoolEvents {
    pub(crate) fn new(events: Receiver<HostProgress>, cancel: OwnedFd, threads: Vec<JoinHandle<()>>) -> PoolEvents {
        PoolEvents { events: Some(events), cancel: Some(cancel), threads }
    }

    /// Returns a stream in which no host was tried, for this reason.
    pub fn refused(hosts: usize, why: &str) -> PoolEvents {
        let (to, events) = sync_channel(hosts);
        for host in 0..hosts {
            let outcome = CommandOutcome::Unreachable(format!("not tried: {why}"));
            let _ =
                to.send(HostProgress { host, giver: Giver::Here, what: HostEventKind::Done(outcome, Duration::ZERO) });
        }
        PoolEvents { events: Some(events), cancel: None, threads: Vec::new() }
    }

    /// Returns a stream in which one host succeeds without any work.
    pub fn nothing() -> PoolEvents {
        let (to, events) = sync_channel(1);
        let what = HostEventKind::Done(CommandOutcome::Exited(0), Duration::ZERO);
        let _ = to.send(HostProgress { host: 0, giver: Giver::Here, what });
        PoolEvents { events: Some(events), cancel: None, threads: Vec::new() }
    }

    /// Like `next`, but returns after `at_most`, for a screen that shows time passing.
    pub fn next_within(&mut self, at_most: Duration) -> Result<Option<HostProgress>, NoEvent> {
        use std::sync::mpsc::RecvTimeoutError;
        let Some(events) = &self.events else { return Ok(None) };
        match events.recv_timeout(at_most) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(NoEvent),
        }
    }
}

/// No event came yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoEvent;

impl Drop for PoolEvents {
    fn drop(&mut self) {
        // The receiver first, so that no thread waits for room in the channel.
        self.events = None;
        self.cancel = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
