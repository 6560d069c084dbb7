//! Chooses tasks that a host takes without comparing costs: tasks whose bytes it holds, and tasks that may run
//! anywhere.

use crate::class::GroupKey;
use crate::fetch::SOONEST_US;
use crate::groups::{GroupIx, Oldest, Shelf, ShelfEntry};
use crate::host::Storage;
use crate::placer::TaskChoice;
use crate::{HostIx, Placer};

/// Times a group may be passed over before its oldest task comes first.
const PATIENCE: u64 = 256;
/// Times a wide task finds too few free slots before a host collects them for it.
const WIDE_PATIENCE: u64 = 32;
/// Times that a host leaves a group to the host that wrote its inputs.
const CLAIM: u64 = 8;
/// Groups of a host that are compared for the one with least choice, the oldest first. A host has as many among 16
/// hosts with two copies of each file. With more groups, the best of these is hardly worse than the best of all, and
/// a decision among a million groups costs the same.
const LOOK_AT_HOME: usize = 16;

impl Placer {
    /// Returns the task that `host` takes next, from those that are at home here or nowhere.
    pub(crate) fn at_home(&self, host: HostIx, free: u32, now_us: u64) -> Option<TaskChoice> {
        let own = self.within_reach(self.groups.at(host), host, free);
        let nobodys = self.within_reach(self.groups.anywhere(), host, free);
        // On a single host no order saves a byte, so the order of the input holds.
        if self.hosts.len() == 1 {
            return oldest(own.iter().chain(&nobodys));
        }
        let overdue = own.iter().chain(&nobodys).filter(|(_, group)| self.groups.passed(*group) >= PATIENCE);
        oldest(overdue).or_else(|| self.own(host, &own, now_us)).or_else(|| oldest(nobodys.iter()))
    }

    /// Returns the oldest groups on the shelf from which this host may take.
    pub(crate) fn within_reach(&self, shelf: &Shelf, host: HostIx, free: u32) -> Vec<Oldest> {
        let is_full = self.hosts[host].storage == Storage::Full;
        let may = |(_, group, plain): &&ShelfEntry| {
            let key = || &self.groups.get(*group).key;
            let fits = |key: &GroupKey| key.cpus <= free && self.fits(key, host) && self.has_room(key, host);
            (*plain && !is_full) || (fits(key()) && !self.waits_for_storage(host, key()))
        };
        // If all wait for the same storage, no group needs a check.
        let is_held = is_full && !std::ptr::eq(shelf, self.groups.anywhere());
        let asked = if is_held { 0 } else { usize::MAX };
        let reading = shelf.reading.iter().take(asked).filter(may).take(LOOK_AT_HOME);
        let others = shelf.others.iter().filter(may).take(LOOK_AT_HOME);
        reading.chain(others).map(|(task, group, _)| (*task, *group)).collect()
    }

    /// Whether the host keeps slots free for a wide task that does not fit yet.
    pub(crate) fn must_collect(&mut self, host: HostIx, free: u32) -> bool {
        self.hosts[host].collects.clear();
        let wide = self.groups.at(host).wide.iter().chain(&self.groups.anywhere().wide);
        let mut collect = false;
        for group in wide.copied().collect::<Vec<_>>() {
            let key = &self.groups.get(group).key;
            let lacks = self.hosts[host].lacks(&key.takes);
            if (key.cpus <= free && lacks.is_none()) || !self.fits(key, host) {
                continue;
            }
            self.groups.pass(group);
            let passed = self.groups.passed(group);
            let reserved = &mut self.groups.get_mut(group).class.reserved;
            if passed >= WIDE_PATIENCE && reserved.is_none() {
                *reserved = Some(host);
            }
            if *reserved == Some(host) {
                // Tasks that do not use the missing room go on meanwhile.
                collect |= lacks.is_none();
                self.hosts[host].collects.extend(lacks);
            }
        }
        collect
    }

    /// Whether a task that runs on `host` has to wait for the storage that it reads.
    pub(crate) fn waits_for_storage(&self, host: HostIx, key: &GroupKey) -> bool {
        match key.server {
            Some(server) => self.full.contains(&server),
            None => self.presses(key) && self.hosts[host].storage == Storage::Full,
        }
    }

    /// Chooses among tasks whose bytes are here. Tasks whose other holders are busiest come first: an idle holder
    /// elsewhere takes its own soon.
    pub(crate) fn own(&self, host: HostIx, own: &[Oldest], now_us: u64) -> Option<TaskChoice> {
        let level = |other: HostIx| {
            (self.hosts[other].backlog + self.hosts[other].running.len() as f64) / f64::from(self.hosts[other].slots)
                * self.duration_us(other, now_us)
        };
        let slack = |group: GroupIx| {
            let others = self.groups.holders(group).filter(|other| *other != host);
            others.map(level).fold(f64::INFINITY, f64::min)
        };
        let free = own.iter().copied().filter(|(_, group)| !self.is_claimed(host, *group));
        let weighed = free.map(|(task, group)| (slack(group), task, group));
        let best = weighed.max_by(|(a, x, _), (b, y, _)| a.total_cmp(b).then_with(|| y.cmp(x)));
        best.map(|(_, task, group)| TaskChoice { group, task, why: None, source: None })
    }

    /// Whether another host, which wrote the inputs of such a task, can take it at once. That host may decline for
    /// reasons that are unknown here; therefore its claim expires.
    fn is_claimed(&self, host: HostIx, group: GroupIx) -> bool {
        if !self.groups.has_writer(group) {
            return false;
        }
        let key = &self.groups.get(group).key;
        let Some(writer) = key.writer.filter(|writer| *writer != host) else { return false };
        self.groups.passed(group) < CLAIM
            && self.hosts[writer].has_free(key.cpus)
            && !self.waits_for_storage(writer, key)
            && self.has_room(key, writer)
    }

    /// Counts, for each group that the host that wrote its inputs has the first claim to, that `host` got no task of
    /// it. After enough counts the group is free for all; until then `host` retries soon.
    pub(crate) fn count_claims(&mut self, host: HostIx, now_us: u64) {
        let left = |group: &&GroupIx| self.groups.get(**group).key.writer != Some(host);
        for group in self.groups.at(host).claimed.iter().filter(left).copied().collect::<Vec<_>>() {
            self.groups.pass(group);
            self.ask_again_us = Some(now_us + SOONEST_US as u64);
        }
    }
}

fn oldest<'a>(groups: impl Iterator<Item = &'a Oldest>) -> Option<TaskChoice> {
    groups.min().map(|&(task, group)| TaskChoice { group, task, why: None, source: None })
}
