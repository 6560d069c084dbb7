//! Measurements of a host, and the cost of waiting for it.

use crate::HostIx;
use crate::mean::Mean;
use crate::serving_cost::{Overlap, ServingCost};
use homing_model::TaskId;

/// A task that was picked and has not been reported finished.
#[derive(Clone, Copy, Debug)]
pub struct PickedTask {
    pub task: TaskId,
    pub local: u64,
    pub remote: u64,
    /// The host that most of its remote bytes come from.
    pub source: Option<HostIx>,
    pub since_us: u64,
    pub cpus: u32,
    /// Expected time to fetch, microseconds.
    pub fetch_us: f64,
    /// Its load on the uplinks on its way, in parts of [`crate::way::WHOLE`].
    pub parts: u32,
    /// Number of hosts that were known when it was picked: it may read from one that joined later.
    pub known: usize,
    /// The numbers of readers from its host while it ran.
    pub overlap: Overlap,
}

impl PickedTask {
    /// Returns how long it has run, microseconds.
    pub fn ran_us(&self, now_us: u64) -> u64 {
        now_us.saturating_sub(self.since_us)
    }

    /// Whether it is expected to be fetching at `now_us`.
    pub fn fetches(&self, now_us: u64) -> bool {
        self.source.is_some() && (self.ran_us(now_us) as f64) < self.fetch_us
    }
}

/// A running task elsewhere that fetches from a host, as that host knows it.
#[derive(Clone, Copy, Debug)]
pub struct Feed {
    pub to: HostIx,
    pub task: TaskId,
    pub since_us: u64,
    /// Expected time to fetch, microseconds.
    pub fetch_us: f64,
    /// The largest number of tasks that fetched from the host at the same time.
    pub sharing: u32,
}

impl Feed {
    /// Whether it is expected to be fetching at `now_us`.
    pub fn is_on(&self, now_us: u64) -> bool {
        (now_us.saturating_sub(self.since_us) as f64) < self.fetch_us
    }
}

/// The running tasks of a host, with the sum of their start times: this gives the mean time they have run without a
/// loop.
#[derive(Clone, Debug, Default)]
pub struct AllRunning {
    all: Vec<PickedTask>,
    /// It wraps around at its range, which differences do not notice.
    since_us: u64,
    cpus: u32,
}

impl AllRunning {
    pub fn begin(&mut self, task: PickedTask) {
        self.since_us = self.since_us.wrapping_add(task.since_us);
        self.cpus += task.cpus;
        self.all.push(task);
    }

    pub fn end(&mut self, task: TaskId) -> Option<PickedTask> {
        let at = self.all.iter().position(|running| running.task == task)?;
        let ended = self.all.remove(at);
        self.since_us = self.since_us.wrapping_sub(ended.since_us);
        self.cpus -= ended.cpus;
        Some(ended)
    }

    /// Returns all of them, and leaves none running.
    pub fn forget(&mut self) -> Vec<PickedTask> {
        std::mem::take(self).all
    }

    pub fn iter(&self) -> impl Iterator<Item = &PickedTask> {
        self.all.iter()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut PickedTask> {
        self.all.iter_mut()
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the mean time for which they have run, microseconds; the clock does not go back.
    fn elapsed_us(&self, now_us: u64) -> f64 {
        let elapsed = now_us.wrapping_mul(self.all.len() as u64).wrapping_sub(self.since_us);
        elapsed.cast_signed().max(0) as f64 / self.all.len().max(1) as f64
    }
}

/// The limit on tasks at the storage of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// Slots are the only limit.
    #[default]
    Open,
    /// The limit is lower than the number of slots, and is not reached.
    Scarce,
    /// The limit is reached: no task that reads there is picked, on any host.
    Full,
}

/// One host. The fields that each decision reads for hosts with the same files come first, together. Of ten thousand
/// hosts, few are in the nearest cache of the processor.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct PlacementHost {
    /// Number of waiting tasks that are expected to run here, if tasks with several holders are spread evenly.
    pub backlog: f64,
    pub running: AllRunning,
    /// Mean wall time of tasks that fetched nothing, microseconds.
    pub local_us: Mean,
    pub slots: u32,
    pub up: bool,
    /// Whether more tasks may read there.
    pub storage: Storage,
    /// Rate of its link, bytes per second.
    pub link: f64,
    /// Free amount of each kind of room; a kind without a value has enough.
    pub room: Vec<u64>,
    /// Kinds of room that are collected for a task that found too little of them too often.
    pub collects: Vec<usize>,
    /// Joint rate of tasks that fetched together, bytes per second.
    pub fetched: Mean,
    /// The cost that fetches from it have for its own tasks.
    pub burden: ServingCost,
    /// Tasks elsewhere that fetch from it.
    pub feeds: Vec<Feed>,
}

impl PlacementHost {
    pub fn new(slots: u32, link: f64) -> PlacementHost {
        PlacementHost {
            slots: slots.max(1),
            link,
            up: true,
            room: Vec::new(),
            collects: Vec::new(),
            storage: Storage::Open,
            local_us: Mean::default(),
            fetched: Mean::default(),
            burden: ServingCost::default(),
            running: AllRunning::default(),
            feeds: Vec::new(),
            backlog: 0.0,
        }
    }

    /// Returns the first kind of room of which there is too little.
    pub fn lacks(&self, takes: &[u64]) -> Option<usize> {
        takes.iter().zip(&self.room).position(|(takes, free)| takes > free)
    }

    /// Whether it would use room that is collected for another task.
    pub fn is_collected(&self, takes: &[u64]) -> bool {
        self.collects.iter().any(|kind| takes.get(*kind).is_some_and(|takes| *takes > 0))
    }

