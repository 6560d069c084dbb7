//! The queue of waiting tasks and the answer to "a slot is free here".

use crate::burden::{Overlap, Verdict};
use crate::class::{Class, Key};
use crate::host::{Host, Running, Storage};
use crate::mean::Mean;
use crate::way::Way;
use crate::{HostIx, MOST_KINDS, Need, Params, Placed, Reason, ServerIx};
use homing_model::TaskId;
use homing_model::links::SwitchIx;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A host that holds this share of what the best host holds is as good.
const AS_GOOD: f64 = 0.95;
/// Times a group may be passed over before its oldest task comes first.
const PATIENCE: u32 = 256;
/// Times a wide task finds too few free slots before a host collects them for it.
const WIDE_PATIENCE: u32 = 32;
/// Times that a host leaves a group to the host that wrote what it reads.
const CLAIM: u32 = 8;
/// Tasks per group, from its end, that are looked at for one that is worth fetching.
const LOOK: usize = 16;
/// Bounds of the time until an idle host asks again, microseconds.
const SOONEST_US: f64 = 1e3;
const LATEST_US: f64 = 1e6;

/// Decides late: who asks for a task has a free slot now.
///
/// An answer of none may mean that waiting is cheaper, which changes as time
/// passes: ask again for idle hosts whenever a task finished anywhere, and at
/// [`Placer::ask_again_us`].
#[derive(Debug)]
pub struct Placer {
    pub(crate) params: Params,
    pub(crate) hosts: Vec<Host>,
    pub(crate) way: Way,
    /// Servers that take no more tasks now.
    pub(crate) full: BTreeSet<ServerIx>,
    pub(crate) classes: BTreeMap<Key, Class>,
    /// Only of tasks that are not like [`Need::default`], to keep a million of those small.
    needs: HashMap<TaskId, Need>,
    /// For the life of a task, also while it runs.
    excluded: HashMap<TaskId, Vec<HostIx>>,
    waiting: usize,
    /// Bytes and number of waiting tasks with inputs.
    pub(crate) bytes: u128,
    pub(crate) with_bytes: u64,
    /// Wall time of tasks that fetched nothing, on all hosts, microseconds.
    pub(crate) local_us: Mean,
    /// Changes since the backlogs were computed.
    pub(crate) stale: usize,
    /// See [`Placer::ask_again_us`].
    ask_again_us: Option<u64>,
    /// A bit for each kind of command that is known to move bytes without naming any.
    moving: u16,
}

struct Choice {
    key: Key,
    task: TaskId,
    why: Option<Reason>,
    source: Option<HostIx>,
}

impl Placer {
    /// Without hosts and tasks.
    pub fn new(mut params: Params) -> Placer {
        Placer {
            way: Way::new(std::mem::take(&mut params.links)),
            params,
            hosts: Vec::new(),
            full: BTreeSet::new(),
            classes: BTreeMap::new(),
            needs: HashMap::new(),
            excluded: HashMap::new(),
            waiting: 0,
            bytes: 0,
            with_bytes: 0,
            local_us: Mean::default(),
            stale: usize::MAX,
            ask_again_us: None,
            moving: 0,
        }
    }

    /// A further host with `slots` slots and, when known, the rate of its link.
    pub fn host_up(&mut self, slots: u32, nic_bytes_per_s: Option<u64>) -> HostIx {
        let link = nic_bytes_per_s.filter(|&rate| rate > 0).map(|rate| rate as f64);
        self.hosts.push(Host::new(slots, link.unwrap_or(self.params.default_bytes_per_s).max(1.0)));
        let host = self.hosts.len() - 1;
        self.regroup(host);
        host
    }

    /// The switch that a host is on, which is told before anything runs there.
    pub fn host_on(&mut self, host: HostIx, leaf: Option<SwitchIx>) {
        self.way.host_on(host, leaf);
    }

