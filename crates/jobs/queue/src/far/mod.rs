//! A job that runs on another host is a job of that host's own queue too: its
//! slots, thresholds and limits are the host's, for whoever submits from
//! wherever. The keeper of the job sends it there and asks for its start; what
//! happens to it there comes back over the same channel.
//!
//! Slots of other hosts that are counted where jobs are submitted were another
//! way: two submitting machines gave each slot twice, and no load was asked.

mod host;
mod keep;
pub mod rank;

pub(crate) use host::GO;
pub use host::{serve, unasked};
pub(crate) use keep::Far;

use crate::job::End;
use crate::{JobSpec, Private};
use homing_model::RawText;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A keeper says something at least this often.
pub(crate) const BEAT: Duration = Duration::from_secs(5);
/// A keeper that was silent for so long has gone, or its machine: its job ends.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);

/// A line to the host: the job first, then orders. An empty line only says that its keeper lives.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    /// What is to run, under which number and index of the submitting machine.
    Job(Box<(JobSpec, Private)>, u64, u32),
    /// It is to stand still, or not to start; `false`: to go on.
    Stop(bool),
    /// A signal to its processes.
    Signal(i32),
    /// The job starts, of which it is a share: what its host receives counts from now on.
    Count,
    /// It may start, having had its slots until now.
    Go,
    /// Its end.
    End,
}

/// A line from the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum News {
    /// It waits, for this reason.
    Waits(String),
    /// It runs, on a host of this name.
    Started(String),
    /// It stands still because of this load index, or goes on.
    Loaded(Option<String>),
    /// Bytes of its standard output.
    Out(RawText),
    /// Bytes of its standard error.
    Err(RawText),
    /// It has ended.
    Ended(End),
    /// It will not run there, for this reason.
    Refused(String),
}
