//! The failed tasks of a run, each with the data that a user needs to inspect it and to run it again.

use crate::tally::FailedTask;
use crate::text::how;
use homing_model::event::EventKind;
use homing_model::text::{aligned, shown};
use homing_model::units::{count, span};
use homing_model::{Event, Outcome, RawText, TaskId, fit};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// The most characters of an input or a command in a line.
const SHOWN: usize = 100;

/// The failed tasks of a run. The caller passes every event, in order. Memory grows with running and failed tasks.
#[derive(Debug, Default)]
pub struct Failures {
    running: HashMap<TaskId, RawText>,
    failed: BTreeMap<TaskId, FailedTask>,
}

/// The values of the input sources of each task, or the inputs that it declares, where they are known.
pub type InputsOfTasks = HashMap<TaskId, Vec<RawText>>;

impl Failures {
    /// Takes the next event.
    pub fn add(&mut self, event: &Event) {
        match &event.what {
            EventKind::TaskStarted { task, command, .. } => drop(self.running.insert(*task, command.clone())),
            EventKind::TaskEnded { task, host, outcome, wall_us, said, last, .. } => {
                let command = self.running.remove(task).unwrap_or_default();
                if *last && is_failure(outcome) {
                    let (host, outcome, said) = (host.clone(), outcome.clone(), said.clone());
                    let failed =
                        FailedTask { task: *task, host, outcome, wall_us: *wall_us, command, error_line: said };
                    self.failed.insert(*task, failed);
                } else if *last {
                    self.failed.remove(task);
                }
            }
            EventKind::TaskAgain { task } => drop(self.failed.remove(task)),
            _ => {}
        }
    }

    /// Returns the numbers of the failed tasks, in order.
    pub fn tasks(&self) -> Vec<TaskId> {
        self.failed.keys().copied().collect()
    }

    /// Returns the failed tasks as JSON, in the order of their numbers.
    pub fn json(&self, inputs: &InputsOfTasks) -> Value {
        let row = |failed: &FailedTask| {
            let (exit, signal) = match failed.outcome {
                Outcome::Exit(code) => (Some(code), None),
                Outcome::Signal(signal) => (None, Some(signal)),
                _ => (None, None),
            };
            json!({
                "task": failed.task, "host": host_of(failed), "status": how(&failed.outcome),
                "outcome": failed.outcome, "exit": exit, "signal": signal, "wall_us": failed.wall_us,
                "inputs": inputs.get(&failed.task), "command": failed.command, "said": failed.error_line,
            })
        };
        self.failed.values().map(row).collect()
    }

    /// Returns a line for each task, with its command and the last line of its error output below it.
    pub fn text(&self, inputs: &InputsOfTasks) -> String {
        if self.failed.is_empty() {
            return "no task has failed\n".into();
        }
        let mut rows = vec![["TASK", "HOST", "STATUS", "AFTER", "INPUT"].map(String::from)];
        let input = |task| inputs.get(task).map_or("-".into(), |words| clipped(&joined(words)));
        for failed in self.failed.values() {
            let host = host_of(failed).map_or("-".into(), shown);
            let status = shown(&how(&failed.outcome));
            rows.push([failed.task.to_string(), host, status, span(failed.wall_us), input(&failed.task)]);
        }
        let table = aligned(&rows, 0..1);
        let mut lines = table.lines();
        let mut text = format!("{}\n", lines.next().unwrap_or_default().trim_end());
        for (line, failed) in lines.zip(self.failed.values()) {
            text += &format!("{}\n", line.trim_end());
            let below = [Some(clipped(&failed.command.display())), failed.error_line.as_deref().map(shown)];
            below
                .into_iter()
                .flatten()
                .filter(|line| !line.is_empty())
                .for_each(|line| text += &format!("      {line}\n"));
        }
        text + &count(self.failed.len() as u64, "failed task") + "\n"
    }

