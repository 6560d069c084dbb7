//! Starts that wait for free memory on a host, for a lower load, or for slots that others use.

use super::{Action, Core};
use homing_model::NodeSet;
use homing_model::units::bytes;
use homing_os::clock::Mono;
use homing_place::HostIx;

/// The wait below which no note is due, microseconds.
const UNTOLD_US: u64 = 2_000_000;

/// The state of the note about waiting tasks.
#[derive(Default)]
pub(super) struct WaitNote {
    since: Option<Mono>,
    told: bool,
}

impl Core {
    /// Reports once a run that tasks wait for memory, load or slots of hosts.
    pub(super) fn tell_of_waiting(&mut self, now: Mono) {
        let bounded = self.policy.memfree > 0 || self.policy.load.is_some();
        let short = || self.short_of_memory().or_else(|| self.loaded());
        let why = if bounded && !self.waiting.is_empty() { short() } else { None };
        let why = why.or_else(|| if self.waiting.is_empty() { None } else { self.crowded() });
        let Some(text) = why else {
            self.held_back.since = None;
            return;
        };
        let since = *self.held_back.since.get_or_insert(now);
        if now >= since.after_us(UNTOLD_US) && !std::mem::replace(&mut self.held_back.told, true) {
            self.actions.push(Action::Note(text));
        }
    }

    /// Returns the slots of a host that the run's tasks use, and those that they could use if all were the run's.
    pub(crate) fn wants(&self, host: HostIx) -> (u32, u32) {
        let (slots, used) = self.hosts.slots_of(host);
        let more = self.waiting.values().take(slots as usize).map(|waiting| waiting.offer.task.cpus.max(1));
        let more = if self.nothing_to_start() { 0 } else { more.fold(0, u32::saturating_add) };
        (used, used.saturating_add(more).min(slots).max(used))
    }

    /// Sets how many slots of a host the run may use, if others use them too.
    pub(crate) fn granted(&mut self, host: HostIx, slots: u32) {
        self.hosts.grant(host, slots);
    }

    fn crowded(&self) -> Option<String> {
        let (host, granted, slots) = self.hosts.crowded()?;
        let have = if granted == 0 { "all".into() } else { format!("{} of", slots - granted) };
        Some(format!(
            "tasks wait for slots: jobs of the queue hold {have} {slots} slots of {host}, or wait for them; \
             --no-share ignores the queue"
        ))
    }

    pub(super) fn short_of_memory(&self) -> Option<String> {
        let short = self.hosts.short_of(self.policy.memfree);
        let most = bytes(short.iter().map(|(_, available)| *available).max()?);
        let hosts: NodeSet = short.iter().map(|(name, _)| name.to_string()).collect();
        let wanted = bytes(self.policy.memfree);
        Some(format!("tasks wait for memory: --memfree requires {wanted} free, {hosts} has {most}"))
    }

    pub(super) fn loaded(&self) -> Option<String> {
        let loaded = self.hosts.loaded();
        let least = loaded.iter().map(|(_, load)| *load).reduce(f64::min)?;
        let hosts: NodeSet = loaded.iter().map(|(name, _)| name.to_string()).collect();
        let most = self.policy.load.as_deref()?;
        Some(format!("tasks wait for less loaded hosts: --load is {most}, the load of {hosts} is {least}"))
    }
}
