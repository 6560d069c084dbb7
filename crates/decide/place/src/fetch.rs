//! Chooses a task whose bytes lie elsewhere, if it ends sooner here.

use crate::groups::{GroupIx, ShelfEntry};
use crate::host::{PlacementHost, Storage};
use crate::placer::TaskChoice;
use crate::serving_cost::FetchVerdict;
use crate::{HostIx, Placer, Reason};
use std::collections::{BTreeSet, HashMap};

/// Tasks per group, from its end, that are checked for one worth fetching.
const LOOK: usize = 16;
/// Groups of a host that are checked, the youngest first.
const LOOK_GROUPS: usize = 32;
/// Hosts whose groups are checked: those with the longest backlogs of all, and those of the same switch.
const LOOK_HOSTS: usize = 32;
/// With up to this many hosts, all idle ones search at once; with more, [`crate::searches`] decides.
const FEW_HOSTS: usize = 64;
/// Bounds of the time until an idle host retries, microseconds.
pub const SOONEST_US: f64 = 1e3;
const LATEST_US: f64 = 1e6;

/// The results of a search so far.
struct Search {
    host: HostIx,
    free: u32,
    now_us: u64,
    /// Expected waits of hosts that were computed already, microseconds.
    waits: HashMap<HostIx, f64>,
    best: Option<(f64, TaskChoice)>,
    cheapest_us: f64,
    left_alone: Option<HostIx>,
}

impl Placer {
    /// Searches the longest queue from its end, because its first tasks start there soon. A queue that waits for
    /// storage and not for slots gets no shorter by reading the same bytes from another host. Therefore such a queue
    /// gives no tasks. A host whose own queue waits this way takes none: its slot is idle on purpose.
    pub(crate) fn fetch(&mut self, host: HostIx, free: u32, now_us: u64) -> Option<TaskChoice> {
        if self.longest.is_empty() || self.waits_for_own_storage(host) {
            return None;
        }
        let all_look = self.hosts.len() <= FEW_HOSTS;
        if !all_look && !self.searches.may(host, now_us) {
            return None;
        }
        let (waits, cheapest_us) = (HashMap::new(), f64::INFINITY);
        let mut search = Search { host, free, now_us, waits, best: None, cheapest_us, left_alone: None };
        for holder in self.worth_a_look(host) {
            self.search_at(holder, &mut search);
        }
        let Search { best, cheapest_us, left_alone, .. } = search;
        left_alone.into_iter().for_each(|from| self.hosts[from].burden.hold(now_us));
        if best.is_none() && cheapest_us.is_finite() {
            let next = now_us + (cheapest_us / 4.0).clamp(SOONEST_US, LATEST_US) as u64;
            self.ask_again_us = Some(self.ask_again_us.filter(|&at| at > now_us).map_or(next, |at| at.min(next)));
        }
        if !all_look {
            self.searches.ended(host, best.is_some());
        }
        best.map(|(_, choice)| choice)
    }

    /// Returns hosts with long backlogs, including near ones.
    fn worth_a_look(&self, host: HostIx) -> Vec<HostIx> {
        let near = self.way.leaf(host).and_then(|leaf| self.longest_on.get(leaf));
        let near = near.into_iter().flatten().take(LOOK_HOSTS);
        let mut all: Vec<HostIx> = self.longest.iter().take(LOOK_HOSTS.max(FEW_HOSTS)).copied().collect();
        if self.longest.len() > all.len() {
            all.truncate(LOOK_HOSTS);
            all.extend(near);
        }
        all
    }

