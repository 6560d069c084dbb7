//! A job that runs on another host is also a job of that host's own queue. Slots, thresholds and limits are those of
//! that host, for each user and submitting machine. The job's keeper sends the job there and requests its start. The
//! news of the job come back over the same channel.
//!
//! The alternative was to count the slots of other hosts where jobs are submitted. Then two submitting machines gave
//! each slot twice, and no load was considered.

mod host;
mod keep;
pub mod rank;

pub(crate) use host::GO;
pub use host::{serve, unasked};
pub(crate) use keep::Far;

use crate::job::JobEnd;
use crate::{JobSpec, Private};
use homing_model::RawText;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A keeper sends a line at least this often.
pub(crate) const BEAT: Duration = Duration::from_secs(5);
/// A keeper that was silent for this long has gone, or its machine has; its job ends.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);

/// A line to the host: the job first, then orders. An empty line is a sign of life from the keeper.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    /// The job to run, with its number and index on the submitting machine.
    Job(Box<(JobSpec, Private)>, u64, u32),
    /// Suspends the job or holds it back; `false` resumes it.
    Stop(bool),
    /// Sends a signal to its processes.
    Signal(i32),
    /// The job of which this is a share starts: the host counts the bytes that it receives from now on.
    Count,
    /// The share, which had only held its slots, may start.
    Go,
    /// Ends the job.
    End,
}

/// A line from the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RemoteJobMessage {
    /// It waits, for this reason.
    Waits(String),
    /// It runs, on a host of this name.
    Started(String),
    /// A load index has suspended it, or none does any more.
    Loaded(Option<String>),
    /// Bytes of its standard output.
    Out(RawText),
    /// Bytes of its standard error.
    Err(RawText),
    /// It has ended.
    Ended(JobEnd),
    /// It will not run there, for this reason.
    Refused(String),
}
