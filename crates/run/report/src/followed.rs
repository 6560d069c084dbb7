//! A journal as it grows, up to a moment.

use crate::Now;
use homing_journal::{JournalError, Replay};
use homing_model::Event;
use homing_model::live::Progress;

/// What a run is doing at a moment, as far as its journal tells.
pub struct Followed {
    /// As of the last event that was taken.
    pub now: Now,
    journal: Replay,
    next: Option<Event>,
}

impl Followed {
    /// From its beginning, of which nothing is taken yet.
    pub fn new(journal: Replay) -> Followed {
        Followed { now: Now::default(), journal, next: None }
    }

    /// Takes what happened until `until_ns`. Damage is passed over: `report` names it.
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

    /// When the next thing happens that is known already.
    pub fn next_ns(&self) -> Option<i64> {
        self.next.as_ref().map(|event| event.at_ns)
    }

    /// Nothing more comes.
    pub fn is_over(&self) -> bool {
        self.next.is_none() && self.now.is_over()
    }

    /// How far it is.
    pub fn progress(&self, now_ns: i64) -> Progress {
        let (running, slots, hosts) = self.now.used();
        let counts = self.now.tally().counts();
        let (over, elapsed) = (self.now.over(), self.now.elapsed(now_ns));
        Progress { over, failed: counts.failed(), running, total: counts.total, slots, hosts, elapsed }
    }
}
