//! Data that a coordinator writes for programs that watch its run. It writes only while such a program runs, and
//! overwrites the earlier data. The journal would grow by it without use.

use crate::{Mover, TaskId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The end of a task's output that watching programs show, bytes of each stream: some screens full.
pub const SHOWN_BYTES: usize = 16 << 10;

/// A run at one moment: the facts that are not in its journal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    /// When, ns since the epoch, on the coordinator's clock.
    pub at_ns: i64,
    /// Why tasks wait, most tasks first. Tasks that were not examined yet are not included.
    pub waits: Vec<WaitGroup>,
    /// The bytes moved by running tasks, for the tasks that a worker has reported.
    pub moved: Vec<(TaskId, Mover)>,
}

/// The progress of a run, for screens.
#[derive(Clone, Debug, Default)]
pub struct RunProgress {
    /// Tasks whose final outcome is known.
    pub over: u64,
    /// Of these, failed.
    pub failed: u64,
    /// Attempts under way.
    pub running: usize,
    /// All tasks, when known.
    pub total: Option<u64>,
    /// Slots of the hosts that are up.
    pub slots: u32,
    /// Hosts that are up.
    pub hosts: usize,
    /// Time since the run started.
    pub elapsed: Duration,
}

/// Tasks that wait for the same reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitGroup {
    /// The reason, a clause for people.
    pub why: String,
    /// How many.
    pub tasks: u64,
}
