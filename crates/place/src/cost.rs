//! What it costs to wait for a host, and to fetch instead.

use crate::class::{Class, Key};
use crate::host::pour;
use crate::way::WHOLE;
use crate::{HostIx, Placer};

/// A host is slower than another if what it has run took so many times as long.
const SLOWER: f64 = 2.0;

impl Placer {
    /// Expected wall time of a waiting task on `host` without fetching.
    pub(crate) fn duration_us(&self, host: HostIx, now_us: u64) -> f64 {
        let mean_bytes = self.bytes as f64 / self.with_bytes.max(1) as f64;
        let prior = mean_bytes / self.hosts[host].link * 1e6;
        self.hosts[host].duration_us(self.local_us.get().unwrap_or(prior), now_us).max(1.0)
    }

    /// Expected wall times of one task on `host` and on `other`. Tasks differ, so that a host with a slot `free`
    /// is not slower because those that it has run and runs take longer, if that is less than twice as long.
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

    /// Spreads the waiting tasks over their holders, those with least choice
    /// first. With very many groups not after every single change.
    pub(crate) fn balance(&mut self, now_us: u64) {
        if self.stale <= self.classes.len() / 64 {
            return;
        }
        self.stale = 0;
        let pace: Vec<f64> =
            (0..self.hosts.len()).map(|h| self.duration_us(h, now_us) / f64::from(self.hosts[h].slots)).collect();
        self.hosts.iter_mut().for_each(|host| host.backlog = 0.0);
        let mut groups: Vec<(&Key, &Class)> = self.classes.iter().filter(|(key, _)| !key.holders.is_empty()).collect();
        groups.sort_by_key(|(key, _)| key.holders.len());
        for (key, class) in groups {
            pour((class.len() * key.cpus as usize) as f64, &key.holders, &mut self.hosts, &pace);
        }
    }

    /// With what was learnt, else the links, shared with those that fetch now.
    pub(crate) fn fetch_us(&self, host: HostIx, from: HostIx, bytes: u64, now_us: u64) -> f64 {
        let sharing = f64::from(self.fetching(from, now_us) + 1);
        let arriving = self.hosts[host].running.iter().filter(|r| r.source.is_some_and(|s| r.fetches(s, now_us)));
        let links = (self.hosts[host].link / (arriving.count() + 1) as f64).min(self.hosts[from].link / sharing);
        let learnt = self.hosts[host].fetched.get().map_or(links, |together| together / sharing);
        bytes as f64 / learnt.min(self.way.shared_rate(from, host)).max(1.0) * 1e6
    }

    /// What a task that fetches so many bytes takes of an uplink, in parts of [`WHOLE`]: the square of the share of its
    /// time that it fetches, as often as it meets another such fetch there. By the share itself tasks that compute as
    /// well would leave the link idle while all of them compute.
    pub(crate) fn parts(&self, host: HostIx, from: HostIx, bytes: u64, now_us: u64) -> u32 {
        let fetch = bytes as f64 / self.link_between(host, from).min(self.way.rate(from, host)).max(1.0) * 1e6;
        let share = fetch / (fetch + self.duration_us(host, now_us));
        (share * share * f64::from(WHOLE)).ceil() as u32
    }

    /// The slower of the links of two hosts, bytes per second.
    pub(crate) fn link_between(&self, host: HostIx, other: HostIx) -> f64 {
        self.hosts[host].link.min(self.hosts[other].link)
    }

    /// Of hosts that hold a task's bytes: how long until the first is free, which that is, and which is near, the
    /// one that is free sooner of those that are as near.
    pub(crate) fn first_and_near(
        &self,
        host: HostIx,
        holders: impl Iterator<Item = HostIx>,
        now_us: u64,
    ) -> Option<(f64, HostIx, HostIx)> {
        let known = holders.map(|holder| (holder, self.wait_us(holder, now_us), self.way.distance(holder, host)));
        let (first, near) = known.fold((None, None), |(first, near), next: (HostIx, f64, usize)| {
            let sooner = |best: &(HostIx, f64, usize)| best.1.total_cmp(&next.1).is_le();
            let nearer = |best: &(HostIx, f64, usize)| best.2.cmp(&next.2).then(best.1.total_cmp(&next.1)).is_le();
            (first.filter(sooner).or(Some(next)), near.filter(nearer).or(Some(next)))
        });
        let (first, near) = first.zip(near)?;
        Some((first.1, first.0, near.0))
    }

    fn fetching(&self, from: HostIx, now_us: u64) -> u32 {
        self.hosts.iter().flat_map(|h| &h.running).filter(|r| r.fetches(from, now_us)).count() as u32
    }

    /// How many tasks elsewhere may read from `source`.
    pub(crate) fn reading(&self, source: HostIx) -> u32 {
        let others = self.hosts.iter().enumerate().filter(|(host, _)| *host != source);
        others.flat_map(|(_, h)| &h.running).filter(|r| r.reads_from(source)).count() as u32
    }

    /// Tells the tasks that run on `source` how many read from it now.
    pub(crate) fn see_overlap(&mut self, source: HostIx) {
        let reading = self.reading(source);
        self.hosts[source].running.iter_mut().for_each(|r| r.overlap.see(reading));
    }

    /// How many fetch from `source` now, one more included, as they all shall know.
    pub(crate) fn share(&mut self, source: HostIx, now_us: u64) -> u32 {
        let sharing = self.fetching(source, now_us) + 1;
        let all = self.hosts.iter_mut().flat_map(|h| &mut h.running);
        all.filter(|r| r.fetches(source, now_us)).for_each(|r| r.sharing = r.sharing.max(sharing));
        sharing
    }
}
