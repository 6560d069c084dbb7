//! Delays jobs whose keepers could not start them, and gives them up after several attempts.

use crate::plan::JobView;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The first pause between two attempts at a job whose keeper cannot start it.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The most attempts; they take about a minute.
const ATTEMPTS: u32 = 8;

/// Keepers that ended before they had recorded a start, because of a full disk or a limit on processes. They are
/// tried again after a growing pause.
#[derive(Default)]
pub(crate) struct KeeperRetries(BTreeMap<(u64, u32), (u32, Instant)>);

impl KeeperRetries {
    /// Counts a start, and sets the pause before the next one.
    pub fn note(&mut self, id: u64, index: u32) {
        let entry = self.0.entry((id, index)).or_insert((0, Instant::now()));
        // The first restart is for a keeper that was killed.
        let pause = if entry.0 == 0 { Duration::ZERO } else { FIRST_PAUSE * 2u32.pow(entry.0.min(10)) };
        *entry = (entry.0 + 1, Instant::now() + pause);
    }
    /// Forgets all elements but those that still wait.
    pub fn forget_all_but<'a>(&mut self, waiting: impl Iterator<Item = &'a JobView>) {
        if self.0.is_empty() {
            return;
        }
        let waiting: BTreeSet<(u64, u32)> = waiting.map(|v| (v.id, v.index)).collect();
        self.0.retain(|part, _| waiting.contains(part));
    }
    /// Whether the pause of an element is not over.
    pub fn must_wait(&self, id: u64, index: u32) -> bool {
        self.0.get(&(id, index)).is_some_and(|(_, until)| Instant::now() < *until)
    }
    /// Whether an element has used all its attempts: its caller ends it as failed.
    pub fn is_hopeless(&self, id: u64, index: u32) -> bool {
        self.0.get(&(id, index)).is_some_and(|(count, _)| *count >= ATTEMPTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keeper_that_cannot_start_is_tried_again_with_growing_pauses_and_not_for_ever() {
        let mut failed = KeeperRetries::default();
        assert!(!failed.must_wait(1, 0));
        failed.note(1, 0);
        assert!(!failed.must_wait(1, 0), "it may only have been killed");
        failed.note(1, 0);
        assert!(failed.must_wait(1, 0) && !failed.must_wait(1, 1));
        (2..ATTEMPTS).for_each(|_| failed.note(1, 0));
        assert!(failed.is_hopeless(1, 0) && !failed.is_hopeless(2, 0));
        failed.forget_all_but(std::iter::empty());
        assert!(!failed.is_hopeless(1, 0));
    }
}
