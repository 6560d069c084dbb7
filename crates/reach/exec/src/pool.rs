//! A bounded number of threads, one host each at a time.

use crate::Outcome;
use crate::connect::Connector;
use crate::session::{Sink, Which};
use crate::wait::Cancel;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Pieces of output on their way at most; a piece has 32 KiB or less.
pub(crate) const PIECES: usize = 256;

/// Something that happened on a host.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its place in the list of hosts.
    pub host: usize,
    /// Who gave it what the command needs, where there is a tree.
    pub giver: Giver,
    /// What happened.
    pub what: What,
}

/// Who serves a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Giver {
    /// This machine.
    Here,
    /// This machine, but for now it only gives the host what that is to pass on, as a leader.
    Load,
    /// A leader, by its place in the list of hosts.
    Leader(usize),
}

/// What can happen on a host.
#[derive(Clone, Debug)]
pub enum What {
    /// It is this host's turn.
    Begun,
    /// Its leader tells that the host has answered, and is at it still.
    Alive,
    /// Standard output.
    Stdout(Vec<u8>),
    /// Standard error.
    Stderr(Vec<u8>),
    /// The end, and the time it took, connection included.
    Done(Outcome, Duration),
}

/// Events of all hosts; ends when all are done. Dropping it ends what still runs.
pub struct Stream {
    events: Option<Receiver<Event>>,
    cancel: Option<OwnedFd>,
    threads: Vec<JoinHandle<()>>,
}

/// What is done on each host; `None` when it was cancelled.
pub(crate) type Job = Box<dyn Fn(&Connector, &str, &Cancel, Sink) -> Option<Outcome> + Send + Sync>;

struct Work {
    connector: Arc<Connector>,
    hosts: Vec<String>,
    job: Job,
    next: AtomicUsize,
    cancel: Cancel,
}

pub(crate) fn start(connector: Arc<Connector>, hosts: Vec<String>, job: Job) -> Stream {
    let threads = connector.options.fan_out.clamp(1, hosts.len().max(1));
    let (to, events) = sync_channel(PIECES);
    let (cancel, write) = match Cancel::new() {
        Ok(ends) => ends,
        Err(why) => return Stream::refused(hosts.len(), &why),
    };
    let work = Arc::new(Work { connector, hosts, job, next: AtomicUsize::new(0), cancel });
    let spawn = |_| {
        let (work, to) = (work.clone(), to.clone());
        homing_os::threads::begin_as(Builder::new().stack_size(256 << 10), move || work.through(&to))
    };
    let first = match spawn(0) {
        Ok(first) => first,
        Err(e) => return Stream::refused(work.hosts.len(), &e.to_string()),
    };
    // Fewer than were asked for take longer.
    let threads = std::iter::once(first).chain((1..threads).map_while(|i| spawn(i).ok())).collect();
    Stream::new(events, write, threads)
}

impl Work {
    fn through(&self, to: &SyncSender<Event>) {
        loop {
            let host = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(name) = self.hosts.get(host) else { return };
            let begun = Instant::now();
            let send = |what| to.send(Event { host, giver: Giver::Here, what }).is_ok();
            let mut sink = |which, bytes: &[u8]| {
                send(match which {
                    Which::Out => What::Stdout(bytes.to_vec()),
                    Which::Err => What::Stderr(bytes.to_vec()),
                })
            };
            if !send(What::Begun) {
                return;
            }
            let outcome = (self.job)(&self.connector, name, &self.cancel, &mut sink);
            if !outcome.is_some_and(|outcome| send(What::Done(outcome, begun.elapsed()))) {
                return;
            }
        }
    }
}

impl Iterator for Stream {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        self.events.as_ref()?.recv().ok()
    }
}

impl Stream {
    pub(crate) fn new(events: Receiver<Event>, cancel: OwnedFd, threads: Vec<JoinHandle<()>>) -> Stream {
        Stream { events: Some(events), cancel: Some(cancel), threads }
    }

    /// Nothing was done on any host, and why.
    pub fn refused(hosts: usize, why: &str) -> Stream {
        let (to, events) = sync_channel(hosts);
        for host in 0..hosts {
            let outcome = Outcome::Unreachable(format!("it was not tried: {why}"));
            let _ = to.send(Event { host, giver: Giver::Here, what: What::Done(outcome, Duration::ZERO) });
        }
        Stream { events: Some(events), cancel: None, threads: Vec::new() }
    }

    /// All is well on one host, without anything done.
    pub fn nothing() -> Stream {
        let (to, events) = sync_channel(1);
        let what = What::Done(Outcome::Exited(0), Duration::ZERO);
        let _ = to.send(Event { host: 0, giver: Giver::Here, what });
        Stream { events: Some(events), cancel: None, threads: Vec::new() }
    }

    /// As `next`, but returns after `at_most`, for a screen that shows time passing.
    pub fn next_within(&mut self, at_most: Duration) -> Result<Option<Event>, Waiting> {
        use std::sync::mpsc::RecvTimeoutError;
        let Some(events) = &self.events else { return Ok(None) };
        match events.recv_timeout(at_most) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(Waiting),
        }
    }
}

/// Nothing happened yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting;

impl Drop for Stream {
    fn drop(&mut self) {
        // First the receiver, so that no thread waits for room in the channel.
        self.events = None;
        self.cancel = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
