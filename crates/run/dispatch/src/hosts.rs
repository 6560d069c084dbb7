//! The hosts of a run: names, used slots, and the volumes that they have mounted.

use homing_lease::UnitWish;
use homing_model::hostname::{HostIndex, spelled};
use homing_model::resource::{MOST_UNITS, PARTS};
use homing_model::{HostFacts, HostSample, Mount, Task};
use homing_mounts::same_volume;
use homing_place::HostIx;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The index of a network volume that tasks of this run use.
pub type VolumeIx = usize;

/// The samples after a start that show its memory use. The first one may have been on its way before the start.
const SETTLED: u32 = 2;

/// The work that is sent in advance per slot, as time. It bridges one round trip, and as a time it never binds long
/// tasks early.
const PREFETCH_US: f64 = 20_000.0;
const PREFETCH_MOST: f64 = 48.0;

#[derive(Debug)]
struct RunHost {
    name: String,
    facts: HostFacts,
    slots: u32,
    used: u32,
    /// The slots that the run may use now, if other users share them.
    granted: Option<u32>,
    free_slots: BTreeSet<u32>,
    slot_of: HashMap<u64, u32>,
    mean_us: f64,
    mem_available: Option<u64>,
    /// The load average of one minute.
    r1m: Option<f64>,
    /// The load from which no task starts.
    load_most: Option<u32>,
    /// The ticket of the last start while it runs, and the number of samples since.
    newest: Option<(u64, u32)>,
    /// The memory that running tasks declared, bytes.
    claimed: u64,
    /// The amount of each named resource in parts of a unit, and the amount that running tasks use.
    resources: BTreeMap<String, (u64, u64)>,
    /// Whether tasks may be sent to it.
    up: bool,
    /// Whether its worker is connected.
    present: bool,
}

/// All hosts that were ever up in this run, by index.
#[derive(Debug, Default)]
pub struct Hosts {
    hosts: Vec<RunHost>,
    names: HostIndex,
    /// Names and addresses, one group per machine, as this machine resolves them, in one spelling.
    resolved: Vec<Vec<String>>,
    groups: HostIndex,
    volumes: Vec<Mount>,
    /// For each volume, the hosts that do not have it mounted.
    without: Vec<Vec<HostIx>>,
    told: HashSet<(HostIx, VolumeIx)>,
    /// The hosts that are up, and their slots. Kept as counts, to avoid a pass over ten thousand hosts for one task.
    ups: usize,
    slots_up: u32,
}

impl Hosts {
    /// Adds a host that answered. `ix` counts from 0 in order of arrival.
    pub fn up(&mut self, ix: HostIx, name: &str, slots: u32, facts: HostFacts) {
        assert_eq!(ix, self.hosts.len(), "hosts are numbered in order of arrival");
        let names = facts.aliases.iter().map(String::as_str).chain([facts.hostname.as_str(), name]);
        // If a lost host came back, its name means the new entry.
        self.names.add_over(ix, names, |old| self.hosts.get(old).is_some_and(|old| !old.up));
        self.ups += 1;
        self.slots_up += slots;
        for (volume, without) in self.volumes.iter().zip(&mut self.without) {
            without.extend((!sees(&facts, volume)).then_some(ix));
        }
        self.hosts.push(RunHost {
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
            up: true,
            present: true,
            facts,
        });
    }

    /// Stops sending tasks to a host. Returns false if none were sent before either.
    pub(crate) fn down(&mut self, ix: HostIx) -> bool {
        let was_up = std::mem::replace(&mut self.hosts[ix].up, false);
        if was_up {
            self.ups -= 1;
            self.slots_up -= self.hosts[ix].slots;
        }
        was_up
    }

    /// Records that its worker is gone. Returns false if it was gone already.
    pub(crate) fn leave(&mut self, ix: HostIx) -> bool {
        self.down(ix);
        std::mem::replace(&mut self.hosts[ix].present, false)
    }

    pub(crate) fn is_up(&self, ix: HostIx) -> bool {
        self.hosts[ix].up
    }

    /// Returns the name by which the user knows it.
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

    /// Returns the slots of all hosts that are up.
    pub fn slots(&self) -> u32 {
        self.slots_up
    }

    /// Returns the free slots of hosts that are up.
    pub(crate) fn free_slots(&self) -> u32 {
        self.hosts.iter().filter(|h| h.up).map(|h| h.slots.saturating_sub(h.used)).sum()
    }

    /// Returns the host of the run with this name or address of a storage host.
    pub fn find(&self, storage_host: &str) -> Option<HostIx> {
        let by_address = || self.names_of(storage_host).iter().find_map(|other| self.names.find(other));
        self.names.find(storage_host).or_else(by_address)
    }

