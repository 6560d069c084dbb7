//! Tracks which hosts of a branch have answered and still work. Pure.

use crate::pool::{Giver, HostEventKind, HostProgress};
use std::collections::BTreeSet;

/// The hosts at work, as known since the last report.
#[derive(Default)]
pub(super) struct AtWork {
    /// Hosts served from here that have answered.
    own: BTreeSet<usize>,
    /// Hosts that a leader below has reported since then.
    told: BTreeSet<usize>,
}

impl AtWork {
    pub fn record_event(&mut self, event: &HostProgress) {
        match (&event.what, event.giver) {
            (HostEventKind::Stdout(_) | HostEventKind::Stderr(_), Giver::Here) => drop(self.own.insert(event.host)),
            (HostEventKind::Alive, _) => drop(self.told.insert(event.host)),
            // A host that begins again has yet to answer.
            (HostEventKind::Begun | HostEventKind::Done(..), Giver::Here | Giver::Leader(_)) => {
                self.own.remove(&event.host);
                self.told.remove(&event.host);
            }
            _ => {}
        }
    }

    pub fn take(&mut self) -> Vec<usize> {
        let told = std::mem::take(&mut self.told);
        self.own.union(&told).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommandOutcome;
    use std::time::Duration;

    #[test]
    fn hosts_are_at_work_from_their_first_word_to_their_end() {
        let mut at_work = AtWork::default();
        let mut hear = |host, giver, what| {
            at_work.record_event(&HostProgress { host, giver, what });
            at_work.take()
        };
        let word = || HostEventKind::Stdout(b"x".to_vec());
        assert_eq!(hear(0, Giver::Here, HostEventKind::Begun), [0; 0], "it may not be reached");
        assert_eq!(hear(0, Giver::Here, word()), [0]);
        assert_eq!(hear(3, Giver::Leader(2), word()), [0], "what a leader below has told may be its last word");
        assert_eq!(hear(3, Giver::Leader(2), HostEventKind::Alive), [0, 3]);
        assert_eq!(hear(1, Giver::Load, word()), [0]);
        assert_eq!(hear(0, Giver::Here, HostEventKind::Done(CommandOutcome::TimedOut, Duration::ZERO)), [0; 0]);
    }
}
