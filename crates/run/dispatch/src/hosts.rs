//! The hosts of a run: names, slots in use, volumes they see.

use crate::units::Units;
use homing_model::hostname::{HostIndex, spelled};
use homing_model::{HostFacts, HostSample, Mount, Task, TaskId};
use homing_mounts::same_volume;
use homing_place::HostIx;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A network volume that tasks of this run use.
pub type VolumeIx = usize;

/// Samples after a start that tell what it takes: the first may have been on its way already.
const SETTLED: u32 = 2;

/// Work handed out in advance, per slot: enough to bridge one round trip,
/// measured in time so that long tasks are never bound early.
const PREFETCH_US: f64 = 20_000.0;
const PREFETCH_MOST: f64 = 48.0;

#[derive(Debug)]
struct Host {
    name: String,
    facts: HostFacts,
    slots: u32,
    used: u32,
    /// Of its slots those that are the run's now, where others use them too.
    granted: Option<u32>,
    free_slots: BTreeSet<u32>,
    slot_of: HashMap<u64, u32>,
    mean_us: f64,
    mem_available: Option<u64>,
    /// Its load average of one minute.
    r1m: Option<f64>,
    /// What is started only below this load.
    load_most: Option<u32>,
    /// The ticket of the last start, while it runs, and the samples that came since.
    newest: Option<(u64, u32)>,
    /// Memory that running tasks declared, bytes.
    claimed: u64,
    /// What it has of named resources, and what running tasks took of that.
    resources: BTreeMap<String, (u64, u64)>,
    /// Which of them running tasks have.
    units: Units,
    /// It is sent tasks.
    up: bool,
    /// Its worker is there.
    present: bool,
}

/// All hosts that ever were up in this run, by index.
#[derive(Debug, Default)]
pub struct Hosts {
    hosts: Vec<Host>,
    names: HostIndex,
    /// Names and addresses, each group of one machine, as this machine resolves them, in one spelling.
    resolved: Vec<Vec<String>>,
    groups: HostIndex,
    volumes: Vec<Mount>,
    /// Hosts that do not have each volume mounted.
    without: Vec<Vec<HostIx>>,
    told: HashSet<(HostIx, VolumeIx)>,
    /// Hosts that are up, and their slots: kept, so that nothing has to count ten thousand for one task.
    ups: usize,
    slots_up: u32,
}

impl Hosts {
    /// A host answered; `ix` counts from 0 in order of arrival.
    pub fn up(&mut self, ix: HostIx, name: &str, slots: u32, facts: HostFacts) {
        assert_eq!(ix, self.hosts.len(), "hosts are numbered in order of arrival");
        let names = facts.aliases.iter().map(String::as_str).chain([facts.hostname.as_str(), name]);
        // A host that was lost and came back is the one that is meant.
        self.names.add_over(ix, names, |old| self.hosts.get(old).is_some_and(|old| !old.up));
        self.ups += 1;
        self.slots_up += slots;
        for (volume, without) in self.volumes.iter().zip(&mut self.without) {
            without.extend((!sees(&facts, volume)).then_some(ix));
        }
        self.hosts.push(Host {
            name: name.into(),
            slots,
            used: 0,
            granted: None,
            free_slots: (1..=slots).collect(),
            slot_of: HashMap::new(),
            mean_us: 0.0,
            mem_available: None,
            r1m: None,
            load_most: None,
            newest: None,
            claimed: 0,
            resources: BTreeMap::new(),
            units: Units::default(),
            up: true,
            present: true,
            facts,
        });
    }

    /// It is sent no more tasks. False when it was not before.
    pub(crate) fn down(&mut self, ix: HostIx) -> bool {
        let was_up = std::mem::replace(&mut self.hosts[ix].up, false);
        if was_up {
            self.ups -= 1;
            self.slots_up -= self.hosts[ix].slots;
        }
        was_up
    }

    /// Its worker is gone. False when it was gone already.
    pub(crate) fn leave(&mut self, ix: HostIx) -> bool {
        self.down(ix);
        std::mem::replace(&mut self.hosts[ix].present, false)
    }

    pub(crate) fn is_up(&self, ix: HostIx) -> bool {
        self.hosts[ix].up
    }

    /// The name by which the user knows it.
    pub fn name(&self, ix: HostIx) -> &str {
        &self.hosts[ix].name
    }

