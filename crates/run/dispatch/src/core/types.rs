//! The types of the core: the user's decisions, offers, actions, and the data of waiting and running tasks.

use super::takes::Resources;
use crate::admission::{Io, StorageIx};
use crate::hosts::{Hosts, VolumeIx};
use crate::power::Circuit;
use homing_batch::Halt;
use homing_launch::Attempt;
use homing_launch::wire::{AttemptEnd, ToWorker};
use homing_lease::LeaseFolder;
use homing_model::event::{EventKind, SAID_BYTES};
use homing_model::{ClusterLinks, FileChange, IoCounters, Mover, Outcome, RawText, Task};
use homing_os::clock::Mono;
use homing_place::{HostIx, Need, Placed, Reason};
use std::collections::HashMap;

/// The time between SIGTERM and SIGKILL of a task that is ended, milliseconds.
const GRACE_MS: u32 = 500;

/// The user's decisions about this run.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The number of attempts at a task, however they ended, at least 1. Without a number: one attempt at a failing
    /// task, three at a task that lost its host.
    pub tries: Option<u32>,
    /// The failures that end the run.
    pub halt: Halt,
    /// The least time between two starts, microseconds.
    pub delay_us: u64,
    /// The memory that must be available on a host before a start, bytes.
    pub memfree: u64,
    /// The load from which a host starts nothing, in the words of `--jobs`.
    pub load: Option<String>,
    /// The wall-clock limit of tasks without one of their own, milliseconds.
    pub timeout_ms: Option<u64>,
    /// The bytes that a task may print, on both streams.
    pub output_limit: Option<u64>,
    /// The share of the median beyond which a task is killed, e.g. 2.0.
    pub timeout_of_median: Option<f64>,
    /// False assigns tasks to hosts in turn.
    pub locality: bool,
    /// False if commands use their slot number, which is known only when a slot is free.
    pub prefetch: bool,
    /// The limit of tasks that use one storage server at once.
    pub io: Io,
    /// Whether the limit of a storage server is shared with the runs of others.
    pub shared: bool,
    /// Storage servers whose users Slurm counts.
    pub licensed: Vec<Licensed>,
    /// Programs for containers, of which a host must have one; none if the run needs none.
    pub needs: Vec<String>,
    /// Named resources of hosts.
    pub resources: Resources,
    /// The limits of the hosts' common power.
    pub power: Vec<Circuit>,
    /// The known links between hosts.
    pub links: ClusterLinks,
    /// The limits at the end of earlier runs of this command, by the storage's name.
    pub learnt: HashMap<String, u32>,
    /// The kinds of commands, by their first words, that moved bytes of unnamed files in earlier runs.
    pub movers: Vec<String>,
}

/// A storage server of which each host of the run has licences, so no leases are needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Licensed {
    /// The names and addresses of the server.
    pub names: Vec<String>,
    /// The tasks at once that the licences of one host allow.
    pub each: u32,
}

/// A task with the locations of its inputs.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The task.
    pub task: Task,
    /// The bytes of its inputs.
    pub total: u64,
    /// The bytes by the name of the storage host.
    pub per_host: Vec<(String, u64)>,
    /// The storage hosts that serve a network volume. The others are this machine.
    pub served: Vec<String>,
    /// The name of this machine, and the bytes on its own disks. They are in `total` and `per_host`, too. Another host
    /// reads its own files of these names.
    pub own: Option<(String, u64)>,
    /// The network volumes that its host must have mounted.
    pub volumes: Vec<VolumeIx>,
    /// The local files that must exist on its host.
    pub requires: Vec<RawText>,
    /// False if the location of its inputs is unknown.
    pub located: bool,
    /// Whether some inputs do not count, because as many tasks as there are hosts have named them before.
    pub read_before: bool,
    /// Whether its words name no file. Then the files of the working directory are used in place of its inputs.
    pub guessed: bool,
    /// Names on shared file systems that it may read, absolute. Some may not exist.
    pub reads: Vec<RawText>,
    /// The changes of these files that are so recent that hosts may have an older state in their caches.
    pub recent: Vec<FileChange>,
}

impl Offer {
    /// Returns its need in terms of the run's hosts, without the kind of its command.
    pub fn need(&self, hosts: &Hosts) -> Need {
        Need {
            total: self.total,
            per_host: hosts.join(&self.per_host),
            writer: None,
            cpus: self.task.cpus.max(1),
            guessed: self.guessed,
            server: None,
            takes: Vec::new(),
            kind: 0,
        }
    }

    /// Returns the bytes on this machine's own disks, if `host` is another machine. It reads its own files instead,
    /// whose size and place are unknown here.
    fn unread_on(&self, host: HostIx, hosts: &Hosts) -> u64 {
        self.own.as_ref().filter(|(name, _)| hosts.find(name) != Some(host)).map_or(0, |(_, bytes)| *bytes)
    }

    /// Returns the bytes by their layout that a task placed on `host` reads there and from other hosts. `None` if it
    /// reads only files of its own disks whose size is unknown here.
    pub fn by_layout(&self, host: HostIx, hosts: &Hosts, (local, remote): (u64, u64)) -> Option<(u64, u64)> {
        let own = self.unread_on(host, hosts);
        (own == 0 || own < self.total).then(|| (local, remote.saturating_sub(own)))
    }

