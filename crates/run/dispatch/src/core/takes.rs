//! The memory and named resources that tasks use: never more at once than their host has.

use super::Core;
use homing_model::Task;
use homing_model::resource::{GPU, PARTS, is_gpu};
use homing_place::HostIx;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Named resources of the hosts of a run, in parts of a unit.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    /// The amounts of each host.
    pub each: BTreeMap<String, u64>,
    /// The different amounts of single hosts, by name.
    pub hosts: HashMap<String, BTreeMap<String, u64>>,
}

/// Adds the graphics processors that a host reports, if no amount was configured for it.
pub(super) fn with_found(mut amounts: BTreeMap<String, u64>, gpus: u32) -> BTreeMap<String, u64> {
    if gpus > 0 && !amounts.keys().any(|name| is_gpu(name)) {
        amounts.insert(GPU.into(), u64::from(gpus) * PARTS);
    }
    amounts
}

impl Resources {
    /// Returns the amounts of one host.
    pub fn of(&self, host: &str) -> BTreeMap<String, u64> {
        let own = self.hosts.get(host).into_iter().flatten();
        self.each.iter().chain(own).map(|(name, amount)| (name.clone(), *amount)).collect()
    }

    /// Returns the largest amount of each resource on a host.
    pub fn most(&self) -> BTreeMap<String, u64> {
        let mut most = self.each.clone();
        for (name, amount) in self.hosts.values().flatten() {
            let known = most.entry(name.clone()).or_default();
            *known = (*known).max(*amount);
        }
        most
    }
}

/// The kinds of amounts: memory, then the named resources.
#[derive(Debug, Default)]
pub(super) struct ResourceAmounts {
    names: Vec<String>,
    /// Whether a task with an amount was offered. Before that, amounts are not counted.
    counts: bool,
}

impl ResourceAmounts {
    pub fn new(resources: &Resources) -> ResourceAmounts {
        let mut names: BTreeSet<String> = resources.most().into_keys().collect();
        // Hosts may report some when they join.
        names.insert(GPU.into());
        ResourceAmounts { names: names.into_iter().collect(), counts: false }
    }

    /// Returns the amount of each kind that a task uses; empty for a task without any.
    pub fn takes(&self, task: &Task) -> Vec<u64> {
        let memory = task.memory.unwrap_or(0);
        if memory == 0 && task.resources.is_empty() {
            return Vec::new();
        }
        let of = |name: &String| task.resources.iter().find(|(own, _)| own == name).map_or(0, |(_, amount)| *amount);
        [memory].into_iter().chain(self.names.iter().map(of)).collect()
    }
}

impl Core {
    /// Counts a task that starts (`true`) or has ended.
    pub(super) fn claim(&mut self, host: HostIx, task: &Task, starts: bool) {
        if self.room.counts {
            self.hosts.claim(host, task, starts);
            self.tell_room(host);
        }
    }

    /// Takes a new task. From the first task with an amount on, amounts are counted.
    pub(super) fn count_room(&mut self, task: &Task) {
        if !self.room.counts && !self.room.takes(task).is_empty() {
            self.room.counts = true;
            (0..self.hosts.len()).for_each(|host| self.tell_room(host));
        }
    }

    pub(super) fn tell_room(&mut self, host: HostIx) {
        if self.room.counts {
            self.placer.set_room(host, self.hosts.room(host, &self.room.names));
        }
    }
}