    /// Its running tasks are forgotten: the caller adds again what shall be repeated.
    pub fn host_lost(&mut self, host: HostIx) {
        self.hosts[host].up = false;
        for lost in std::mem::take(&mut self.hosts[host].running) {
            lost.source.into_iter().for_each(|source| self.way.end(source, host, lost.parts));
        }
        self.classes.values_mut().filter(|c| c.reserved == Some(host)).for_each(|c| c.reserved = None);
        self.regroup(host);
    }

    /// How many more tasks the storage of `host` takes. Those that move nothing are not asked.
    pub fn set_storage(&mut self, host: HostIx, storage: Storage) {
        self.hosts[host].storage = storage;
    }

    /// Whether a server that is no host of the run takes no more tasks.
    pub fn set_server_full(&mut self, server: ServerIx, full: bool) {
        if full {
            self.full.insert(server);
        } else {
            self.full.remove(&server);
        }
    }

    /// What is free on `host` of each kind of room that tasks take: memory, named resources.
    pub fn set_room(&mut self, host: HostIx, room: Vec<u64>) {
        self.hosts[host].room = room;
    }

    /// Tasks of this kind that name no inputs press the storage where they run, or no more.
    pub fn set_moves(&mut self, kind: u8, moves: bool) {
        let bit = 1 << (kind % MOST_KINDS);
        self.moving = if moves { self.moving | bit } else { self.moving & !bit };
    }

    pub(crate) fn presses(&self, key: &Key) -> bool {
        key.reads || self.moving & (1 << key.kind) != 0
    }

    /// A task that may run from now on: a new one, or one that came back.
    pub fn add(&mut self, task: TaskId, mut need: Need) {
        need.cpus = need.cpus.max(1);
        self.remove(task);
        self.waiting += 1;
        if need.total > 0 {
            self.bytes += u128::from(need.total);
            self.with_bytes += 1;
        }
        let key = self.key(task, &need);
        if need != Need::default() {
            self.needs.insert(task, need);
        }
        self.classes.entry(key).or_default().insert(task);
        self.stale = self.stale.saturating_add(1);
    }

    /// `task` never runs on `host`, also when it is added again.
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

    /// Undoes `exclude`.
    pub fn allow(&mut self, task: TaskId, host: HostIx) {
        let need = self.remove(task);
        if let Some(excluded) = self.excluded.get_mut(&task) {
            excluded.retain(|h| *h != host);
        }
        if let Some(need) = need {
            self.add(task, need);
        }
    }

    /// Takes a waiting task out; what it needs, when it waited.
    pub fn remove(&mut self, task: TaskId) -> Option<Need> {
        // Nothing smaller is known of most tasks, so the common new one must be cheap.
        let need = self.needs.get(&task).cloned().unwrap_or_default();
        let key = self.key(task, &need);
        self.take(&key, task)
    }

    /// The best task for a host with `free` free slots; none when there is
    /// none for it, or when waiting for another host is cheaper. `now_us` is
    /// any clock that does not go back.
    pub fn pick(&mut self, host: HostIx, free: u32, now_us: u64) -> Option<Placed> {
        if !self.may_pick(host, free, now_us) {
            return None;
        }
        let choice = self.overdue(host, free).or_else(|| self.own(host, free, now_us));
        let choice = choice.or_else(|| self.anywhere(host, free));
        let choice = match choice {
            Some(choice) => choice,
            None => {
                self.count_claims(host, now_us);
                self.fetch(host, free, now_us)?
            }
        };
        self.pass_over(host, &choice.key);
        Some(self.start(host, choice, now_us))
    }

    /// As `pick`, of the tasks only whose bytes lie on the host: a better place than any
    /// that may still join.
    pub fn pick_at_home(&mut self, host: HostIx, free: u32, now_us: u64) -> Option<Placed> {
        if !self.may_pick(host, free, now_us) {
            return None;
        }
        let choice = self.own(host, free, now_us)?;
        self.pass_over(host, &choice.key);
        Some(self.start(host, choice, now_us))
    }

