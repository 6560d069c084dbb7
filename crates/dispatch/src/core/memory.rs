//! Starts that wait until a host has memory free.

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
    /// Says, once a run, that tasks wait for memory on hosts that have slots for them.
    pub(super) fn tell_of_memory(&mut self, now: Mono) {
        if self.policy.memfree == 0 {
            return;
        }
        let short = if self.waiting.is_empty() { Vec::new() } else { self.hosts.short_of(self.policy.memfree) };
        let Some(most) = short.iter().map(|(_, available)| *available).max() else {
            self.memory.since = None;
            return;
        };
        let since = *self.memory.since.get_or_insert(now);
        if now < since.after_us(UNTOLD_US) || std::mem::replace(&mut self.memory.told, true) {
            return;
        }
        let hosts: NodeSet = short.iter().map(|(name, _)| name.to_string()).collect();
        let (wanted, most) = (bytes(self.policy.memfree), bytes(most));
        let text = format!("tasks wait for memory: --memfree wants {wanted} free, {hosts} has {most}");
        self.actions.push(Action::Note(text));
    }
}