    pub(crate) fn len(&self) -> usize {
        self.hosts.len()
    }

    pub(crate) fn any_up(&self) -> bool {
        self.up_count() > 0
    }

    pub(crate) fn up_count(&self) -> usize {
        self.ups
    }

    /// Slots of all hosts that are up.
    pub fn slots(&self) -> u32 {
        self.slots_up
    }

    /// Slots of hosts that are up on which nothing runs.
    pub(crate) fn free_slots(&self) -> u32 {
        self.hosts.iter().filter(|h| h.up).map(|h| h.slots.saturating_sub(h.used)).sum()
    }

    /// Returns the run's host that a storage host's name or address means.
    pub fn find(&self, storage_host: &str) -> Option<HostIx> {
        let by_address = || self.names_of(storage_host).iter().find_map(|other| self.names.find(other));
        self.names.find(storage_host).or_else(by_address)
    }

    /// These are all names and addresses of one machine, which may be a host of the run or not.
    pub(crate) fn same(&mut self, names: &[String]) {
        self.groups.add(self.resolved.len(), names.iter().map(String::as_str));
        self.resolved.push(names.iter().map(|name| spelled(name)).collect());
    }

    /// What a machine is called besides, this name included; all in one spelling.
    pub(crate) fn names_of(&self, name: &str) -> Vec<String> {
        self.groups.find(name).map_or_else(|| vec![spelled(name)], |group| self.resolved[group].clone())
    }

    /// Bytes by storage host, as bytes by host of this run.
    pub(crate) fn join(&self, per_host: &[(String, u64)]) -> Vec<(HostIx, u64)> {
        let mut sum: Vec<(HostIx, u64)> = Vec::new();
        for (name, bytes) in per_host {
            let Some(ix) = self.find(name) else { continue };
            match sum.iter_mut().find(|(known, _)| *known == ix) {
                Some((_, total)) => *total += bytes,
                None => sum.push((ix, *bytes)),
            }
        }
        sum
    }

    pub(crate) fn volume(&mut self, mount: Mount) -> VolumeIx {
        self.volumes.iter().position(|known| *known == mount).unwrap_or_else(|| {
            let without = (0..self.hosts.len()).filter(|ix| !sees(&self.hosts[*ix].facts, &mount));
            self.without.push(without.collect());
            self.volumes.push(mount);
            self.volumes.len() - 1
        })
    }

    /// Rate of the slowest link that a host knows of itself, bytes per second.
    pub(crate) fn slowest_link(&self) -> Option<u64> {
        self.hosts.iter().filter(|h| h.up).filter_map(|h| h.facts.nic_bytes_per_s).min()
    }

    /// Hosts that are up.
    pub(crate) fn all_up(&self) -> Vec<HostIx> {
        (0..self.hosts.len()).filter(|ix| self.hosts[*ix].up).collect()
    }

    /// Pairs of host and volume where the host does not have the volume mounted.
    pub(crate) fn blind(&self, volumes: &[VolumeIx]) -> Vec<(HostIx, VolumeIx)> {
        let pairs = volumes.iter().flat_map(|volume| self.without[*volume].iter().map(|host| (*host, *volume)));
        let mut pairs: Vec<(HostIx, VolumeIx)> = pairs.collect();
        pairs.sort_unstable();
        pairs
    }

    /// The reason, the first time that a host turns out to be blind for a volume.
    pub(crate) fn unfit_once(&mut self, host: HostIx, volume: VolumeIx) -> Option<String> {
        let mount = &self.volumes[volume];
        self.told
            .insert((host, volume))
            .then(|| format!("{} is not mounted at {} there", mount.source.display(), mount.point.display()))
    }

    /// Hosts that are up and may be sent something, most free slots first, in relation to their size.
    pub(crate) fn by_free_share(&self, ahead: bool) -> Vec<HostIx> {
        let may = |ix: &HostIx| self.hosts[*ix].up && self.credit(*ix, ahead) > 0;
        let mut order: Vec<HostIx> = (0..self.hosts.len()).filter(may).collect();
        order.sort_by_key(|ix| {
            let host = &self.hosts[*ix];
            u64::from(host.used) * 1_000_000 / u64::from(host.slots.max(1))
        });
        order
    }