    /// Whether the caller starts more tasks than there are slots, to have the next at hand there. Then the time since
    /// a pick is not the running time.
    fn prefetches(&self) -> bool {
        self.running.len() > self.slots as usize
    }

    /// Whether a slot is free here only because the limit of the storage holds tasks back. No other host takes these
    /// tasks: they start here as soon as the limit permits.
    pub fn keeps_its_own(&self) -> bool {
        self.storage == Storage::Scarce && self.has_free(1)
    }

    /// Whether `cpus` slots are free here.
    pub fn has_free(&self, cpus: u32) -> bool {
        self.up && self.running.cpus.saturating_add(cpus) <= self.slots
    }

    /// Returns the expected wall time of a task here without fetching, given the mean or prior `usual_us`. Tasks that
    /// already run for longer are evidence too.
    pub fn duration_us(&self, usual_us: impl FnOnce() -> f64, now_us: u64) -> f64 {
        let usual_us = self.local_us.get().unwrap_or_else(usual_us);
        if self.prefetches() { usual_us } else { usual_us.max(self.running.elapsed_us(now_us)) }
    }

    /// Returns when the last task of the backlog would start, microseconds from now: slots come free one after the
    /// other, then round after round. `known`: whether the duration was measured, or is a guess.
    pub fn wait_us(&self, duration_us: f64, known: bool, now_us: u64) -> f64 {
        let slots = self.slots as usize;
        let mut free_in: Vec<f64> = Vec::with_capacity(slots);
        let rests = self.running.iter().map(|task| (self.rest_us(task, duration_us, known, now_us), task.cpus));
        rests.for_each(|(rest, cpus)| free_in.extend(std::iter::repeat_n(rest, cpus as usize)));
        let queued = free_in.len().saturating_sub(slots);
        free_in.resize(slots, 0.0);
        free_in.sort_by(f64::total_cmp);
        let ahead = queued + (self.backlog.ceil() as usize).saturating_sub(1);
        free_in[ahead % slots] + (ahead / slots) as f64 * duration_us
    }

    fn rest_us(&self, task: &PickedTask, duration_us: f64, known: bool, now_us: u64) -> f64 {
        let expected = duration_us + task.fetch_us;
        if self.prefetches() {
            return expected / 2.0;
        }
        let elapsed = task.ran_us(now_us) as f64;
        match expected - elapsed {
            rest if !known => rest.max(elapsed),
            rest if rest > 0.0 => rest,
            // A small delay is common; after a long delay, the best guess is as long again.
            rest if -rest < expected / 2.0 => expected / 4.0,
            _ => elapsed,
        }
    }
}

/// Spreads `tasks` over `holders` such that their queues end at the same time as nearly as possible. The level of a
/// host is the present end of its queue; `pace` is how much later it ends per task.
pub fn pour(tasks: f64, holders: &mut [HostIx], hosts: &mut [PlacementHost], pace: &[f64]) {
    let order = holders;
    let level = |hosts: &[PlacementHost], h: HostIx| hosts[h].backlog * pace[h];
    order.sort_by(|&a, &b| level(hosts, a).total_cmp(&level(hosts, b)));
    // Fill the lowest up to the next level, then both, and so on.
    let (mut rate, mut volume) = (0.0, 0.0);
    let mut end = 0.0;
    for (i, &h) in order.iter().enumerate() {
        rate += 1.0 / pace[h];
        volume += hosts[h].backlog;
        end = (tasks + volume) / rate;
        if order.get(i + 1).is_none_or(|&next| end <= level(hosts, next)) {
            break;
        }
    }
    for &mut h in order {
        hosts[h].backlog = hosts[h].backlog.max(end / pace[h]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNNING: PickedTask = PickedTask {
        task: 1,
        local: 1,
        remote: 0,
        source: None,
        since_us: 0,
        cpus: 1,
        fetch_us: 0.0,
        parts: 0,
        known: 1,
        overlap: Overlap { fewest: 0, most: 0 },
    };

    #[test]
    fn water_finds_its_level() {
        let mut hosts = vec![PlacementHost::new(1, 1.0); 3];
        let pace = [1.0, 1.0, 0.5];
        pour(4.0, &mut [0], &mut hosts, &pace);
        pour(3.0, &mut [0, 1], &mut hosts, &pace);
        assert_eq!((hosts[0].backlog, hosts[1].backlog), (4.0, 3.0));
        pour(3.0, &mut [0, 1], &mut hosts, &pace);
        assert_eq!((hosts[0].backlog, hosts[1].backlog), (5.0, 5.0));
        pour(10.0, &mut [2], &mut hosts, &pace);
        pour(4.0, &mut [1, 2], &mut hosts, &pace);
        // 19 tasks less the 5 of the first host, the third twice as fast.
        assert!((hosts[1].backlog + hosts[2].backlog - 19.0).abs() < 1e-9);
        assert!((hosts[1].backlog * 1.0 - hosts[2].backlog * 0.5).abs() < 1e-9);
    }

    #[test]
    fn the_wait_is_that_of_a_queue() {
        let mut host = PlacementHost::new(2, 1.0);
        host.backlog = 5.0;
        assert_eq!(host.wait_us(10.0, true, 0), 20.0);
        host.running.begin(RUNNING);
        // Slots free at 0 and 4; the fifth task starts with the third round of the first.
        assert_eq!(host.wait_us(10.0, true, 6), 20.0);
        host.backlog = 4.0;
        assert_eq!(host.wait_us(10.0, true, 6), 14.0);
    }
}
