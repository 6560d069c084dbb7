//! The senders to the coordinator's queue: workers, the nodes of a batch system, the source. They only move messages into
//! it.

use crate::admission::StorageIx;
use crate::settings::Incoming;
use homing_launch::HostEvent;
use homing_lease::LeaseEvent;
use homing_model::FileChange;
use homing_os::threads::begin;
use homing_os::threads::lock;
use homing_place::HostIx;
use homing_scheduler::System;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The interval of checks: short enough to leave a drained node soon, long enough for a busy daemon.
const LOOK_AT_NODES: Duration = Duration::from_secs(10);

/// A message to the coordinator.
pub(crate) enum Arrival {
    /// A message of the host with this number.
    Host(usize, HostEvent),
    Task(Box<Incoming>),
    SourceEnded,
    /// A host did not see a change in time. `since`: the file has changed again meanwhile.
    Late {
        ix: HostIx,
        ticket: u64,
        change: FileChange,
        why: String,
        since: bool,
    },
    /// News about the leases of a storage server.
    Leases(StorageIx, LeaseEvent),
    /// A note for the user.
    Note(String),
    /// Nodes that their administrators want empty, with the reasons.
    WantedEmpty(Vec<(String, String)>),
}

/// Checks in a thread whether a file that a host saw too late has changed meanwhile. The coordinator must not wait
/// for a file system. If the file system does not answer, the file counts as unchanged.
pub(crate) fn look_again(
    ix: HostIx,
    ticket: u64,
    change: FileChange,
    why: String,
    queue: SyncSender<Arrival>,
) -> io::Result<()> {
    let look = move || {
        let path = change.path.to_path();
        let now = homing_os::threads::within(homing_mounts::FS_TIMEOUT, move || homing_fence::stamp(&path));
        let since = now.is_some_and(|now| now != change.now);
        let _ = queue.send(Arrival::Late { ix, ticket, change, why, since });
    };
    begin(look).map(drop)
}

/// Checks every 10 s whether nodes are drained while the run uses them.
pub(crate) fn watch_nodes(system: System, names: Vec<String>, queue: SyncSender<Arrival>) -> io::Result<()> {
    let watch = move || {
        loop {
            thread::sleep(LOOK_AT_NODES);
            let found = system.words().wanted_empty(&names);
            if !found.is_empty() && queue.send(Arrival::WantedEmpty(found)).is_err() {
                return;
            }
        }
    };
    begin(watch).map(drop)
}

/// The room for tasks in memory. Each sender of tasks takes from it.
pub(crate) struct Credits(Mutex<Untaken>);

struct Untaken {
    left: usize,
    more: Receiver<usize>,
}

impl Credits {
    /// Starts with room for `left` tasks. `more` adds room later.
    pub(crate) fn new(left: usize, more: Receiver<usize>) -> Credits {
        Credits(Mutex::new(Untaken { left, more }))
    }

    /// Waits for room for one task. Returns false if there will be none any more.
    fn take(&self) -> bool {
        let mut untaken = lock(&self.0);
        while untaken.left == 0 {
            let Ok(more) = untaken.more.recv() else { return false };
            untaken.left = more;
        }
        untaken.left -= 1;
        true
    }
}

/// Pulls tasks from their source, ahead of need by the bound of the queue. With `ends`, sends the end of the source.
pub(crate) fn feed(
    source: Box<dyn Iterator<Item = Incoming> + Send>,
    queue: SyncSender<Arrival>,
    credits: Arc<Credits>,
    stop: Arc<AtomicBool>,
    ends: bool,
) -> io::Result<()> {
    let fed = move || {
        for incoming in source {
            let counts = matches!(incoming, Incoming::Task { .. } | Incoming::Unread { .. });
            if stop.load(Ordering::Relaxed) || queue.send(Arrival::Task(Box::new(incoming))).is_err() {
                return;
            }
            if counts && !credits.take() {
                return;
            }
        }
        if ends {
            let _ = queue.send(Arrival::SourceEnded);
        }
    };
    begin(fed).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn credits_are_taken_as_they_come_until_there_will_be_none() {
        let (to, more) = channel();
        let credits = Credits::new(2, more);
        for brings in [0, 1, 2] {
            to.send(brings).unwrap();
        }
        drop(to);
        let taken = std::iter::repeat_with(|| credits.take()).take_while(|taken| *taken).count();
        assert_eq!(taken, 5);
    }
}
