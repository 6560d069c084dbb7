//! What is told of hosts: what several have alike in one line, with the hosts folded.

use homing_model::alike;
use std::time::{Duration, Instant};

/// What many hosts have alike comes one by one; the first waits so long for the others.
const GATHERED: Duration = Duration::from_secs(1);

/// What nobody was told yet.
pub(super) struct Gathered {
    untold: Vec<(String, String)>,
    since: Instant,
}

impl Gathered {
    pub fn new(now: Instant) -> Gathered {
        Gathered { untold: Vec::new(), since: now }
    }

    pub fn add(&mut self, host: &str, text: String, now: Instant) {
        if self.untold.is_empty() {
            self.since = now;
        }
        self.untold.push((host.into(), text));
    }

    /// Lines of it, when the first has waited for the others, or `at_once`.
    pub fn take(&mut self, now: Instant, at_once: bool) -> Vec<String> {
        let is_due = at_once || now.saturating_duration_since(self.since) >= GATHERED;
        let told = if is_due { std::mem::take(&mut self.untold) } else { Vec::new() };
        alike::folded(told.iter().map(|(host, text)| (host.as_str(), text.as_str())))
    }
}
