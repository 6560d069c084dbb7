//! Follows a growing journal up to a moment.

use crate::Now;
use homing_journal::{JournalError, Replay};
use homing_model::Event;
use homing_model::live::RunProgress;

/// The state of a run at a moment, from its journal.
pub struct Followed {
    /// The state after the last event that was added.
    pub now: Now,
    journal: Replay,
    next: Option<Event>,
}

impl Followed {
    /// Starts before the first event of the journal.
    pub fn new(journal: Replay) -> Followed {
        Followed { now: Now::default(), journal, next: None }
    }

    /// Adds the events until `until_ns`. Skips damage, which `report` names.
    pub fn go_on(&mut self, until_ns: i64) -> Result<(), JournalError> {
        self.journal.go_on();
        loop {
            let event = match self.next.take() {
                Some(event) => event,
                None => match self.journal.next() {
                    None => return Ok(()),
                    Some(Err(JournalError::Damaged { .. })) => continue,
                    Some(event) => event?,
                },
            };
            if event.at_ns > until_ns {
                self.next = Some(event);
                return Ok(());
            }
            self.now.add(&event);
        }
    }

    /// Returns the time of the next known event.
    pub fn next_ns(&self) -> Option<i64> {
        self.next.as_ref().map(|event| event.at_ns)
    }

    /// Whether no further event can follow.
    pub fn is_over(&self) -> bool {
        self.next.is_none() && self.now.is_over()
    }

    /// Returns the progress of the run.
    pub fn progress(&self, now_ns: i64) -> RunProgress {
        let (running, slots, hosts) = self.now.used();
        let counts = self.now.tally().counts();
        let (over, elapsed) = (self.now.over(), self.now.elapsed(now_ns));
        RunProgress { over, failed: counts.failed(), running, total: counts.total, slots, hosts, elapsed }
    }
}
