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
    /// Forgets elements that have started or ended, and those that no longer exist. An element whose keeper is alive
    /// and has recorded no start is counted on: the keeper may fail again.
    pub fn forget_started(&mut self, views: &[JobView]) {
        if self.0.is_empty() {
            return;
        }
        let unstarted = views.iter().filter(|view| !view.state.is_over() && view.began.is_zero());
        let unstarted: BTreeSet<(u64, u32)> = unstarted.map(|view| (view.id, view.index)).collect();
        self.0.retain(|part, _| unstarted.contains(part));
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
    use crate::plan::tests::view;
    use crate::state::ElementState;

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
        // A round may come while the keeper is alive and before it fails.
        let starting = JobView { state: ElementState::Run, ..view(1, 10) };
        failed.forget_started(std::slice::from_ref(&starting));
        assert!(failed.is_hopeless(1, 0), "its start is not recorded");
        failed.forget_started(&[JobView { began: Duration::from_secs(1), ..starting }]);
        assert!(!failed.is_hopeless(1, 0), "it has started");
        failed.note(1, 0);
        failed.forget_started(&[]);
        assert!(failed.0.is_empty(), "it no longer exists");
    }
}
