//! Tasks whose home is not ready yet. Their home is a host of the run that is still being connected to, or that has
//! not proved yet that it has their files. They wait for it as long as that costs less than fetching their inputs.

use super::{Action, Core};
use homing_model::TaskId;
use homing_model::hostname::HostIndex;
use homing_place::Params;
use std::collections::BTreeSet;

/// The hosts that may still come, and the tasks that wait for them.
#[derive(Debug, Default)]
pub(super) struct Coming {
    /// The names of the hosts that are being connected to.
    names: BTreeSet<String>,
    index: HostIndex,
    /// The tasks that wait. They are in no queue meanwhile.
    held: BTreeSet<TaskId>,
    /// Whether waiting is worth it. Never in a core without hosts to come.
    worth_it: bool,
    told: bool,
}

/// The bounds of the wait for a home, microseconds from the run's start.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The wait without any input to fetch.
    pub least_us: u64,
    /// The longest wait.
    pub most_us: u64,
}

impl Core {
    /// Sets the hosts that are still being connected to, `elapsed_us` after the run's start.
    pub fn connecting<'a>(&mut self, names: impl Iterator<Item = &'a str>, elapsed_us: u64, patience: Patience) {
        let names: BTreeSet<String> = names.map(String::from).collect();
        let worth_it = elapsed_us < self.patience_us(patience);
        if names != self.coming.names || worth_it != self.coming.worth_it {
            self.coming.index = HostIndex::default();
            names.iter().enumerate().for_each(|(at, name)| self.coming.index.add(at, [name.as_str()]));
            (self.coming.names, self.coming.worth_it) = (names, worth_it);
            self.look_again();
        }
        if elapsed_us >= patience.least_us && !self.coming.told {
            self.tell_who_waits();
        }
    }

    /// Explains once why idle hosts get no tasks.
    fn tell_who_waits(&mut self) {
        let mut homes = self.coming.held.iter().filter_map(|id| self.waiting.get(id)).flat_map(|w| &w.offer.per_host);
        if homes.any(|(name, _)| self.coming.index.find(name).is_some()) {
            self.coming.told = true;
            let names: Vec<&str> = self.coming.names.iter().map(String::as_str).collect();
            let text = format!("still connecting to {}; tasks whose inputs lie there wait for it", names.join(", "));
            self.actions.push(Action::Note(text));
        }
    }

    /// Whether the home of a task may still come, and is worth the wait.
    pub(super) fn waits_for_home(&mut self, id: TaskId) -> bool {
        let waits = self.home_is_coming(id);
        if waits {
            self.coming.held.insert(id);
        } else {
            self.coming.held.remove(&id);
        }
        waits
    }

    fn home_is_coming(&self, id: TaskId) -> bool {
        let Some(waiting) = self.waiting.get(&id).filter(|w| w.attempt == 1 && w.losses == 0) else { return false };
        let offer = &waiting.offer;
        if !self.coming.worth_it || !self.policy.locality || offer.guessed {
            return false;
        }
        let mut coming = false;
        for (name, _) in offer.per_host.iter().filter(|(_, bytes)| *bytes > 0) {
            match self.hosts.find(name).filter(|host| self.hosts.is_up(*host)) {
                Some(host) if self.volume_access.awaited(host, &offer.volumes) => coming = true,
                Some(host) if self.blind(&offer.volumes).any(|(blind, _)| blind == host) => {}
                Some(_) => return false,
                None => coming |= self.coming.index.find(name).is_some(),
            }
        }
        coming
    }

    /// Returns how long to wait: the least wait, plus the time to fetch the inputs of the waiting tasks over the
    /// slowest known link. Returns at most the longest wait.
    fn patience_us(&self, patience: Patience) -> u64 {
        let bytes: u64 = self.coming.held.iter().filter_map(|id| self.waiting.get(id)).map(|w| w.offer.total).sum();
        let link = self.hosts.slowest_link().unwrap_or(Params::default().default_bytes_per_s as u64).max(1);
        let fetching_us = u128::from(bytes) * 1_000_000 / u128::from(link);
        let us = patience.least_us.saturating_add(u64::try_from(fetching_us).unwrap_or(u64::MAX));
        us.min(patience.most_us)
    }

    fn look_again(&mut self) {
        for id in std::mem::take(&mut self.coming.held) {
            if self.waiting.contains_key(&id) {
                self.place_again(id);
            }
        }
    }
}