    fn search_at(&self, holder: HostIx, search: &mut Search) {
        let shelf = self.groups.at(holder);
        let youngest = |groups: &BTreeSet<ShelfEntry>| {
            groups.iter().rev().take(LOOK_GROUPS).map(|(_, group, _)| *group).collect::<Vec<_>>()
        };
        let is_held = self.hosts[holder].storage == Storage::Full || self.hosts[holder].keeps_its_own();
        let mut looked = youngest(&shelf.others);
        // Tasks that wait for full storage here may have a copy on another holder with room.
        looked.extend(
            youngest(&shelf.reading)
                .into_iter()
                .filter(|group| !is_held || self.groups.get(*group).key.holders.len() > 1),
        );
        for group in looked {
            if search.best.as_ref().is_some_and(|(longest, _)| *longest >= self.wait_of(holder, search)) {
                return;
            }
            self.search_in(group, search);
        }
    }

    fn wait_of(&self, holder: HostIx, search: &Search) -> f64 {
        search.waits.get(&holder).copied().unwrap_or(f64::INFINITY)
    }

    fn search_in(&self, group: GroupIx, search: &mut Search) {
        let Search { host, free, now_us, waits, best, cheapest_us, left_alone } = search;
        let (host, now_us) = (*host, *now_us);
        let (key, class) = (&self.groups.get(group).key, &self.groups.get(group).class);
        let is_here = key.holders.contains(&host);
        if is_here || key.cpus > *free || !self.fits(key, host) || !self.has_room(key, host) {
            return;
        }
        let gives = |h: &PlacementHost| !self.presses(key) || !(h.storage == Storage::Full || h.keeps_its_own());
        let open = key.holders.iter().copied().filter(|&holder| gives(&self.hosts[holder]));
        let wait_us = |at: HostIx| *waits.entry(at).or_insert_with(|| self.wait_us(at, now_us));
        let Some((wait, first, from)) = self.first_and_near(host, open, wait_us) else { return };
        if best.as_ref().is_some_and(|(longest, _)| *longest >= wait) {
            return;
        }
        for task in class.tasks().rev().take(LOOK) {
            let need = &self.needs[&task];
            let fetch = self.fetch_us(host, from, need.remote(host), now_us);
            let (work, work_there) = self.compared_us(host, first, wait == 0.0, now_us);
            let there = wait + work_there + self.fetch_us(first, host, need.remote(first), now_us);
            let takes = fetch + work;
            let fetched = (need.remote(host), takes);
            let verdict = if takes < there { self.may_fetch(host, from, fetched, now_us) } else { FetchVerdict::No };
            *left_alone = left_alone.or((verdict == FetchVerdict::Wait).then_some(from));
            if verdict == FetchVerdict::Yes {
                let path = self.way.path(from, host);
                let why = Reason::Fetches { from, wait_us: wait as u64, fetch_us: fetch as u64, path };
                *best = Some((wait, TaskChoice { group, task, why: Some(why), source: Some(from) }));
                return;
            }
            *cheapest_us = fetch.min(*cheapest_us);
        }
    }

    /// Decides whether one more task that would fetch `bytes` and take `takes_us` on `host` may read from `from`. A
    /// full link between switches is no reason to leave `from` alone: it is as near to its neighbours as before.
    /// Until a task has shown how long it computes, all may cross: otherwise the link might idle for as long.
    fn may_fetch(&self, host: HostIx, from: HostIx, (bytes, takes_us): (u64, f64), now_us: u64) -> FetchVerdict {
        if self.way.distance(from, host) > 0 && self.local_us.get().is_some() {
            let parts = self.parts(host, from, bytes, now_us);
            if !self.way.has_room(from, host, parts, self.link_between(host, from)) {
                return FetchVerdict::No;
            }
        }
        let PlacementHost { burden, slots, backlog, .. } = &self.hosts[from];
        burden.verdict(f64::from(*slots), *backlog, self.reading(from), takes_us, now_us)
    }

    fn waits_for_own_storage(&self, host: HostIx) -> bool {
        if self.hosts[host].storage != Storage::Full {
            return false;
        }
        let mut own = self.groups.at(host).groups().map(|group| &self.groups.get(group).key);
        own.any(|key| self.presses(key) && self.fits(key, host))
    }
}
