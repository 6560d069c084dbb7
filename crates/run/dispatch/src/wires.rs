//! What stands at the ends of the coordinator's queue: workers, Slurm's nodes,
//! the source. All of them only move messages into it.

use crate::admission::StorageIx;
use crate::settings::Incoming;
use homing_launch::Heard;
use homing_lease::News;
use homing_model::Change;
use homing_os::threads::begin;
use homing_place::HostIx;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Often enough to be out of the way soon, and seldom enough for a busy slurmctld.
const LOOK_AT_NODES: Duration = Duration::from_secs(10);

/// What arrives at the coordinator.
pub(crate) enum Arrival {
    /// Of the host with this number.
    Host(usize, Heard),
    Task(Box<Incoming>),
    SourceEnded,
    /// A host did not see a change in time; `since`: that has changed meanwhile.
    Late {
        ix: HostIx,
        ticket: u64,
        change: Change,
        why: String,
        since: bool,
    },
    /// A look at the leases of a storage server.
    Leases(StorageIx, News),
    /// For people.
    Note(String),
    /// Nodes that their administrators want empty, and why.
    WantedEmpty(Vec<(String, String)>),
}

/// Sees whether a file that a host saw too late has changed meanwhile, apart from the coordinator, which must not
/// wait for a file system. Where that is silent it counts as the same.
pub(crate) fn look_again(
    ix: HostIx,
    ticket: u64,
    change: Change,
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

/// Looks now and then whether Slurm's nodes are drained while the run is on them.
pub(crate) fn watch_nodes(names: Vec<String>, queue: SyncSender<Arrival>) -> io::Result<()> {
    let watch = move || {
        loop {
            thread::sleep(LOOK_AT_NODES);
            let found = homing_launch::wanted_empty(&names);
            if !found.is_empty() && queue.send(Arrival::WantedEmpty(found)).is_err() {
                return;
            }
        }
    };
    begin(watch).map(drop)
}

/// Room for tasks in memory; whoever feeds some takes of it.
pub(crate) struct Credits(Mutex<Untaken>);

struct Untaken {
    left: usize,
    more: Receiver<usize>,
}

impl Credits {
    /// At first as many as `left`; then what `more` brings.
    pub(crate) fn new(left: usize, more: Receiver<usize>) -> Credits {
        Credits(Mutex::new(Untaken { left, more }))
    }

    /// Waits for one; false when there will be none any more.
    fn take(&self) -> bool {
        let mut untaken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while untaken.left == 0 {
            let Ok(more) = untaken.more.recv() else { return false };
            untaken.left = more;
        }
        untaken.left -= 1;
        true
    }
}

/// Pulls tasks from their source, ahead of need by the queue's bound. The end of the list `ends` is told.
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
