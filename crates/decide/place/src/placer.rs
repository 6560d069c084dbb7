//! The queue of waiting tasks, and the decision which of them a free slot gets.

use crate::class::GroupKey;
use crate::groups::{GroupIx, Shelf, TaskGroups};
use crate::host::{Feed, PickedTask, PlacementHost, Storage};
use crate::mean::Mean;
use crate::near::near;
use crate::searches::Searches;
use crate::serving_cost::Overlap;
use crate::way::LinkUsage;
use crate::{HostIx, MOST_KINDS, Need, Params, Placed, Reason, ServerIx};
use hashbrown::HashMap;
use homing_model::TaskId;
use homing_model::links::SwitchIx;
use std::collections::{BTreeMap, BTreeSet};

/// Decides late: a host that requests a task has a free slot now.
///
/// An answer of none may mean that waiting is cheaper, which changes as time passes. Try again for idle hosts
/// whenever a task has finished anywhere, and at [`Placer::ask_again_us`].
#[derive(Debug)]
pub struct Placer {
    pub(crate) params: Params,
    pub(crate) hosts: Vec<PlacementHost>,
    pub(crate) way: LinkUsage,
    /// Servers that take no more tasks now.
    pub(crate) full: BTreeSet<ServerIx>,
    pub(crate) groups: TaskGroups,
    /// Needs of the tasks that differ from [`Need::default`]: a million default tasks stay small.
    pub(crate) needs: HashMap<TaskId, Need>,
    /// Hosts on which a task may not run, for its whole life, also while it runs.
    excluded: HashMap<TaskId, Vec<HostIx>>,
    /// Tasks whose bytes lie on hosts that have not joined yet.
    early: BTreeMap<HostIx, Vec<TaskId>>,
    waiting: usize,
    /// Bytes and number of waiting tasks with inputs.
    pub(crate) bytes: u128,
    pub(crate) with_bytes: u64,
    /// Wall time of tasks that fetched nothing, on all hosts, microseconds.
    pub(crate) local_us: Mean,
    /// Number of running tasks that fetch, by how many hosts were known when they were picked.
    pub(crate) fetching_since: BTreeMap<usize, u32>,
    /// Number of changes since the backlogs were computed.
    pub(crate) stale: usize,
    /// Hosts with waiting tasks, the longest backlog first when that was computed; and those of each switch.
    pub(crate) longest: Vec<HostIx>,
    pub(crate) longest_on: Vec<Vec<HostIx>>,
    pub(crate) searches: Searches,
    /// See [`Placer::ask_again_us`].
    pub(crate) ask_again_us: Option<u64>,
    /// A bit for each kind of command that is known to move bytes without naming inputs.
    moving: u16,
}

/// The task that a host is to run next, with the reason if it is not obvious.
pub(crate) struct TaskChoice {
    pub group: GroupIx,
    pub task: TaskId,
    pub why: Option<Reason>,
    pub source: Option<HostIx>,
}

impl Placer {
    /// Makes a placer without hosts and tasks.
    pub fn new(mut params: Params) -> Placer {
        Placer {
            way: LinkUsage::new(std::mem::take(&mut params.links)),
            params,
            hosts: Vec::new(),
            full: BTreeSet::new(),
            groups: TaskGroups::default(),
            needs: HashMap::new(),
            excluded: HashMap::new(),
            early: BTreeMap::new(),
            waiting: 0,
            bytes: 0,
            with_bytes: 0,
            local_us: Mean::default(),
            fetching_since: BTreeMap::new(),
            stale: usize::MAX,
            longest: Vec::new(),
            longest_on: Vec::new(),
            searches: Searches::default(),
            ask_again_us: None,
            moving: 0,
        }
    }

    /// Adds a host with `slots` slots and, if known, the rate of its link.
    pub fn host_up(&mut self, slots: u32, nic_bytes_per_s: Option<u64>) -> HostIx {
        let link = nic_bytes_per_s.filter(|&rate| rate > 0).map(|rate| rate as f64);
        let host = self.hosts.len();
        let here = self.early.remove(&host).unwrap_or_default();
        let here: Vec<(TaskId, Need)> = here.into_iter().filter_map(|task| Some((task, self.remove(task)?))).collect();
        self.hosts.push(PlacementHost::new(slots, link.unwrap_or(self.params.default_bytes_per_s).max(1.0)));
        self.groups.host_up();
        self.stale = usize::MAX;
        here.into_iter().for_each(|(task, need)| self.add(task, need));
        host
    }

    /// Sets the switch of a host, before anything runs there.
    pub fn host_on(&mut self, host: HostIx, leaf: Option<SwitchIx>) {
        self.way.host_on(host, leaf);
    }

