//! Reads a journal by `docs/formats.md`. It does not use the program's own reader, because the campaign looks for
//! faults of that reader too.

use serde_json::Value;
use std::collections::BTreeMap;

/// The state of a task by the records so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskOutcome {
    /// The task has no last record, or one that does not settle it.
    #[default]
    Open,
    /// homing gave the task up, as its hosts were lost. The run counts it as failed, and `homing resume` runs it
    /// again.
    Lost,
    /// The task succeeded.
    Done,
    /// The task failed.
    Failed,
}

/// A task as its journal records it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalTask {
    /// The number of starts.
    pub starts: u64,
    /// The number of records of its success.
    pub done: u64,
    /// The number of starts after the first success.
    pub starts_after_done: u64,
    /// The state of the task.
    pub end: TaskOutcome,
}

/// A whole journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    /// The tasks by number.
    pub tasks: BTreeMap<u64, JournalTask>,
    /// Lines that are no records, other than those in `damaged`.
    pub unreadable: u64,
}

impl Journal {
    /// Reads a journal. `damaged` are lines that were spoilt on purpose: the records in them do not count.
    pub fn read(bytes: &[u8], damaged: &[Vec<u8>]) -> Journal {
        let mut journal = Journal::default();
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let lines = bytes[..whole].split(|b| *b == b'\n').filter(|line| !line.is_empty());
        for line in lines.filter(|line| !damaged.iter().any(|spoilt| spoilt == line)) {
            match serde_json::from_slice::<Value>(line) {
                Ok(record) => journal.add(&record),
                Err(_) => journal.unreadable += 1,
            }
        }
        journal
    }

    fn add(&mut self, record: &Value) {
        let Some(number) = record["task"].as_u64() else { return };
        let task = self.tasks.entry(number).or_default();
        match record["event"].as_str() {
            Some("task_started") => {
                task.starts += 1;
                task.starts_after_done += u64::from(task.done > 0);
            }
            Some("task_ended") if record["last"] == true => {
                task.end = end(&record["outcome"]);
                task.done += u64::from(task.end == TaskOutcome::Done);
            }
            _ => {}
        }
    }

    /// Returns a task; one that never began is open.
    pub fn task(&self, number: u64) -> JournalTask {
        self.tasks.get(&number).cloned().unwrap_or_default()
    }
}

fn end(outcome: &Value) -> TaskOutcome {
    match outcome {
        Value::String(word) if word == "killed" => TaskOutcome::Open,
        Value::Object(kind) if kind.contains_key("lost") => TaskOutcome::Lost,
        Value::Object(kind) if kind.get("exit") == Some(&Value::from(0)) => TaskOutcome::Done,
        _ => TaskOutcome::Failed,
    }
}