    /// Whether none of its inputs counts, since all were read before.
    pub(super) fn is_read_before(&self) -> bool {
        self.total == 0 && self.read_before
    }

    /// Returns the reason for `host` in words, without the files of this machine that `host` does not read.
    pub fn why(&self, host: HostIx, hosts: &Hosts, why: &Reason) -> String {
        let own = self.unread_on(host, hosts);
        let why = match why {
            _ if own > 0 && own == self.total => return "each host reads its own files of these names".into(),
            Reason::NoInput if self.is_read_before() => Reason::ReadBefore,
            Reason::HeldByNone { total } => Reason::HeldByNone { total: total.saturating_sub(own) },
            Reason::Holds { local, total } => Reason::Holds { local: *local, total: total.saturating_sub(own) },
            other => other.clone(),
        };
        why.text(|host| hosts.name(host))
    }
}

/// An action that the shell around the core must carry out, in order.
#[derive(Debug)]
pub enum Action {
    /// Append to the journal, before any later action.
    Journal(EventKind),
    /// Send to a worker.
    Send(HostIx, ToWorker),
    /// An attempt ended. `last` in the record shows whether its output is the task's.
    Ended {
        /// The record of the end.
        record: Box<AttemptRecord>,
    },
    /// Show a note to the user.
    Note(String),
    /// The same, about a host. Equal notes about many hosts are joined.
    HostNote(HostIx, String),
    /// Take part in the leases of a storage that other runs may use.
    Share(StorageIx, LeaseFolder),
    /// Locate the inputs of a task whose turn has come, and offer it.
    Locate(Box<Task>),
}

/// The end of an attempt, for printers and job logs.
#[derive(Debug)]
pub struct AttemptRecord {
    /// The attempt's ticket on its channel.
    pub ticket: u64,
    /// The task, with its slot number.
    pub task: Task,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The host name that the user knows.
    pub host: String,
    /// The outcome.
    pub outcome: Outcome,
    /// The start on the coordinator's clock, ns.
    pub start_ns: i64,
    /// The wall time, microseconds.
    pub wall_us: u64,
    /// The message of the worker.
    pub ended: Option<AttemptEnd>,
    /// The bytes of standard output.
    pub stdout_bytes: u64,
    /// The bytes of error output.
    pub stderr_bytes: u64,
    /// The end of the error output that was sent while it ran.
    pub tail: Vec<u8>,
    /// Whether no further attempt follows.
    pub last: bool,
    /// The hash of the task as its source gave it, without a slot number. Only in a last record.
    pub ran: Option<u64>,
}

impl AttemptRecord {
    /// Returns the event for the journal.
    pub(super) fn event(&self) -> EventKind {
        EventKind::TaskEnded {
            task: self.task.id,
            attempt: self.attempt,
            host: self.host.clone(),
            outcome: self.outcome.clone(),
            start_ns: self.start_ns,
            wall_us: self.wall_us,
            io: self.ended.as_ref().map_or_else(IoCounters::default, |e| e.io.clone()),
            io_wait: self.ended.as_ref().and_then(|e| e.io_wait.clone()),
            stdout_bytes: self.stdout_bytes,
            stderr_bytes: self.stderr_bytes,
            said: self.error_line(),
            last: self.last,
            ran: self.ran,
        }
    }

    /// Returns the last line of a failed task's error output.
    fn error_line(&self) -> Option<String> {
        let failed = self.last && !self.outcome.is_success();
        let sent = failed.then(|| [&self.tail[..], self.ended.as_ref().map_or(&[][..], |e| &e.stderr[..])].concat());
        sent.and_then(|bytes| homing_model::text::last_line(&bytes, SAID_BYTES))
    }
}

pub(super) struct WaitingTask {
    pub(super) offer: Offer,
    pub(super) attempt: u32,
    pub(super) losses: u32,
    /// The hosts on which it failed. It avoids them until it has failed on all.
    pub(super) failed_on: Vec<HostIx>,
}

pub(super) type TaskAttempt = Attempt<TaskDetails>;

/// Further data of a running attempt.
pub(super) struct TaskDetails {
    pub(super) waiting: Box<WaitingTask>,
    pub(super) placed: Placed,
    /// Its slot, `{%}`.
    pub(super) slot: u32,
    pub(super) started: Mono,
    /// Whether it printed too much, and is ended for that.
    pub(super) excessive: bool,
    /// The bytes that it printed so far, on each stream.
    pub(super) printed: [u64; 2],
    /// The end of its error output so far.
    pub(super) tail: Vec<u8>,
    /// Whether it counts at its storage.
    pub(super) counted: bool,
    /// Whether it names no inputs, and was seen to move bytes.
    pub(super) seen: bool,
    /// The last report of its worker on the bytes that it has moved.
    pub(super) moved: Option<Mover>,
}

/// Returns the action that ends an attempt, unless it is being ended already.
pub(super) fn end(running: &mut TaskAttempt, ticket: u64, timed_out: bool) -> Option<Action> {
    running.kill(ticket, GRACE_MS, timed_out).map(|kill| Action::Send(running.host, kill))
}

/// The stage of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Going,
    Draining,
    Killing,
}
