//! Starts that wait until a host has memory free, or less to do.

use super::{Action, Core};
use homing_clock::Mono;
use homing_model::NodeSet;
use homing_model::units::bytes;

/// Waiting that is over sooner needs no word, microseconds.
const UNTOLD_US: u64 = 2_000_000;

/// What was told of it.
#[derive(Default)]
pub(super) struct Waits {
    since: Option<Mono>,
    told: bool,
}

impl Core {
    /// Says, once a run, that tasks wait for memory or load of hosts that have slots for them.
    pub(super) fn tell_of_waiting(&mut self, now: Mono) {
        if self.policy.memfree == 0 && self.policy.load.is_none() {
            return;
        }
        let why = if self.waiting.is_empty() { None } else { self.short_of_memory().or_else(|| self.loaded()) };
        let Some(text) = why else {
            self.held_back.since = None;
            return;
        };
        let since = *self.held_back.since.get_or_insert(now);
        if now >= since.after_us(UNTOLD_US) && !std::mem::replace(&mut self.held_back.told, true) {
            self.actions.push(Action::Note(text));
        }
    }

    pub(super) fn short_of_memory(&self) -> Option<String> {
        let short = self.hosts.short_of(self.policy.memfree);
        let most = bytes(short.iter().map(|(_, available)| *available).max()?);
        let hosts: NodeSet = short.iter().map(|(name, _)| name.to_string()).collect();
        let wanted = bytes(self.policy.memfree);
        Some(format!("tasks wait for memory: --memfree wants {wanted} free, {hosts} has {most}"))
    }

    pub(super) fn loaded(&self) -> Option<String> {
        let loaded = self.hosts.loaded();
        let least = loaded.iter().map(|(_, load)| *load).reduce(f64::min)?;
        let hosts: NodeSet = loaded.iter().map(|(name, _)| name.to_string()).collect();
        let most = self.policy.load.as_deref()?;
        Some(format!("tasks wait for hosts with less to do: --load is {most}, the load of {hosts} {least}"))
    }
}
