//! What a run has done that is taken up again: what is settled, and whether anything is left.

use crate::Tally;
use homing_journal::JournalError;
use homing_model::event::What;
use homing_model::{Event, Outcome, RawText, TaskId, exit};
use std::collections::HashMap;
use std::path::Path;

/// Tasks that need not run again, with the hash of what ran where that is known.
type Done = HashMap<TaskId, Option<u64>>;

/// The earlier parts of a run.
#[derive(Debug, Default)]
pub struct Earlier {
    /// Its command line and where that was given, if its journal has a beginning.
    pub opening: Option<(Vec<RawText>, RawText)>,
    /// What need not run again.
    pub done: Done,
    /// The evidence.
    pub tally: Tally,
    /// Records that cannot be read, in words.
    pub damage: Vec<String>,
}

impl Earlier {
    /// Reads the journal in a folder. `failed`: tasks that failed run again.
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
            What::RunStarted { argv, cwd, .. } => self.opening = Some((argv, cwd)),
            What::TaskEnded { task, last: true, outcome, ran, .. } => {
                match outcome.is_success() || (!failed && counts_as_failed(&outcome)) {
                    true => self.done.insert(task, ran),
                    false => self.done.remove(&task),
                };
            }
            What::TaskSkipped { task, .. } => drop(self.done.insert(task, None)),
            What::TaskAgain { task } => drop(self.done.remove(&task)),
            _ => {}
        }
    }
}

/// The exit status of a run of which nothing is left. With two of them the run itself broke off, as at an input that was
/// cut: more may be left than it knew.
pub fn settled(tally: &Tally, done: &Done) -> Option<i32> {
    let broke_off = |status: &i32| [exit::SYSTEM, exit::USAGE].contains(status);
    let exit = tally.exit().filter(|status| !broke_off(status))?;
    tally.counts().is_settled(|task| done.contains_key(&task)).then_some(exit)
}

/// Killed and lost tasks are unfinished, not failed; what was not run may run when what it needs does.
fn counts_as_failed(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Killed | Outcome::Lost(_) | Outcome::NotRun(_))
}
