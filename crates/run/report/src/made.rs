//! Events for the tests of this crate.

#[path = "../../../../tests/ended.rs"]
mod ended;

use ended::End;
use homing_model::event::{EventKind, PlannedBytes};
use homing_model::{IoCounters, Outcome, TaskId};

/// Returns the start of a first attempt.
pub(crate) fn started(task: TaskId, host: &str, slot: u32, command: &str, planned: Option<PlannedBytes>) -> EventKind {
    EventKind::TaskStarted {
        task,
        attempt: 1,
        host: host.into(),
        slot,
        command: command.into(),
        planned,
        why: None,
        after: None,
    }
}

/// Returns the end of a last attempt.
pub(crate) fn ended(task: TaskId, host: &str, outcome: Outcome, wall_us: u64, io: IoCounters) -> EventKind {
    let said = (!outcome.is_success()).then(|| "no such sample\u{1b}[2J".into());
    EventKind::from(End { task, host: host.into(), outcome, wall_us, io, said, ..End::default() })
}