    fn may_pick(&mut self, host: HostIx, free: u32, now_us: u64) -> bool {
        if self.waiting == 0 || free == 0 || !self.hosts.get(host).is_some_and(|h| h.up) {
            return false;
        }
        self.balance(now_us);
        !self.must_collect(host, free)
    }

    /// When an idle host that got nothing should ask again although nothing
    /// happened, on the clock of `pick`: waiting pays as long as it took no
    /// longer than fetching would have.
    pub fn ask_again_us(&self) -> Option<u64> {
        self.ask_again_us.filter(|_| self.waiting > 0)
    }

    /// The attempt at `task` that was picked for `host` is over; nothing happens when it is not known. `wall_us` 0
    /// teaches nothing: use it for an attempt that failed, was killed or never started.
    pub fn finished(&mut self, host: HostIx, task: TaskId, wall_us: u64) {
        self.see_overlap(host);
        let running = &mut self.hosts[host].running;
        let Some(at) = running.iter().position(|r| r.task == task) else { return };
        let ended = running.remove(at);
        if let Some(source) = ended.source {
            self.way.end(source, host, ended.parts);
            self.see_overlap(source);
        }
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
        // Without knowing the work alone, the fetching cannot be told from it.
        let Some(work) = self.hosts[host].local_us.get().or(self.local_us.get()) else { return };
        let clear = wall - work > work / 10.0;
        let rate = ended.remote as f64 / (wall - work).max(work / 10.0) * 1e6 * f64::from(ended.sharing.max(1));
        // When fetching drowns in the work, the rate is a lower bound only.
        if clear || self.hosts[host].fetched.get().is_none_or(|known| rate > known) {
            self.hosts[host].fetched.learn(rate);
        }
    }

    /// Tasks that were added and not picked.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Of these, those that read from a server that is no host.
    pub fn waiting_for(&self, server: ServerIx) -> usize {
        let of = self.classes.iter().filter(|(key, _)| key.server == Some(server));
        of.map(|(_, class)| class.len()).sum()
    }

    /// Of these, those that would press the storage of `host` if they began: what lies there, and what lies nowhere.
    pub fn waiting_at(&self, host: HostIx) -> usize {
        let here = |key: &Key| key.holders.is_empty() || key.holders.contains(&host);
        let counts = |key: &Key| key.server.is_none() && self.presses(key) && here(key);
        let up = self.hosts.get(host).is_some_and(|known| known.up);
        let of = self.classes.iter().filter(|(key, _)| up && counts(key));
        of.map(|(_, class)| class.len()).sum()
    }

    /// Waiting tasks for which every host is excluded, lost, or too small.
    pub fn runnable_nowhere(&self) -> Vec<TaskId> {
        let stuck = |key: &Key| !(0..self.hosts.len()).any(|host| self.hosts[host].up && self.fits(key, host));
        let mut tasks: Vec<TaskId> =
            self.classes.iter().filter(|(key, _)| stuck(key)).flat_map(|(_, class)| class.tasks()).collect();
        tasks.sort_unstable();
        tasks
    }

    pub(crate) fn fits(&self, key: &Key, host: HostIx) -> bool {
        key.cpus <= self.hosts[host].slots && !key.excluded.contains(&host)
    }

    pub(crate) fn has_room(&self, key: &Key, host: HostIx) -> bool {
        let host = &self.hosts[host];
        host.lacks(&key.takes).is_none() && !host.is_collected(&key.takes)
    }