    /// Adds all names and addresses of one machine, which may be a host of the run or not.
    pub(crate) fn same(&mut self, names: &[String]) {
        self.groups.add(self.resolved.len(), names.iter().map(String::as_str));
        self.resolved.push(names.iter().map(|name| spelled(name)).collect());
    }

    /// Returns all names of a machine, including this one, in one spelling.
    pub(crate) fn names_of(&self, name: &str) -> Vec<String> {
        self.groups.find(name).map_or_else(|| vec![spelled(name)], |group| self.resolved[group].clone())
    }

    /// Converts bytes by storage host to bytes by host of this run.
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

    /// Returns the rate of the slowest link that a host reported, bytes per second.
    pub(crate) fn slowest_link(&self) -> Option<u64> {
        self.hosts.iter().filter(|h| h.up).filter_map(|h| h.facts.nic_bytes_per_s).min()
    }

    /// Returns the hosts that are up.
    pub(crate) fn all_up(&self) -> Vec<HostIx> {
        (0..self.hosts.len()).filter(|ix| self.hosts[*ix].up).collect()
    }

    /// Returns each pair of a host and a volume that the host does not have mounted.
    pub(crate) fn blind(&self, volumes: &[VolumeIx]) -> Vec<(HostIx, VolumeIx)> {
        let pairs = volumes.iter().flat_map(|volume| self.without[*volume].iter().map(|host| (*host, *volume)));
        let mut pairs: Vec<(HostIx, VolumeIx)> = pairs.collect();
        pairs.sort_unstable();
        pairs
    }

    /// Returns the reason why a host is unfit for a volume, the first time only.
    pub(crate) fn unfit_once(&mut self, host: HostIx, volume: VolumeIx) -> Option<String> {
        let mount = &self.volumes[volume];
        self.told
            .insert((host, volume))
            .then(|| format!("{} is not mounted at {}", mount.source.display(), mount.point.display()))
    }

    /// Returns the hosts that may receive a task. The order is by free slots in relation to their size, the largest
    /// part first.
    pub(crate) fn by_free_share(&self, ahead: bool) -> Vec<HostIx> {
        let may = |ix: &HostIx| self.hosts[*ix].up && self.credit(*ix, ahead) > 0;
        let mut order: Vec<HostIx> = (0..self.hosts.len()).filter(may).collect();
        order.sort_by_key(|ix| {
            let host = &self.hosts[*ix];
            u64::from(host.used) * 1_000_000 / u64::from(host.slots.max(1))
        });
        order
    }

    /// Sets the load from which the host starts nothing, in the words of `--jobs`.
    pub(crate) fn bounded(&mut self, ix: HostIx, load: Option<&str>) {
        let host = &mut self.hosts[ix];
        host.load_most = load.and_then(|text| homing_batch::jobs("--load", text, host.facts.cores).ok());
    }

    /// Returns the hosts with a free slot that start nothing because of their load average, with that average.
    pub(crate) fn loaded(&self) -> Vec<(&str, f64)> {
        let free = self.hosts.iter().filter(|h| h.up && h.used < h.slots);
        let too_much = |h: &RunHost| h.r1m.filter(|r1m| h.load_most.is_some_and(|most| *r1m >= f64::from(most)));
        free.filter_map(|h| Some((h.name.as_str(), too_much(h)?))).collect()
    }

    /// Whether `memfree` bytes are available there after the last start has taken its memory, and the load is below
    /// the limit. Load averages follow slowly, so tasks of the run count at once, as with `make -l`.
    pub(crate) fn may_start(&self, ix: HostIx, memfree: u64) -> bool {
        let host = &self.hosts[ix];
        let below = |most: u32| host.r1m.is_some_and(|r1m| r1m.max(f64::from(host.used)) < f64::from(most));
        if !host.load_most.is_none_or(below) {
            return false;
        }
        let settled = host.newest.is_none_or(|(_, samples)| samples >= SETTLED);
        memfree == 0 || settled && host.mem_available.is_some_and(|available| available >= memfree)
    }

    /// Returns the hosts with a free slot and less than `memfree` bytes available, with their available bytes.
    pub(crate) fn short_of(&self, memfree: u64) -> Vec<(&str, u64)> {
        let free = self.hosts.iter().filter(|h| h.up && h.used < h.slots);
        free.filter_map(|h| Some((h.name.as_str(), h.mem_available.filter(|a| *a < memfree)?))).collect()
    }

