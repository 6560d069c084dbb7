//! Gathers lines about hosts: equal lines of several hosts become one, with the host names folded.

use homing_model::alike;
use std::time::{Duration, Instant};

/// Equal lines of many hosts come one by one; the first waits this long for the others.
const GATHERED: Duration = Duration::from_secs(1);

/// Lines that were not yet shown.
pub(super) struct PendingNotes {
    untold: Vec<(String, String)>,
    since: Instant,
}

impl PendingNotes {
    pub fn new(now: Instant) -> PendingNotes {
        PendingNotes { untold: Vec::new(), since: now }
    }

    pub fn add(&mut self, host: &str, text: String, now: Instant) {
        if self.untold.is_empty() {
            self.since = now;
        }
        self.untold.push((host.into(), text));
    }

    /// Returns the folded lines, when the first has waited for the others, or if `at_once`.
    pub fn take(&mut self, now: Instant, at_once: bool) -> Vec<String> {
        let is_due = at_once || now.saturating_duration_since(self.since) >= GATHERED;
        let told = if is_due { std::mem::take(&mut self.untold) } else { Vec::new() };
        alike::folded(told.iter().map(|(host, text)| (host.as_str(), text.as_str())))
    }
}