    fn key(&self, task: TaskId, need: &Need) -> Key {
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
            let most = hosts.iter().map(|&host| need.local(host)).max().unwrap_or(0);
            let enough = (most as f64 * AS_GOOD) as u64;
            holders = hosts.into_iter().filter(|&host| most > 0 && need.local(host) >= enough).collect();
        }
        let reads = need.reads();
        let kind = if reads { 0 } else { need.kind % MOST_KINDS };
        let server = need.server.filter(|_| reads);
        let writer = need.writer.filter(|writer| holders.len() > 1 && holders.contains(writer));
        Key { holders, writer, excluded, cpus: need.cpus, server, reads, kind, takes: need.takes.clone() }
    }

    fn take(&mut self, key: &Key, task: TaskId) -> Option<Need> {
        let class = self.classes.get_mut(key)?;
        if !class.remove(task) {
            return None;
        }
        if class.len() == 0 {
            self.classes.remove(key);
        }
        let need = self.needs.remove(&task).unwrap_or_default();
        self.waiting -= 1;
        if need.total > 0 {
            self.bytes -= u128::from(need.total);
            self.with_bytes -= 1;
        }
        self.stale = self.stale.saturating_add(1);
        Some(need)
    }

    /// `host` came or went: tasks with bytes there may belong elsewhere now.
    fn regroup(&mut self, host: HostIx) {
        self.stale = usize::MAX;
        let moved: Vec<(Key, Class)> = std::mem::take(&mut self.classes).into_iter().collect();
        for (key, class) in moved {
            for task in class.tasks() {
                let need = self.needs.get(&task).filter(|need| need.local(host) > 0);
                let key = need.map_or_else(|| key.clone(), |need| self.key(task, need));
                let into = self.classes.entry(key).or_default();
                (into.passed, into.reserved) = (class.passed, class.reserved.filter(|&at| at != host));
                into.insert(task);
            }
        }
    }

    /// Whether slots are being collected here for a wide task that does not fit yet.
    fn must_collect(&mut self, host: HostIx, free: u32) -> bool {
        let Placer { hosts, classes, .. } = self;
        let mut collect = false;
        hosts[host].collects.clear();
        for (key, class) in classes.iter_mut() {
            let may = key.cpus <= hosts[host].slots && !key.excluded.contains(&host);
            let lacks = hosts[host].lacks(&key.takes);
            if (key.cpus <= free && lacks.is_none()) || !may || !(key.holders.is_empty() || key.holders.contains(&host))
            {
                continue;
            }
            class.passed = class.passed.saturating_add(1);
            if class.passed >= WIDE_PATIENCE && class.reserved.is_none() {
                class.reserved = Some(host);
            }
            if class.reserved == Some(host) {
                // Who takes none of the room that it lacks goes on meanwhile.
                collect |= lacks.is_none();
                hosts[host].collects.extend(lacks);
            }
        }
        collect
    }

    /// Groups from which this host takes without a second thought.
    fn at_home(&self, host: HostIx, free: u32) -> impl Iterator<Item = (&Key, &Class)> {
        let here = move |key: &Key| key.holders.is_empty() || key.holders.contains(&host);
        let may = move |key: &Key| !self.waits_for_storage(host, key) && key.cpus <= free && here(key);
        self.classes.iter().filter(move |(key, _)| may(key) && self.fits(key, host) && self.has_room(key, host))
    }

    /// Whether a task that runs on `host` has to wait for the storage that it reads.
    fn waits_for_storage(&self, host: HostIx, key: &Key) -> bool {
        match key.server {
            Some(server) => self.full.contains(&server),
            None => self.presses(key) && self.hosts[host].storage == Storage::Full,
        }
    }

    fn overdue(&self, host: HostIx, free: u32) -> Option<Choice> {
        let waited = self.at_home(host, free).filter(|(_, class)| class.passed >= PATIENCE);
        oldest(waited)
    }

    /// Of the tasks whose bytes are here, first those whose other holders are
    /// busiest: an idle holder elsewhere takes its own soon.
    fn own(&self, host: HostIx, free: u32, now_us: u64) -> Option<Choice> {
        let slack = |key: &Key| {
            let others = key.holders.iter().filter(|&&other| other != host);
            let level = |&other: &HostIx| {
                (self.hosts[other].backlog + self.hosts[other].running.len() as f64)
                    / f64::from(self.hosts[other].slots)
                    * self.duration_us(other, now_us)
            };
            others.map(level).fold(f64::INFINITY, f64::min)
        };
        let own = self.at_home(host, free).filter(|(key, _)| !key.holders.is_empty());
        let own = own.filter(|(key, class)| !self.is_claimed(host, key, class));
        let best = own.max_by(|(a, x), (b, y)| slack(a).total_cmp(&slack(b)).then_with(|| y.front().cmp(&x.front())));
        oldest(best.into_iter())
    }

    /// Whether another host, which wrote what such a task reads, can take it at once. It may have reasons of
    /// which nothing is known here not to, so that its claim does not last.
    fn is_claimed(&self, host: HostIx, key: &Key, class: &Class) -> bool {
        let Some(writer) = key.writer.filter(|writer| *writer != host) else { return false };
        class.passed < CLAIM
            && self.hosts[writer].has_free(key.cpus)
            && !self.waits_for_storage(writer, key)
            && self.has_room(key, writer)
    }

    /// The host got nothing and asks again soon, since it may have left something to who wrote it.
    fn count_claims(&mut self, host: HostIx, now_us: u64) {
        let left = |key: &Key| key.writer.is_some_and(|writer| writer != host) && key.holders.contains(&host);
        for (_, class) in self.classes.iter_mut().filter(|(key, _)| left(key)) {
            class.passed = class.passed.saturating_add(1);
            self.ask_again_us = Some(now_us + SOONEST_US as u64);
        }
    }

    fn anywhere(&self, host: HostIx, free: u32) -> Option<Choice> {
        oldest(self.at_home(host, free).filter(|(key, _)| key.holders.is_empty()))
    }

    /// A task whose bytes lie elsewhere, if it is done sooner here: from the
    /// longest queue, its last first, since its first start there soon. A queue
    /// that waits for storage and not for slots gets no shorter by reading the
    /// same bytes from another host, so neither gives such a queue nor takes a
    /// host whose own one waits: its slot is idle on purpose.
    fn fetch(&mut self, host: HostIx, free: u32, now_us: u64) -> Option<Choice> {
        if self.waits_for_own_storage(host) {
            return None;
        }
        let (mut best, mut cheapest): (Option<(f64, Choice)>, _) = (None, f64::INFINITY);
        let mut left_alone = None;
        for (key, class) in &self.classes {
            let elsewhere = !key.holders.is_empty() && !key.holders.contains(&host);
            if !elsewhere || key.cpus > free || !self.fits(key, host) || !self.has_room(key, host) {
                continue;
            }
            let gives = |h: &Host| !self.presses(key) || !(h.storage == Storage::Full || h.keeps_its_own());
            let open = key.holders.iter().copied().filter(|&holder| gives(&self.hosts[holder]));
            let Some((wait, first, from)) = self.first_and_near(host, open, now_us) else { continue };
            if best.as_ref().is_some_and(|(longest, _)| *longest >= wait) {
                continue;
            }
            for task in class.tasks().rev().take(LOOK) {
                let need = &self.needs[&task];
                let fetch = self.fetch_us(host, from, need.remote(host), now_us);
                let (work, work_there) = self.compared_us(host, first, wait == 0.0, now_us);
                let there = wait + work_there + self.fetch_us(first, host, need.remote(first), now_us);
                let takes = fetch + work;
                let fetched = (need.remote(host), takes);
                let verdict = if takes < there { self.may_fetch(host, from, fetched, now_us) } else { Verdict::No };
                left_alone = left_alone.or((verdict == Verdict::Wait).then_some(from));
                if verdict == Verdict::Yes {
                    let path = self.way.path(from, host);
                    let why = Reason::Fetches { from, wait_us: wait as u64, fetch_us: fetch as u64, path };
                    best = Some((wait, Choice { key: key.clone(), task, why: Some(why), source: Some(from) }));
                    break;
                }
                cheapest = fetch.min(cheapest);
            }
        }
        left_alone.into_iter().for_each(|from| self.hosts[from].burden.hold(now_us));
        if best.is_none() && cheapest.is_finite() {
            let next = now_us + (cheapest / 4.0).clamp(SOONEST_US, LATEST_US) as u64;
            self.ask_again_us = Some(self.ask_again_us.filter(|&at| at > now_us).map_or(next, |at| at.min(next)));
        }
        best.map(|(_, choice)| choice)
    }

    /// Whether one more task that would fetch so many bytes and take `takes_us` on `host` may read from `from`. A link
    /// between switches that is full is no reason to leave `from` alone: others are as near to it as they were. Before
    /// a task has shown how long it computes, none is kept from crossing: the link might idle for as long.
    fn may_fetch(&self, host: HostIx, from: HostIx, (bytes, takes_us): (u64, f64), now_us: u64) -> Verdict {
        if self.way.distance(from, host) > 0 && self.local_us.get().is_some() {
            let parts = self.parts(host, from, bytes, now_us);
            if !self.way.has_room(from, host, parts, self.link_between(host, from)) {
                return Verdict::No;
            }
        }
        let Host { burden, slots, backlog, .. } = &self.hosts[from];
        burden.verdict(f64::from(*slots), *backlog, self.reading(from), takes_us, now_us)
    }

    fn waits_for_own_storage(&self, host: HostIx) -> bool {
        let own = |key: &Key| self.presses(key) && key.holders.contains(&host) && self.fits(key, host);
        self.hosts[host].storage == Storage::Full && self.classes.keys().any(own)
    }

    fn pass_over(&mut self, host: HostIx, chosen: &Key) {
        for (key, class) in self.classes.iter_mut() {
            if key == chosen {
                (class.passed, class.reserved) = (0, None);
            } else if (key.holders.is_empty() || key.holders.contains(&host)) && !key.excluded.contains(&host) {
                class.passed = class.passed.saturating_add(1);
            }
        }
    }

    fn start(&mut self, host: HostIx, choice: Choice, now_us: u64) -> Placed {
        let need = self.take(&choice.key, choice.task).expect("a chosen task waits in its group");
        let (local, remote) = (need.local(host), need.remote(host));
        let why = choice.why.unwrap_or(match local {
            _ if !self.params.locality => Reason::InTurn,
            _ if need.total == 0 => Reason::NoInput,
            0 => Reason::HeldByNone { total: need.total },
            _ => Reason::Holds { local, total: need.total },
        });
        let source = choice.source;
        let fetch_us = source.map_or(0.0, |from| self.fetch_us(host, from, remote, now_us));
        let sharing = source.map_or(1, |from| self.share(from, now_us));
        let parts = source.map_or(0, |from| self.parts(host, from, remote, now_us));
        let running = Running {
            task: choice.task,
            local,
            remote,
            source,
            since_us: now_us,
            cpus: need.cpus,
            fetch_us,
            parts,
            sharing,
            known: self.hosts.len(),
            overlap: Overlap::new(self.reading(host)),
        };
        self.hosts[host].running.push(running);
        if let Some(source) = source {
            self.hosts[source].burden.fetch_begins(now_us);
            self.way.begin(source, host, parts);
            self.see_overlap(source);
        }
        Placed { task: choice.task, need, local, remote, why }
    }
}

fn oldest<'a>(groups: impl Iterator<Item = (&'a Key, &'a Class)>) -> Option<Choice> {
    let (key, class) = groups.min_by_key(|(_, class)| class.front())?;
    Some(Choice { key: key.clone(), task: class.front()?, why: None, source: None })
}
