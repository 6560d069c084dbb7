//! Computes the cost of waiting for a host, and of fetching instead.

use crate::host::pour;
use crate::way::WHOLE;
use crate::{HostIx, Placer};

/// With more groups than these, a quarter of the rest may change before the backlogs are computed again.
const MANY_GROUPS: usize = 4096;

/// A host counts as slower than another if its past tasks took this many times as long.
const SLOWER: f64 = 2.0;

impl Placer {
    /// Returns the expected wall time of a waiting task on `host` without fetching.
    pub(crate) fn duration_us(&self, host: HostIx, now_us: u64) -> f64 {
        let mean_bytes = || self.bytes as f64 / self.with_bytes.max(1) as f64;
        let prior = || mean_bytes() / self.hosts[host].link * 1e6;
        self.hosts[host].duration_us(|| self.local_us.get().unwrap_or_else(prior), now_us).max(1.0)
    }

    /// Returns the expected wall times of one task on `host` and on `other`. Tasks differ: if `other` has a `free`
    /// slot, it counts as slower only if its past tasks took more than twice as long.
    pub(crate) fn compared_us(&self, host: HostIx, other: HostIx, free: bool, now_us: u64) -> (f64, f64) {
        let (here, there) = (self.duration_us(host, now_us), self.duration_us(other, now_us));
        if !free {
            return (here, there);
        }
        let learnt = self.hosts[other].local_us.get().unwrap_or(here);
        (here, if learnt > SLOWER * here { learnt } else { here.min(there) })
    }

    pub(crate) fn wait_us(&self, host: HostIx, now_us: u64) -> f64 {
        let known = self.local_us.get().is_some();
        self.hosts[host].wait_us(self.duration_us(host, now_us), known, now_us)
    }

    /// Spreads the waiting tasks over their holders, tasks with least choice first. With very many groups or hosts,
    /// this is not done after every change.
    pub(crate) fn balance(&mut self, now_us: u64) {
        if self.stale <= self.still_fresh() {
            return;
        }
        self.stale = 0;
        let pace: Vec<f64> =
            (0..self.hosts.len()).map(|h| self.duration_us(h, now_us) / f64::from(self.hosts[h].slots)).collect();
        self.hosts.iter_mut().for_each(|host| host.backlog = 0.0);
        let mut holders = Vec::new();
        for group in self.groups.with_least_choice_first() {
            holders.clear();
            holders.extend(self.groups.holders(group));
            pour(self.groups.slots(group) as f64, &mut holders, &mut self.hosts, &pace);
        }
        self.order(&pace);
    }

    /// Returns the number of changes after which the backlogs are still good enough. The cost per decision then stays
    /// the same as with a few groups.
    fn still_fresh(&self) -> usize {
        let groups = self.groups.len();
        (groups + self.hosts.len() / 4) / 64 + groups.saturating_sub(MANY_GROUPS) / 4
    }

    /// Orders the hosts to fetch from: the longest backlogs first, of all hosts and of each switch.
    fn order(&mut self, pace: &[f64]) {
        let mut longest: Vec<HostIx> = (0..self.hosts.len()).filter(|host| !self.groups.at(*host).is_empty()).collect();
        let level = |host: &HostIx| self.hosts[*host].backlog * pace[*host];
        longest.sort_by(|a, b| level(b).total_cmp(&level(a)));
        self.longest_on = vec![Vec::new(); self.way.switches()];
        for host in &longest {
            self.way.leaf(*host).into_iter().for_each(|leaf| self.longest_on[leaf].push(*host));
        }
        self.longest = longest;
    }

    /// Returns the expected time of a fetch from past fetches, else from the links, which are shared with the present
    /// fetches.
    pub(crate) fn fetch_us(&self, host: HostIx, from: HostIx, bytes: u64, now_us: u64) -> f64 {
        let sharing = f64::from(self.fetching(from, now_us) + 1);
        let arriving = self.hosts[host].running.iter().filter(|running| running.fetches(now_us));
        let links = (self.hosts[host].link / (arriving.count() + 1) as f64).min(self.hosts[from].link / sharing);
        let learnt = self.hosts[host].fetched.get().map_or(links, |together| together / sharing);
        bytes as f64 / learnt.min(self.way.shared_rate(from, host)).max(1.0) * 1e6
    }

    /// Returns the load of a fetch of `bytes` on an uplink, in parts of [`WHOLE`]. It is the square of the share of
    /// its time that the task fetches: this is how often it meets another such fetch there. With the share itself,
    /// the link would idle while all such tasks compute.
    pub(crate) fn parts(&self, host: HostIx, from: HostIx, bytes: u64, now_us: u64) -> u32 {
        let fetch = bytes as f64 / self.link_between(host, from).min(self.way.rate(from, host)).max(1.0) * 1e6;
        let share = fetch / (fetch + self.duration_us(host, now_us));
        (share * share * f64::from(WHOLE)).ceil() as u32
    }

    /// Returns the rate of the slower of the links of two hosts, bytes per second.
    pub(crate) fn link_between(&self, host: HostIx, other: HostIx) -> f64 {
        self.hosts[host].link.min(self.hosts[other].link)
    }

    /// Returns, for hosts that hold a task's bytes, how long until the first is free, that host, and the nearest one.
    /// Of equally near hosts it is the one that is free sooner.
    pub(crate) fn first_and_near(
        &self,
        host: HostIx,
        holders: impl Iterator<Item = HostIx>,
        mut wait_us: impl FnMut(HostIx) -> f64,
    ) -> Option<(f64, HostIx, HostIx)> {
        let known = holders.map(|holder| (holder, wait_us(holder), self.way.distance(holder, host)));
        let (first, near) = known.fold((None, None), |(first, near), next: (HostIx, f64, usize)| {
            let sooner = |best: &(HostIx, f64, usize)| best.1.total_cmp(&next.1).is_le();
            let nearer = |best: &(HostIx, f64, usize)| best.2.cmp(&next.2).then(best.1.total_cmp(&next.1)).is_le();
            (first.filter(sooner).or(Some(next)), near.filter(nearer).or(Some(next)))
        });
        let (first, near) = first.zip(near)?;
        Some((first.1, first.0, near.0))
    }

    fn fetching(&self, from: HostIx, now_us: u64) -> u32 {
        self.hosts[from].feeds.iter().filter(|feed| feed.is_on(now_us)).count() as u32
    }

    /// Returns how many tasks elsewhere may read from `source`: those that were assigned to it, and those that began
    /// to fetch before it joined.
    pub(crate) fn reading(&self, source: HostIx) -> u32 {
        let before: u32 = self.fetching_since.range(..=source).map(|(_, tasks)| tasks).sum();
        self.hosts[source].feeds.len() as u32 + before
    }

    /// Records the present number of readers in the tasks that run on `source`.
    pub(crate) fn see_overlap(&mut self, source: HostIx) {
        let reading = self.reading(source);
        self.hosts[source].running.iter_mut().for_each(|r| r.overlap.see(reading));
    }

    /// Returns how many tasks fetch from `source` now, one more included, and records it in all of them.
    pub(crate) fn share(&mut self, source: HostIx, now_us: u64) -> u32 {
        let sharing = self.fetching(source, now_us) + 1;
        let on = self.hosts[source].feeds.iter_mut().filter(|feed| feed.is_on(now_us));
        on.for_each(|feed| feed.sharing = feed.sharing.max(sharing));
        sharing
    }
}
