//! The events of a run, in the order in which the coordinator learnt them. The journal has one event as a JSON object
//! per line; every report reads them.

use crate::{HostFacts, HostSample, IoCounters, IoWait, Outcome, RawText, TaskId};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// One record of the journal. `at_ns` is the coordinator's clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Nanoseconds since the epoch.
    pub at_ns: i64,
    /// The kind of event, with its data.
    #[serde(flatten)]
    pub what: EventKind,
}

/// The longest line of a failed task that is recorded, bytes. It is long enough to show the reason, and keeps a
/// journal of 100,000 failures readable.
pub const SAID_BYTES: usize = 200;

/// The end of the reason why a host was not used, if the run ended before it had answered.
pub const UNNEEDED: &str = "not needed";

/// The reason for a limit that never held a task. It explains nothing.
pub const NO_WAIT: &str = "no task waited for storage";

/// The planned bytes of one attempt, from the layout of its inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedBytes {
    /// Bytes on the host that runs it.
    pub local: u64,
    /// Bytes on other hosts.
    pub remote: u64,
    /// The bytes that would cross the network on average if hosts were taken in turn.
    pub remote_if_in_turn: u64,
    /// The storage hosts of the remote bytes. Copies are assumed to be read in equal parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<(String, u64)>,
}

/// Splits `read` bytes among the storage hosts, in proportion to the bytes that each holds. Data with several copies
/// is read from each copy in turn.
pub fn parts(read: u64, held: &[(String, u64)]) -> Vec<(String, u64)> {
    let all: u128 = held.iter().map(|(_, bytes)| u128::from(*bytes)).sum();
    let part = |bytes: u64| (u128::from(read) * u128::from(bytes) / all.max(1)) as u64;
    held.iter().map(|(holder, bytes)| (holder.clone(), part(*bytes))).collect()
}

/// The kinds of event. In JSON the field `event` names the kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// First record: the request.
    RunStarted {
        /// Format version of the journal.
        v: u32,
        /// The run's name.
        run: String,
        /// The command line of homing, for people and for `resume`.
        argv: Vec<RawText>,
        /// Working directory.
        cwd: RawText,
        /// Coordinator's host name.
        host: String,
        /// Coordinator's process id.
        pid: u32,
        /// Number of tasks, if it is known at the start.
        tasks: Option<u64>,
        /// The name that the user has given it, beside its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
    /// A coordinator resumed the run.
    RunResumed {
        /// The coordinator's host name.
        host: String,
        /// The coordinator's process id.
        pid: u32,
    },
    /// A worker answered.
    HostUp {
        /// The name by which the user knows it.
        host: String,
        /// Slots in use for this run.
        slots: u32,
        /// The facts that the worker reported.
        facts: HostFacts,
    },
    /// A worker or host is gone. Its running tasks are not listed; each has its own record.
    HostLost {
        /// The host.
        host: String,
        /// The observed reason.
        reason: String,
    },
    /// A host is not used for some tasks.
    HostUnfit {
        /// The host.
        host: String,
        /// The reason.
        reason: String,
    },
    /// A load sample.
    Sample {
        /// The host.
        host: String,
        /// The values.
        sample: HostSample,
    },
    /// An attempt was sent to a host.
    TaskStarted {
        /// The task.
        task: TaskId,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// The host that runs it.
        host: String,
        /// Slot number, `{%}`, from 1.
        slot: u32,
        /// The command line that runs, byte by byte. Earlier versions wrote it with control characters escaped.
        command: RawText,
        /// Planned bytes, from the layout of the inputs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        planned: Option<PlannedBytes>,
        /// The reason for this host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// Tasks that it waited for, in a build.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Vec<TaskId>>,
    },
    /// An attempt ended.
    TaskEnded {
        /// The task.
        task: TaskId,
        /// Number of the attempt.
        attempt: u32,
        /// The host that ran it.
        host: String,
        /// The outcome.
        outcome: Outcome,
        /// Start on the coordinator's clock, ns since the epoch.
        start_ns: i64,
        /// Wall time in microseconds.
        wall_us: u64,
        /// The resources that it used.
        io: IoCounters,
        /// Time waited for I/O, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "measured")]
        io_wait: Option<IoWait>,
        /// Bytes of output.
        stdout_bytes: u64,
        /// Bytes of error output.
        stderr_bytes: u64,
        /// The last line of the error output of a failed task; printable, at most [`SAID_BYTES`] long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<String>,
        /// True for the last record of this task: no further attempt follows.
        last: bool,
        /// In the task's last record: a hash of the executed command, see `homing_journal::ran`.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "hex")]
        ran: Option<u64>,
    },
    /// The limit of simultaneous tasks on a storage host changed.
    Limit {
        /// The storage host.
        storage: String,
        /// The limit; null: its storage does not limit.
        limit: Option<u32>,
        /// The measured reason, one clause for people. Empty before the first measurement: the limit is the initial
        /// one.
        why: String,
    },
    /// Others use a storage server too, and the number of leases of some user changed.
    Leases {
        /// The storage server.
        storage: String,
        /// Tasks at once of all runs together; null: no limit was set.
        limit: Option<u32>,
        /// Login names and how many leases each has, this run's user included.
        users: Vec<(String, u32)>,
    },
    /// A task was not run: up to date, or done in an earlier part of the run.
    TaskSkipped {
        /// The task.
        task: TaskId,
        /// The reason.
        reason: String,
    },
    /// A finished task runs again, because its number now means another command than the one that ran.
    TaskAgain {
        /// The task.
        task: TaskId,
    },
    /// A message for the user.
    Note {
        /// One line.
        text: String,
    },
    /// Last record.
    RunEnded {
        /// Exit status of homing.
        exit: i32,
        /// Number of tasks by their end: `done`, `failed`, `not_run`, `skipped`, `unfinished`.
        counts: BTreeMap<String, u64>,
    },
}

/// Reads a measured time. Estimates become `None`: homing 0.1 made them from the host's pressure if the kernel kept
/// no account of delays.
fn measured<'a, D: Deserializer<'a>>(from: D) -> Result<Option<IoWait>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum MeasuredWait {
        Measured(IoWait),
        Else(IgnoredAny),
    }
    Ok(match Option::<MeasuredWait>::deserialize(from)? {
        Some(MeasuredWait::Measured(wait)) => Some(wait),
        Some(MeasuredWait::Else(_)) | None => None,
    })
}

/// 64 bits as 16 digits: many readers of JSON have no integers of that size.
mod hex {
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub fn serialize<S: Serializer>(bits: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
        match bits {
            Some(bits) => to.collect_str(&format_args!("{bits:016x}")),
            None => to.serialize_none(),
        }
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Option<u64>, D::Error> {
        let digits = Option::<String>::deserialize(from)?;
        digits.map(|digits| u64::from_str_radix(&digits, 16).map_err(D::Error::custom)).transpose()
    }
}