    /// It starts nothing at this load, in the words of `--jobs`.
    pub(crate) fn bounded(&mut self, ix: HostIx, load: Option<&str>) {
        let host = &mut self.hosts[ix];
        host.load_most = load.and_then(|text| homing_batch::jobs("--load", text, host.facts.cores).ok());
    }

    /// Hosts with a free slot that start nothing for their load average, and that.
    pub(crate) fn loaded(&self) -> Vec<(&str, f64)> {
        let free = self.hosts.iter().filter(|h| h.up && h.used < h.slots);
        let too_much = |h: &Host| h.r1m.filter(|r1m| h.load_most.is_some_and(|most| *r1m >= f64::from(most)));
        free.filter_map(|h| Some((h.name.as_str(), too_much(h)?))).collect()
    }

    /// True when `memfree` bytes are available there, after what the last start has taken, and its load is below the
    /// limit. Load averages follow slowly: tasks of the run count at once, as with `make -l`.
    pub(crate) fn may_start(&self, ix: HostIx, memfree: u64) -> bool {
        let host = &self.hosts[ix];
        let below = |most: u32| host.r1m.is_some_and(|r1m| r1m.max(f64::from(host.used)) < f64::from(most));
        if !host.load_most.is_none_or(below) {
            return false;
        }
        let settled = host.newest.is_none_or(|(_, samples)| samples >= SETTLED);
        memfree == 0 || settled && host.mem_available.is_some_and(|available| available >= memfree)
    }

    /// Hosts with a free slot and less than `memfree` bytes available, and what they have.
    pub(crate) fn short_of(&self, memfree: u64) -> Vec<(&str, u64)> {
        let free = self.hosts.iter().filter(|h| h.up && h.used < h.slots);
        free.filter_map(|h| Some((h.name.as_str(), h.mem_available.filter(|a| *a < memfree)?))).collect()
    }

    /// It has so much of named resources.
    pub(crate) fn offers(&mut self, ix: HostIx, resources: BTreeMap<String, u64>) {
        self.hosts[ix].units = Units::new(&resources);
        self.hosts[ix].resources = resources.into_iter().map(|(name, all)| (name, (all, 0))).collect();
    }

    /// Hosts on which the task could never start.
    pub(crate) fn too_small(&self, task: &Task) -> Vec<HostIx> {
        let memory = task.memory.unwrap_or(0);
        if memory == 0 && task.resources.is_empty() {
            return Vec::new();
        }
        let has = |h: &Host, name: &str| h.resources.get(name).map_or(0, |(all, _)| *all);
        let small = |h: &Host| {
            (h.facts.memory_bytes > 0 && h.facts.memory_bytes < memory)
                || task.resources.iter().any(|(name, wanted)| has(h, name) < *wanted)
        };
        (0..self.hosts.len()).filter(|ix| small(&self.hosts[*ix])).collect()
    }

    /// What is free there: bytes of memory, then of each resource in the order of `names`. Memory is free by the last
    /// sample, and by what running tasks declared, which they may not have touched when it was taken.
    pub(crate) fn room(&self, ix: HostIx, names: &[String]) -> Vec<u64> {
        let host = &self.hosts[ix];
        let unclaimed = match host.facts.memory_bytes {
            0 => u64::MAX,
            all => all.saturating_sub(host.claimed),
        };
        let memory = host.mem_available.unwrap_or(u64::MAX).min(unclaimed);
        let free = |name: &String| host.resources.get(name).map_or(0, |(all, taken)| all.saturating_sub(*taken));
        [memory].into_iter().chain(names.iter().map(free)).collect()
    }

    /// A task starts there: the variables that tell which units of resources are its own.
    pub(crate) fn take_units(&mut self, ix: HostIx, task: &Task) -> Vec<(String, String)> {
        self.hosts[ix].units.take(task.id, &task.resources)
    }

    /// A task has ended there.
    pub(crate) fn give_units_back(&mut self, ix: HostIx, task: TaskId) {
        self.hosts[ix].units.give_back(task);
    }

    /// A task starts (`true`) or has ended.
    pub(crate) fn claim(&mut self, ix: HostIx, task: &Task, starts: bool) {
        let changed = |now: u64, by: u64| if starts { now.saturating_add(by) } else { now.saturating_sub(by) };
        let host = &mut self.hosts[ix];
        host.claimed = changed(host.claimed, task.memory.unwrap_or(0));
        for (name, by) in &task.resources {
            host.resources.entry(name.clone()).and_modify(|(_, taken)| *taken = changed(*taken, *by));
        }
    }