    /// Marks a host as lost, and forgets its running tasks: the caller adds those again that are to be repeated.
    pub fn host_lost(&mut self, host: HostIx) {
        self.hosts[host].up = false;
        for lost in self.hosts[host].running.forget() {
            self.leaves(host, &lost);
        }
        let wide = self.groups.at(host).wide.iter().chain(&self.groups.anywhere().wide);
        for group in wide.copied().collect::<Vec<_>>() {
            let class = &mut self.groups.get_mut(group).class;
            class.reserved = class.reserved.filter(|at| *at != host);
        }
        self.regroup(host);
    }

    /// Sets the limit on tasks at the storage of `host`. It does not apply to tasks that move no bytes.
    pub fn set_storage(&mut self, host: HostIx, storage: Storage) {
        self.hosts[host].storage = storage;
    }

    /// Sets whether a server that is no host of the run takes no more tasks.
    pub fn set_server_full(&mut self, server: ServerIx, full: bool) {
        if full {
            self.full.insert(server);
        } else {
            self.full.remove(&server);
        }
    }

    /// Sets the free amount on `host` of each kind of room that tasks take: memory, named resources.
    pub fn set_room(&mut self, host: HostIx, room: Vec<u64>) {
        self.hosts[host].room = room;
    }

    /// Sets whether tasks of this kind that name no inputs burden the storage where they run.
    pub fn set_moves(&mut self, kind: u8, moves: bool) {
        let bit = 1 << (kind % MOST_KINDS);
        self.moving = if moves { self.moving | bit } else { self.moving & !bit };
    }

    pub(crate) fn presses(&self, key: &GroupKey) -> bool {
        key.reads || self.moving & (1 << key.kind) != 0
    }

    /// Adds a task that may run from now on: a new one, or one that came back.
    pub fn add(&mut self, task: TaskId, mut need: Need) {
        need.cpus = need.cpus.max(1);
        self.remove(task);
        self.waiting += 1;
        if need.total > 0 {
            self.bytes += u128::from(need.total);
            self.with_bytes += 1;
        }
        for (host, _) in need.per_host.iter().filter(|(host, _)| *host >= self.hosts.len()) {
            self.early.entry(*host).or_default().push(task);
        }
        let key = self.key(task, &need);
        if need != Need::default() {
            self.needs.insert(task, need);
        }
        self.groups.insert(key, task);
        self.stale = self.stale.saturating_add(1);
    }

    /// Prevents that `task` runs on `host`, also when it is added again.
    pub fn exclude(&mut self, task: TaskId, host: HostIx) {
        let need = self.remove(task);
        let excluded = self.excluded.entry(task).or_default();
        if let Err(at) = excluded.binary_search(&host) {
            excluded.insert(at, host);
        }
        if let Some(need) = need {
            self.add(task, need);
        }
    }

    /// Whether a task may not run on a host.
    pub fn is_excluded(&self, task: TaskId, host: HostIx) -> bool {
        self.excluded.get(&task).is_some_and(|excluded| excluded.binary_search(&host).is_ok())
    }

    /// Reverses `exclude`.
    pub fn allow(&mut self, task: TaskId, host: HostIx) {
        let need = self.remove(task);
        if let Some(excluded) = self.excluded.get_mut(&task) {
            excluded.retain(|h| *h != host);
        }
        if let Some(need) = need {
            self.add(task, need);
        }
    }

    /// Removes a waiting task, and returns its needs if it waited.
    pub fn remove(&mut self, task: TaskId) -> Option<Need> {
        // Most tasks have default needs: the common new task must be cheap.
        let need = self.needs.get(&task).cloned().unwrap_or_default();
        let key = self.key(task, &need);
        self.take(&key, task)
    }

    /// Returns the best task for a host with `free` free slots. `None` if there is none for it, or if waiting for
    /// another host is cheaper. `now_us` is any clock that does not go back.
    pub fn pick(&mut self, host: HostIx, free: u32, now_us: u64) -> Option<Placed> {
        if !self.may_pick(host, free, now_us) {
            return None;
        }
        let choice = match self.at_home(host, free, now_us) {
            Some(choice) => choice,
            None => {
                self.count_claims(host, now_us);
                self.fetch(host, free, now_us)?
            }
        };
        Some(self.start(host, choice, now_us))
    }

    /// Picks only among tasks whose bytes lie on the host: it is a better place than any that may still join.
    pub fn pick_at_home(&mut self, host: HostIx, free: u32, now_us: u64) -> Option<Placed> {
        if !self.may_pick(host, free, now_us) {
            return None;
        }
        let own = self.within_reach(self.groups.at(host), host, free);
        let choice = self.own(host, &own, now_us)?;
        Some(self.start(host, choice, now_us))
    }