    /// Returns the inputs of the failed tasks, each ended by NUL, as `homing run -0` reads them. `Err` names a task
    /// whose inputs are unknown.
    pub fn inputs(&self, inputs: &InputsOfTasks) -> Result<Vec<u8>, TaskId> {
        let mut bytes = Vec::new();
        for task in self.failed.keys() {
            let words = inputs.get(task).filter(|words| !words.is_empty()).ok_or(*task)?;
            for word in words {
                bytes.extend_from_slice(&word.0);
                bytes.push(0);
            }
        }
        Ok(bytes)
    }
}

/// Whether the outcome counts as failed in [`homing_journal::Counts`]. A killed task, or one that could not start,
/// has not failed.
fn is_failure(outcome: &Outcome) -> bool {
    !outcome.is_success() && !matches!(outcome, Outcome::Killed | Outcome::NotRun(_))
}

fn host_of(failed: &FailedTask) -> Option<&str> {
    Some(failed.host.as_str()).filter(|host| !host.is_empty())
}

fn joined(words: &[RawText]) -> String {
    words.iter().map(RawText::display).collect::<Vec<_>>().join(" ")
}

fn clipped(text: &str) -> String {
    fit::clipped(&shown(text), SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::{ended, started};
    use homing_model::IoCounters;

    fn failures(whats: impl IntoIterator<Item = EventKind>) -> Failures {
        let mut failures = Failures::default();
        whats.into_iter().for_each(|what| failures.add(&Event { at_ns: 0, what }));
        failures
    }

    fn end(task: TaskId, outcome: Outcome) -> [EventKind; 2] {
        let command = format!("qc {task}");
        [started(task, "n1", 1, &command, None), ended(task, "n1", outcome, 2_000_000, IoCounters::default())]
    }

    #[test]
    fn all_failed_tasks_are_listed_with_input_status_and_last_words() {
        let whats = (1..=30).flat_map(|task| end(task, Outcome::Exit(if task % 7 == 0 { 4 } else { 0 })));
        let failures = failures(whats);
        let inputs: InputsOfTasks = (1..=30).map(|task| (task, vec![format!("in{task}").as_str().into()])).collect();
        assert_eq!(failures.tasks(), [7, 14, 21, 28]);
        let text = failures.text(&inputs);
        for wanted in ["in7", "exit 4", "qc 28", "no such sample", "4 failed tasks", "INPUT"] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert_eq!(failures.inputs(&inputs).unwrap(), b"in7\0in14\0in21\0in28\0");
        assert_eq!(failures.inputs(&InputsOfTasks::new()), Err(7));
        let json = failures.json(&inputs);
        assert_eq!((&json[3]["task"], &json[3]["exit"], &json[3]["host"]), (&28.into(), &4.into(), &"n1".into()));
        assert_eq!(json[0]["inputs"], serde_json::json!(["in7"]));
    }

    #[test]
    fn programs_get_the_outcome_as_the_journal_has_it() {
        let outcomes = [
            (Outcome::Exit(3), json!({"exit": 3})),
            (Outcome::TimedOut, json!("timed_out")),
            (Outcome::Lost("gone".into()), json!({"lost": "gone"})),
            (Outcome::OutputLimit, json!("output_limit")),
        ];
        for (outcome, expected) in outcomes {
            assert_eq!(failures(end(1, outcome)).json(&InputsOfTasks::new())[0]["outcome"], expected);
        }
    }

    #[test]
    fn a_task_that_succeeds_later_or_was_ended_by_a_person_is_none() {
        let again = end(1, Outcome::Exit(1)).into_iter().chain(end(1, Outcome::Exit(0)));
        assert_eq!(failures(again).text(&InputsOfTasks::new()), "no task has failed\n");
        assert!(failures(end(1, Outcome::Killed)).tasks().is_empty());
        let to_do = end(1, Outcome::Exit(1)).into_iter().chain([EventKind::TaskAgain { task: 1 }]);
        assert!(failures(to_do).tasks().is_empty());
        assert_eq!(failures(end(1, Outcome::Lost("gone".into()))).tasks(), [1]);
    }
}
