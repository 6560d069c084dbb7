//! Hosts that cannot be used, told together where they say alike.

use super::Shell;
use crate::settings::Listener;
use homing_clock::Mono;
use homing_model::alike;

/// Refusals of many hosts come one by one; the first waits so long for the others, microseconds.
const GATHERED_US: u64 = 1_000_000;

/// Those that nobody was told of yet.
#[derive(Default)]
pub(super) struct Refusals {
    since: Option<Mono>,
    said: Vec<(String, String)>,
}

impl Refusals {
    pub(super) fn add(&mut self, host: &str, why: String, now: Mono) {
        self.since.get_or_insert(now);
        self.said.push((host.into(), why));
    }

    pub(super) fn is_due(&self, now: Mono) -> bool {
        self.since.is_some_and(|since| now >= since.after_us(GATHERED_US))
    }
}

impl<L: Listener> Shell<'_, L> {
    pub(super) fn tell_refusals(&mut self) {
        let said = std::mem::take(&mut self.untold).said;
        let lines = alike::folded(said.iter().map(|(host, why)| (host.as_str(), why.as_str())));
        lines.iter().for_each(|line| self.listener.note(line));
    }
}
