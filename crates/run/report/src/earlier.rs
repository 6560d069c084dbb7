//! The state of an earlier run for `resume`: the settled tasks, and whether any task is left.

use crate::Tally;
use homing_journal::JournalError;
use homing_model::event::EventKind;
use homing_model::{Event, Outcome, RawText, TaskId, exit};
use std::collections::HashMap;
use std::path::Path;

/// The tasks that need not run again, with the hash of each task's command, if it is known.
type CompletedTasks = HashMap<TaskId, Option<u64>>;

/// The earlier parts of a run.
#[derive(Debug, Default)]
pub struct Earlier {
    /// The command line and the folder where it was given, if the journal has a beginning.
    pub opening: Option<(Vec<RawText>, RawText)>,
    /// The tasks that need not run again.
    pub done: CompletedTasks,
    /// The sums over the earlier parts.
    pub tally: Tally,
    /// The errors of records that cannot be read.
    pub damage: Vec<String>,
}

impl Earlier {
    /// Reads the journal in a folder. With `failed`, failed tasks run again.
    pub fn read(dir: &Path, failed: bool) -> Result<Earlier, JournalError> {
        let mut earlier = Earlier::default();
        for event in homing_journal::replay(dir)? {
            match event {
                Err(error @ JournalError::Damaged { .. }) => earlier.damage.push(error.to_string()),
                event => earlier.take(event?, failed),
            }
        }
        Ok(earlier)
    }

    fn take(&mut self, event: Event, failed: bool) {
        self.tally.add(&event);
        match event.what {
            EventKind::RunStarted { argv, cwd, .. } => self.opening = Some((argv, cwd)),
            EventKind::TaskEnded { task, last: true, outcome, ran, .. } => {
                match outcome.is_success() || (!failed && counts_as_failed(&outcome)) {
                    true => self.done.insert(task, ran),
                    false => self.done.remove(&task),
                };
            }
            EventKind::TaskSkipped { task, .. } => drop(self.done.insert(task, None)),
            EventKind::TaskAgain { task } => drop(self.done.remove(&task)),
            _ => {}
        }
    }
}

/// Returns the exit status of a run without any task left, else `None`. Also `None` after a system or usage error: the
/// run itself broke off, for example at an input that was cut off. Then more tasks may be left than it knew.
pub fn settled(tally: &Tally, done: &CompletedTasks) -> Option<i32> {
    let broke_off = |status: &i32| [exit::SYSTEM, exit::USAGE].contains(status);
    let exit = tally.exit().filter(|status| !broke_off(status))?;
    tally.counts().is_settled(|task| done.contains_key(&task)).then_some(exit)
}

/// Whether an outcome counts as failed. Killed and lost tasks are unfinished. A task that did not run may run once
/// the tasks that it needs succeed.
fn counts_as_failed(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Killed | Outcome::Lost(_) | Outcome::NotRun(_))
}
