//! Events for the tests of this room.

use homing_model::event::{PlannedBytes, What};
use homing_model::{IoCounters, Outcome, TaskId};

/// A first attempt begins.
pub(crate) fn started(task: TaskId, host: &str, slot: u32, command: &str, planned: Option<PlannedBytes>) -> What {
    What::TaskStarted { task, attempt: 1, host: host.into(), slot, command: command.into(), planned, why: None }
}

/// It ends, and no other follows.
pub(crate) fn ended(task: TaskId, host: &str, outcome: Outcome, wall_us: u64, io: IoCounters) -> What {
    What::TaskEnded {
        task,
        attempt: 1,
        host: host.into(),
        said: (!outcome.is_success()).then(|| "no such sample\u{1b}[2J".into()),
        outcome,
        start_ns: 0,
        wall_us,
        io,
        io_wait: None,
        stdout_bytes: 0,
        stderr_bytes: 0,
        last: true,
        ran: None,
    }
}