    /// Sets the amount of each named resource.
    pub(crate) fn offers(&mut self, ix: HostIx, resources: BTreeMap<String, u64>) {
        self.hosts[ix].resources = resources.into_iter().map(|(name, all)| (name, (all, 0))).collect();
    }

    /// Returns the hosts on which the task can never start.
    pub(crate) fn too_small(&self, task: &Task) -> Vec<HostIx> {
        let memory = task.memory.unwrap_or(0);
        if memory == 0 && task.resources.is_empty() {
            return Vec::new();
        }
        let has = |h: &RunHost, name: &str| h.resources.get(name).map_or(0, |(all, _)| *all);
        let small = |h: &RunHost| {
            (h.facts.memory_bytes > 0 && h.facts.memory_bytes < memory)
                || task.resources.iter().any(|(name, wanted)| has(h, name) < *wanted)
        };
        (0..self.hosts.len()).filter(|ix| small(&self.hosts[*ix])).collect()
    }

    /// Returns the free amounts: bytes of memory, then each resource in the order of `names`. Free memory is the
    /// lower of two values: the last sample, and the memory that running tasks have not declared. Tasks may use their
    /// declared memory only after the sample.
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

    /// Returns the units that a task takes of a host. Its worker leases them: the tasks of other runs may have some.
    pub(crate) fn units_of(&self, ix: HostIx, task: &Task) -> Vec<UnitWish> {
        let wish = |(name, parts): &(String, u64)| {
            let all = self.hosts[ix].resources.get(name)?.0 / PARTS;
            (all <= MOST_UNITS && *parts > 0).then(|| UnitWish { name: name.clone(), parts: *parts, all })
        };
        task.resources.iter().filter_map(wish).collect()
    }

    /// Returns the largest amount of a resource on a host that is up, in parts of a unit.
    pub(crate) fn most_of(&self, name: &str) -> u64 {
        let amounts = self.hosts.iter().filter(|host| host.up).filter_map(|host| host.resources.get(name));
        amounts.map(|(all, _)| *all).max().unwrap_or(0)
    }

    /// Returns the memory of the host that has most, among those that are up, in bytes. `None` if that of one is
    /// unknown.
    pub(crate) fn most_memory(&self) -> Option<u64> {
        let up = self.hosts.iter().filter(|host| host.up).map(|host| host.facts.memory_bytes);
        up.map(|bytes| (bytes > 0).then_some(bytes)).collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// Counts a task that starts (`true`) or has ended.
    pub(crate) fn claim(&mut self, ix: HostIx, task: &Task, starts: bool) {
        let changed = |now: u64, by: u64| if starts { now.saturating_add(by) } else { now.saturating_sub(by) };
        let host = &mut self.hosts[ix];
        host.claimed = changed(host.claimed, task.memory.unwrap_or(0));
        for (name, by) in &task.resources {
            host.resources.entry(name.clone()).and_modify(|(_, taken)| *taken = changed(*taken, *by));
        }
    }

    /// Returns the slots that may still be filled, including tasks sent in advance.
    pub(crate) fn credit(&self, ix: HostIx, ahead: bool) -> u32 {
        let host = &self.hosts[ix];
        let slots = host.slots.min(host.granted.unwrap_or(host.slots));
        // A task sent in advance would start as soon as a task ends whose slot must be returned.
        let extra = if ahead && slots == host.slots { prefetch(host.slots, host.mean_us) } else { 0 };
        (slots + extra).saturating_sub(host.used)
    }

    /// Sets how many of its slots the run may use, until the next call.
    pub(crate) fn grant(&mut self, ix: HostIx, slots: u32) {
        self.hosts[ix].granted = Some(slots);
    }

    /// Returns its slots, and how many of them are in use.
    pub(crate) fn slots_of(&self, ix: HostIx) -> (u32, u32) {
        (self.hosts[ix].slots, self.hosts[ix].used)
    }

    /// Returns a host whose remaining slots others use while the run uses all of its own: the name, the run's slots,
    /// all slots.
    pub(crate) fn crowded(&self) -> Option<(&str, u32, u32)> {
        let few = |h: &&RunHost| h.up && h.granted.is_some_and(|granted| granted < h.slots && h.used >= granted);
        self.hosts.iter().find(few).map(|h| (h.name.as_str(), h.granted.unwrap_or(0), h.slots))
    }

    pub(crate) fn take_slot(&mut self, ix: HostIx, ticket: u64, cpus: u32) -> u32 {
        let host = &mut self.hosts[ix];
        host.used += cpus;
        // A task sent before a slot is free needs any slot number of the host.
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

/// Returns how many tasks may be sent in advance to a host with `slots` slots whose tasks take `mean_us`.
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