    fn may_pick(&mut self, host: HostIx, free: u32, now_us: u64) -> bool {
        if self.waiting == 0
            || free == 0
            || !self.hosts.get(host).is_some_and(|h| h.up)
            || self.is_idle_on_purpose(host)
        {
            return false;
        }
        self.balance(now_us);
        !self.must_collect(host, free)
    }

    /// Whether all tasks that it might take wait for its storage. This is a shortcut: of ten thousand hosts, most may
    /// be in this state.
    fn is_idle_on_purpose(&self, host: HostIx) -> bool {
        let own = self.groups.at(host);
        let all_read = own.others.is_empty() && self.groups.anywhere().is_empty() && !own.reading.is_empty();
        self.hosts[host].storage == Storage::Full && all_read
    }

    /// Returns when an idle host that got nothing should try again although nothing happened, on the clock of `pick`.
    /// Waiting pays as long as it took no longer than fetching would have.
    pub fn ask_again_us(&self) -> Option<u64> {
        self.ask_again_us.filter(|_| self.waiting > 0)
    }

    /// Records that the attempt at `task` on `host` is over; does nothing for an unknown one. A `wall_us` of 0 is no
    /// sample: use it for an attempt that failed, was killed or never started.
    pub fn finished(&mut self, host: HostIx, task: TaskId, wall_us: u64) {
        self.see_overlap(host);
        let Some(ended) = self.hosts[host].running.end(task) else { return };
        let sharing = self.leaves(host, &ended);
        ended.source.into_iter().for_each(|source| self.see_overlap(source));
        if wall_us == 0 || ended.local + ended.remote == 0 {
            return;
        }
        let wall = wall_us as f64;
        match ended.source {
            Some(source) => self.hosts[source].burden.fetch_ended(wall),
            None if ended.remote == 0 => self.hosts[host].burden.own_ended(wall, ended.overlap),
            None => {}
        }
        if ended.remote == 0 {
            self.hosts[host].local_us.learn(wall);
            self.local_us.learn(wall);
            return;
        }
        // The time of fetching cannot be computed without the time of the work alone.
        let Some(work) = self.hosts[host].local_us.get().or(self.local_us.get()) else { return };
        let clear = wall - work > work / 10.0;
        let rate = ended.remote as f64 / (wall - work).max(work / 10.0) * 1e6 * f64::from(sharing.max(1));
        // If the work takes far longer than fetching, the rate is only a lower bound.
        if clear || self.hosts[host].fetched.get().is_none_or(|known| rate > known) {
            self.hosts[host].fetched.learn(rate);
        }
    }

    /// Removes the fetch of an ended task. Returns the most tasks that fetched from the same host at once.
    fn leaves(&mut self, host: HostIx, ended: &PickedTask) -> u32 {
        if ended.remote > 0 {
            let since = self.fetching_since.entry(ended.known).or_insert(1);
            *since -= 1;
            if *since == 0 {
                self.fetching_since.remove(&ended.known);
            }
        }
        let Some(source) = ended.source else { return 1 };
        self.way.end(source, host, ended.parts);
        let feeds = &mut self.hosts[source].feeds;
        let at = feeds.iter().position(|feed| feed.task == ended.task && feed.to == host);
        at.map_or(1, |at| feeds.swap_remove(at).sharing)
    }

    /// Returns the number of tasks that were added and not picked.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns the number of waiting tasks that read from a server which is no host.
    pub fn waiting_for(&self, server: ServerIx) -> usize {
        self.count(self.groups.anywhere(), |key| key.server == Some(server))
    }

    /// Returns the number of waiting tasks that would burden the storage of `host` if they began. Their bytes lie
    /// there, or nowhere.
    pub fn waiting_at(&self, host: HostIx) -> usize {
        if !self.hosts.get(host).is_some_and(|known| known.up) {
            return 0;
        }
        let counts = |key: &GroupKey| key.server.is_none() && self.presses(key);
        self.count(self.groups.at(host), counts) + self.count(self.groups.anywhere(), counts)
    }

    fn count(&self, shelf: &Shelf, counts: impl Fn(&GroupKey) -> bool) -> usize {
        let groups = shelf.groups().map(|group| self.groups.get(group));
        groups.filter(|group| counts(&group.key)).map(|group| group.class.len()).sum()
    }

    /// Returns the waiting tasks for which every host is excluded, lost, or too small.
    pub fn runnable_nowhere(&self) -> Vec<TaskId> {
        let stuck = |key: &GroupKey| !(0..self.hosts.len()).any(|host| self.hosts[host].up && self.fits(key, host));
        let mut tasks: Vec<TaskId> =
            self.groups.iter().filter(|group| stuck(&group.key)).flat_map(|group| group.class.tasks()).collect();
        tasks.sort_unstable();
        tasks
    }