    /// Slots that may still be filled, with what may be sent ahead.
    pub(crate) fn credit(&self, ix: HostIx, ahead: bool) -> u32 {
        let host = &self.hosts[ix];
        let slots = host.slots.min(host.granted.unwrap_or(host.slots));
        // What is sent ahead would start as soon as a task ends whose slot is to be given back.
        let extra = if ahead && slots == host.slots { prefetch(host.slots, host.mean_us) } else { 0 };
        (slots + extra).saturating_sub(host.used)
    }

    /// So many of its slots are the run's, until it is told another number.
    pub(crate) fn grant(&mut self, ix: HostIx, slots: u32) {
        self.hosts[ix].granted = Some(slots);
    }

    /// Slots that it has, and of these those in use.
    pub(crate) fn slots_of(&self, ix: HostIx) -> (u32, u32) {
        (self.hosts[ix].slots, self.hosts[ix].used)
    }

    /// A host of whose slots others have some, and all that the run may use are in use: how many these are.
    pub(crate) fn crowded(&self) -> Option<(&str, u32, u32)> {
        let few = |h: &&Host| h.up && h.granted.is_some_and(|granted| granted < h.slots && h.used >= granted);
        self.hosts.iter().find(few).map(|h| (h.name.as_str(), h.granted.unwrap_or(0), h.slots))
    }

    pub(crate) fn take_slot(&mut self, ix: HostIx, ticket: u64, cpus: u32) -> u32 {
        let host = &mut self.hosts[ix];
        host.used += cpus;
        // Sent ahead of a free slot: the number only has to be one of the host's.
        let slot = host.free_slots.pop_first().unwrap_or((ticket % u64::from(host.slots.max(1))) as u32 + 1);
        host.slot_of.insert(ticket, slot);
        host.newest = Some((ticket, 0));
        slot
    }

    pub(crate) fn release(&mut self, ix: HostIx, ticket: u64, cpus: u32) {
        let host = &mut self.hosts[ix];
        host.used = host.used.saturating_sub(cpus);
        host.newest = host.newest.filter(|(newest, _)| *newest != ticket);
        if let Some(slot) = host.slot_of.remove(&ticket)
            && !host.slot_of.values().any(|other| *other == slot)
        {
            host.free_slots.insert(slot);
        }
    }

    pub(crate) fn learn(&mut self, ix: HostIx, wall_us: u64) {
        let mean = &mut self.hosts[ix].mean_us;
        *mean = if *mean == 0.0 { wall_us as f64 } else { 0.8 * *mean + 0.2 * wall_us as f64 };
    }

    pub(crate) fn sampled(&mut self, ix: HostIx, sample: &HostSample) {
        let host = &mut self.hosts[ix];
        (host.mem_available, host.r1m) = (sample.mem_available, sample.r1m);
        host.newest = host.newest.map(|(ticket, samples)| (ticket, samples + 1));
    }
}

fn sees(host: &HostFacts, volume: &Mount) -> bool {
    host.mounts.iter().any(|mount| same_volume(mount, volume))
}

/// How many tasks may be sent ahead to a host with `slots` slots whose tasks take `mean_us`.
fn prefetch(slots: u32, mean_us: f64) -> u32 {
    if mean_us <= 0.0 || mean_us > PREFETCH_US {
        return 0;
    }
    (f64::from(slots) * (PREFETCH_US / mean_us).min(PREFETCH_MOST)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_names_meet_hosts_by_any_alias() {
        let mut hosts = Hosts::default();
        let facts =
            HostFacts { hostname: "node3.lab".into(), aliases: vec!["10.0.0.3".into()], ..HostFacts::default() };
        hosts.up(0, "n3", 2, facts);
        for name in ["n3", "NODE3", "node3.lab", "10.0.0.3"] {
            assert_eq!(hosts.find(name), Some(0), "{name}");
        }
        assert_eq!(hosts.find("10.0.0.4"), None);
        assert_eq!(hosts.find("node3.there"), None, "another domain");
        hosts.same(&["node3.there".into(), "10.0.0.3".into()]);
        assert_eq!(hosts.find("node3.there"), Some(0), "its address");
    }
}
