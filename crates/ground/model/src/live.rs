//! What a coordinator tells those who watch its run. It is written only while somebody watches, over what was told
//! before: a journal would grow by it for nothing.

use crate::{Mover, TaskId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The end of a task's output that is shown to those who watch, bytes of each stream: some screens full.
pub const SHOWN_BYTES: usize = 16 << 10;

/// A run at one moment, as far as its journal does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    /// When, ns since the epoch, on the coordinator's clock.
    pub at_ns: i64,
    /// Why tasks wait, most tasks first. Those that nobody has looked at yet are not among them.
    pub waits: Vec<Waits>,
    /// What tasks under way have moved, of those of which a worker has told it.
    pub moved: Vec<(TaskId, Mover)>,
}

/// How far a run is, for screens.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Tasks whose last word is known.
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
    /// Since the run started.
    pub elapsed: Duration,
}

/// Tasks that wait for the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// What they wait for, a clause for people.
    pub why: String,
    /// How many.
    pub tasks: u64,
}
