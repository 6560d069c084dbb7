//! The words of the core: what the user decided, what is offered, what is to
//! be done, and what is kept of a task that waits or runs.

use super::takes::Resources;
use crate::admission::{Io, StorageIx};
use crate::hosts::{Hosts, VolumeIx};
use crate::power::Circuit;
use homing_batch::Halt;
use homing_launch::Attempt;
use homing_launch::wire::{Ended, ToWorker};
use homing_lease::Place;
use homing_model::event::{SAID_BYTES, What};
use homing_model::{Change, IoCounters, Links, Mover, Outcome, RawText, Task};
use homing_os::clock::Mono;
use homing_place::{HostIx, Need, Placed};
use std::collections::HashMap;

/// Between SIGTERM and SIGKILL of a task that is ended, milliseconds.
const GRACE_MS: u32 = 500;

/// What the user decided about this run.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Attempts at a task, however they ended, at least 1. When the user did not
    /// say: one at a failing task, three at one that lost its host.
    pub tries: Option<u32>,
    /// When failures end the run.
    pub halt: Halt,
    /// Least time between two starts, microseconds.
    pub delay_us: u64,
    /// Memory that must be available on a host before a start, bytes.
    pub memfree: u64,
    /// A host that is loaded so much starts nothing, in the words of `--jobs`.
    pub load: Option<String>,
    /// Wall-clock limit of tasks that bring none of their own, milliseconds.
    pub timeout_ms: Option<u64>,
    /// Bytes that a task may print, on both streams.
    pub output_limit: Option<u64>,
    /// Kill tasks that run longer than this share of the median, e.g. 2.0.
    pub timeout_of_median: Option<f64>,
    /// False sends tasks to hosts in turn.
    pub locality: bool,
    /// False when commands use their slot number, which is known only when a slot is free.
    pub prefetch: bool,
    /// How many tasks may use one storage server at once.
    pub io: Io,
    /// The limit of a storage server is shared with the runs of others.
    pub shared: bool,
    /// Storage servers whose users Slurm counts.
    pub licensed: Vec<Licensed>,
    /// Named resources of hosts.
    pub resources: Resources,
    /// What hosts may draw together.
    pub power: Vec<Circuit>,
    /// What is known of the links between hosts.
    pub links: Links,
    /// Limits with which earlier runs of this command ended, by the storage's name.
    pub learnt: HashMap<String, u32>,
    /// Kinds of commands, by their first words, that earlier runs saw moving bytes without naming any.
    pub movers: Vec<String>,
}

/// A storage server of which each host of the run has licences, so that no leases are needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Licensed {
    /// Names and addresses of the server.
    pub names: Vec<String>,
    /// Tasks at once that the licences of one host allow.
    pub each: u32,
}

/// A task with what its inputs say about places.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The task.
    pub task: Task,
    /// Bytes of its inputs.
    pub total: u64,
    /// Bytes by storage host name.
    pub per_host: Vec<(String, u64)>,
    /// Of these hosts, those that serve a network volume: the rest is this machine's own.
    pub served: Vec<String>,
    /// Network volumes that its host must have mounted.
    pub volumes: Vec<VolumeIx>,
    /// Local files that must exist on its host.
    pub requires: Vec<RawText>,
    /// False when nothing is known of its inputs.
    pub located: bool,
    /// Nothing named a file: what lies in the working directory stands for its inputs.
    pub guessed: bool,
    /// Names on shared file systems that it may read, absolute; not all need exist.
    pub reads: Vec<RawText>,
    /// Of these, what changed so shortly before that hosts may remember an older state.
    pub recent: Vec<Change>,
}

impl Offer {
    /// What it needs, in terms of the run's hosts, but for the kind of its command.
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
}

/// What the shell around the core has to do, in order.
#[derive(Debug)]
pub enum Action {
    /// Append to the journal, before anything that follows.
    Journal(What),
    /// Send to a worker.
    Send(HostIx, ToWorker),
    /// An attempt ended; `last` says whether its output is the task's.
    Ended {
        /// What is known.
        record: Box<Record>,
    },
    /// For the user.
    Note(String),
    /// The same, about a host: many may have it alike.
    HostNote(HostIx, String),
    /// Other runs may use the storage as well: take part in its leases.
    Share(StorageIx, Place),
    /// Its turn has come: to be looked at again, and offered.
    Locate(Box<Task>),
}

/// The end of an attempt, for printers and job logs.
#[derive(Debug)]
pub struct Record {
    /// The attempt's ticket on its channel.
    pub ticket: u64,
    /// The task, with its slot number.
    pub task: Task,
    /// Counted from 1.
    pub attempt: u32,
    /// Host name as the user knows it.
    pub host: String,
    /// How.
    pub outcome: Outcome,
    /// On the coordinator's clock, ns.
    pub start_ns: i64,
    /// Wall time.
    pub wall_us: u64,
    /// What the worker told.
    pub ended: Option<Ended>,
    /// Bytes of standard output.
    pub stdout_bytes: u64,
    /// Bytes of error output.
    pub stderr_bytes: u64,
    /// The end of the error output that was sent while it ran.
    pub tail: Vec<u8>,
    /// No further attempt follows.
    pub last: bool,
    /// The hash of the task as its source gave it, without a slot number; of a last record.
    pub ran: Option<u64>,
}

impl Record {
    /// As the journal has it.
    pub(super) fn event(&self) -> What {
        What::TaskEnded {
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
            said: self.said(),
            last: self.last,
            ran: self.ran,
        }
    }

    /// Why a task failed, in its own words.
    fn said(&self) -> Option<String> {
        let failed = self.last && !self.outcome.is_success();
        let sent = failed.then(|| [&self.tail[..], self.ended.as_ref().map_or(&[][..], |e| &e.stderr[..])].concat());
        sent.and_then(|bytes| homing_model::text::last_line(&bytes, SAID_BYTES))
    }
}

pub(super) struct Waiting {
    pub(super) offer: Offer,
    pub(super) attempt: u32,
    pub(super) losses: u32,
    /// Hosts on which it failed, and that are spared until it has failed on all.
    pub(super) failed_on: Vec<HostIx>,
}

pub(super) type Running = Attempt<Given>;

/// What is known of an attempt besides.
pub(super) struct Given {
    pub(super) waiting: Box<Waiting>,
    pub(super) placed: Placed,
    /// Its `{%}`.
    pub(super) slot: u32,
    pub(super) started: Mono,
    /// It printed too much, and is ended for that.
    pub(super) excessive: bool,
    /// Bytes that it printed so far, on each stream.
    pub(super) printed: [u64; 2],
    /// The end of its error output so far.
    pub(super) tail: Vec<u8>,
    /// It counts at its storage.
    pub(super) counted: bool,
    /// It names no inputs, and was seen to move bytes.
    pub(super) seen: bool,
    /// What its worker told last of what it has moved.
    pub(super) moved: Option<Mover>,
}

/// What ends an attempt, unless it is being ended already.
pub(super) fn end(running: &mut Running, ticket: u64, timed_out: bool) -> Option<Action> {
    running.kill(ticket, GRACE_MS, timed_out).map(|kill| Action::Send(running.host, kill))
}

/// How far the run is allowed to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Going,
    Draining,
    Killing,
}