    /// Returns the slots of the host that has most of them, among those that are up.
    pub fn most_slots(&self) -> u32 {
        self.hosts.iter().filter(|host| host.up).map(|host| host.slots).max().unwrap_or(0)
    }

    pub(crate) fn fits(&self, key: &GroupKey, host: HostIx) -> bool {
        key.cpus <= self.hosts[host].slots && !key.excluded.contains(&host)
    }

    pub(crate) fn has_room(&self, key: &GroupKey, host: HostIx) -> bool {
        let host = &self.hosts[host];
        host.lacks(&key.takes).is_none() && !host.is_collected(&key.takes)
    }

    fn key(&self, task: TaskId, need: &Need) -> GroupKey {
        let excluded = self.excluded.get(&task).cloned().unwrap_or_default();
        let mut holders = Vec::new();
        if self.params.locality && !need.per_host.is_empty() {
            let usable = |&host: &HostIx| {
                let known = self.hosts.get(host);
                known.is_some_and(|h| h.up && need.cpus <= h.slots) && !excluded.contains(&host)
            };
            let mut hosts: Vec<HostIx> = need.per_host.iter().map(|(host, _)| *host).filter(usable).collect();
            hosts.sort_unstable();
            hosts.dedup();
            holders = near(hosts.into_iter().map(|host| (host, need.local(host))));
        }
        let reads = need.reads();
        let kind = if reads { 0 } else { need.kind % MOST_KINDS };
        let server = need.server.filter(|_| reads);
        let writer = need.writer.filter(|writer| holders.len() > 1 && holders.contains(writer));
        GroupKey { holders, writer, excluded, cpus: need.cpus, server, reads, kind, takes: need.takes.clone() }
    }

    fn take(&mut self, key: &GroupKey, task: TaskId) -> Option<Need> {
        self.groups.remove(key, task).then(|| self.taken(task))
    }

    /// Returns the needs of a task that has left its group.
    fn taken(&mut self, task: TaskId) -> Need {
        let need = self.needs.remove(&task).unwrap_or_default();
        self.waiting -= 1;
        if need.total > 0 {
            self.bytes -= u128::from(need.total);
            self.with_bytes -= 1;
        }
        self.stale = self.stale.saturating_add(1);
        need
    }

    /// Moves tasks that lie on a lost host to the groups of their other holders.
    fn regroup(&mut self, host: HostIx) {
        self.stale = usize::MAX;
        let here: Vec<GroupIx> = self.groups.at(host).groups().collect();
        for group in here {
            let (passed, class) = (self.groups.passed(group), &self.groups.get(group).class);
            let (reserved, tasks) = (class.reserved, class.tasks().collect::<Vec<_>>());
            for task in tasks {
                let Some(need) = self.needs.get(&task) else { continue };
                let key = self.key(task, need);
                self.groups.remove_from(group, task);
                let into = self.groups.insert(key, task);
                self.groups.follows(into, passed, reserved);
            }
        }
    }

    fn start(&mut self, host: HostIx, choice: TaskChoice, now_us: u64) -> Placed {
        self.groups.picked(host);
        self.groups.turn(choice.group);
        self.groups.remove_from(choice.group, choice.task);
        let need = self.taken(choice.task);
        let (local, remote) = (need.local(host), need.remote(host));
        let why = choice.why.unwrap_or(match local {
            _ if !self.params.locality => Reason::InTurn,
            _ if need.total == 0 => Reason::NoInput,
            0 => Reason::HeldByNone { total: need.total },
            _ => Reason::Holds { local, total: need.total },
        });
        let source = choice.source;
        let fetch_us = source.map_or(0.0, |from| self.fetch_us(host, from, remote, now_us));
        let parts = source.map_or(0, |from| self.parts(host, from, remote, now_us));
        let home = &mut self.hosts[source.unwrap_or(host)];
        home.backlog = (home.backlog - f64::from(need.cpus)).max(0.0);
        let running = PickedTask {
            task: choice.task,
            local,
            remote,
            source,
            since_us: now_us,
            cpus: need.cpus,
            fetch_us,
            parts,
            known: self.hosts.len(),
            overlap: Overlap::new(self.reading(host)),
        };
        self.hosts[host].running.begin(running);
        if remote > 0 {
            *self.fetching_since.entry(running.known).or_default() += 1;
        }
        if let Some(source) = source {
            let sharing = self.share(source, now_us);
            let feed = Feed { to: host, task: choice.task, since_us: now_us, fetch_us, sharing };
            self.hosts[source].feeds.push(feed);
            self.hosts[source].burden.fetch_begins(now_us);
            self.way.begin(source, host, parts);
            self.see_overlap(source);
        }
        Placed { task: choice.task, need, local, remote, why }
    }
}
