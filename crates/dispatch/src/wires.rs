//! What stands at the ends of the coordinator's queue: workers, Slurm's nodes,
//! the source. All of them only move messages into it.

use crate::admission::StorageIx;
use crate::settings::Incoming;
use homing_folder::lease::News;
use homing_launch::{Fate, Heard, HostPlan, Keeper, LaunchError, Options};
use homing_model::{Change, HostFacts};
use homing_place::HostIx;
use homing_threads::begin;
use homing_wire::FromWorker;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Often enough to be out of the way soon, and seldom enough for a busy slurmctld.
const LOOK_AT_NODES: Duration = Duration::from_secs(10);

/// What arrives at the coordinator. `at` is the index of the host in the plan.
pub(crate) enum Arrival {
    Up {
        at: usize,
        facts: Box<HostFacts>,
        to: Sender<Vec<u8>>,
        keeper: Keeper,
    },
    Refused {
        at: usize,
        error: LaunchError,
    },
    From {
        at: usize,
        messages: Vec<FromWorker>,
    },
    /// Nobody knows what became of its tasks.
    Cut {
        at: usize,
        reason: String,
    },
    Gone {
        at: usize,
        reason: String,
        fate: Option<Fate>,
    },
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
    /// Nodes that their administrators want empty, and why.
    WantedEmpty(Vec<(String, String)>),
}

/// Opens a channel to a host and keeps reading from it.
pub(crate) fn connect(at: usize, plan: HostPlan, options: Options, queue: SyncSender<Arrival>) -> io::Result<()> {
    homing_launch::attend(
        plan.name,
        plan.via,
        || options,
        move |heard| {
            let arrival = match heard {
                Heard::Up { facts, to, keeper } => Arrival::Up { at, facts, to, keeper },
                Heard::Refused(error) => Arrival::Refused { at, error },
                Heard::From(messages) => Arrival::From { at, messages },
                Heard::Cut { reason } => Arrival::Cut { at, reason },
                Heard::Gone { reason, fate } => Arrival::Gone { at, reason, fate },
            };
            queue.send(arrival).is_ok()
        },
    )
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
        let now = homing_mounts::within(homing_mounts::FS_TIMEOUT, move || homing_fence::stamp(&path));
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
pub(crate) type Tickets = Arc<Mutex<Receiver<()>>>;

/// Pulls tasks from their source, ahead of need by the queue's bound. The end of the list `ends` is told.
pub(crate) fn feed(
    source: Box<dyn Iterator<Item = Incoming> + Send>,
    queue: SyncSender<Arrival>,
    tickets: Tickets,
    stop: Arc<AtomicBool>,
    ends: bool,
) -> io::Result<()> {
    let fed = move || {
        for incoming in source {
            let counts = matches!(incoming, Incoming::Task { .. } | Incoming::Unread { .. });
            if stop.load(Ordering::Relaxed) || queue.send(Arrival::Task(Box::new(incoming))).is_err() {
                return;
            }
            if counts && tickets.lock().unwrap_or_else(PoisonError::into_inner).recv().is_err() {
                return;
            }
        }
        if ends {
            let _ = queue.send(Arrival::SourceEnded);
        }
    };
    begin(fed).map(drop)
}
