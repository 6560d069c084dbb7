//! Counts the tasks that use each storage, and limits them. A storage is the disks of a host of the run, or a server
//! that is not a host of the run.

use homing_admit::{AdmissionSettings, Controller, LimitChange, TaskLoad};
use homing_model::StorageSample;
use homing_place::{HostIx, Placed, Reason, ServerIx, Storage};

/// The source of a storage's limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// From measurements.
    #[default]
    Auto,
    /// The limit that the user gave.
    Fixed(u32),
    /// No limit besides the slots.
    Off,
}

/// The inputs of a task, as far as they matter to storage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reads {
    /// The bytes of the inputs.
    pub bytes: u64,
    /// Whether they are read through a network file system. The kernel counts no disk for the client of one.
    pub network: bool,
}

/// A task reads its inputs more than once if its read calls exceed this multiple of the inputs' bytes. `A_LITTLE` is
/// added for the files of its program, bytes.
const MORE_THAN_ONCE: f64 = 1.75;
const A_LITTLE: u64 = 4 << 20;

#[derive(Debug)]
struct Gate {
    slots: u32,
    controller: Option<Controller>,
    /// Whether the journal has a limit of it. Also true if the limit is reached and will be journalled as soon as
    /// tasks wait.
    told: bool,
    /// The limit by the leases that all runs share; `None` without leases.
    leased: Option<u32>,
    /// The administrator's limit for all runs.
    site: Option<u32>,
    in_flight: u32,
    /// The bytes of the running tasks' inputs, and the number of these tasks that read over a network file system.
    bytes: u64,
    network: u32,
    task_us: f64,
}

/// The storage that serves a task's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StorageIx {
    /// The disks of a host of the run.
    Host(HostIx),
    /// A server that is not a host of the run.
    Server(ServerIx),
}

/// The storage of each host of the run and of each server, by index.
#[derive(Debug)]
pub(crate) struct Admission {
    io: Io,
    gates: Vec<Gate>,
    servers: Vec<Gate>,
    /// Storages whose limit was reached and is not in the journal yet.
    untold: Vec<StorageIx>,
    /// The largest input of a task so far, bytes.
    largest: u64,
    /// Whether tasks of this run read their data more than once, if it is known.
    again: Option<bool>,
}

/// Returns the storage that a placed task reads.
pub(crate) fn storage_of(host: HostIx, placed: &Placed) -> StorageIx {
    match (placed.need.server, &placed.why) {
        (Some(server), _) if placed.need.reads() => StorageIx::Server(server),
        (_, Reason::Fetches { from, .. }) => StorageIx::Host(*from),
        _ => StorageIx::Host(host),
    }
}

impl Admission {
    pub fn new(io: Io) -> Admission {
        Admission { io, gates: vec![], servers: vec![], untold: vec![], largest: 0, again: None }
    }

    /// Sets another limit from now on.
    #[cfg(test)]
    pub fn set(&mut self, io: Io) {
        self.io = io;
    }

    /// Adds a host with `slots` of its own. `most` are the slots of all hosts.
    pub fn host_up(&mut self, slots: u32, most: u32, learnt: Option<u32>) {
        self.gates.push(self.opened(slots, most, learnt));
    }

    /// Sets the slots of all hosts of the run.
    pub fn set_most(&mut self, most: u32) {
        let all = self.gates.iter_mut().chain(&mut self.servers);
        all.filter_map(|g| g.controller.as_mut()).for_each(|c| c.set_most(most));
    }

    /// Adds a server that any of the run's `most` slots may read from.
    pub fn server_up(&mut self, most: u32, learnt: Option<u32>) {
        self.servers.push(self.opened(u32::MAX, most, learnt));
    }

    /// Sets the administrator's limit.
    pub fn site_says(&mut self, storage: StorageIx, limit: Option<u32>) {
        self.gate_mut(storage).site = limit;
    }

    /// Sets the limit of this run by the leases. `None`: no other run is known to use the storage.
    pub fn leased(&mut self, storage: StorageIx, may_use: Option<u32>) {
        self.gate_mut(storage).leased = may_use;
    }

    /// Whether the administrator has set a limit.
    pub fn has_site_limit(&self, storage: StorageIx) -> bool {
        self.gate(storage).site.is_some()
    }

    /// Returns the number of this run's tasks there.
    pub fn in_flight(&self, storage: StorageIx) -> u32 {
        self.gate(storage).in_flight
    }

    /// Returns the limit of this run alone, without the leases of other runs.
    pub fn own_limit(&self, storage: StorageIx) -> Option<u32> {
        let gate = self.gate(storage);
        let own = match self.io {
            Io::Auto => gate.controller.as_ref().and_then(Controller::limit),
            Io::Fixed(limit) => Some(limit.max(1)),
            Io::Off => None,
        };
        [own, gate.site].into_iter().flatten().min()
    }

    fn opened(&self, slots: u32, most: u32, learnt: Option<u32>) -> Gate {
        let settings = AdmissionSettings { most, open_at: slots, learnt };
        let controller = (self.io == Io::Auto).then(|| Controller::new(settings));
        let told = controller.is_some() && learnt.is_some();
        Gate { slots, controller, told, leased: None, site: None, in_flight: 0, bytes: 0, network: 0, task_us: 0.0 }
    }

    fn gate(&self, storage: StorageIx) -> &Gate {
        match storage {
            StorageIx::Host(host) => &self.gates[host],
            StorageIx::Server(server) => &self.servers[server],
        }
    }

    fn gate_mut(&mut self, storage: StorageIx) -> &mut Gate {
        match storage {
            StorageIx::Host(host) => &mut self.gates[host],
            StorageIx::Server(server) => &mut self.servers[server],
        }
    }

    /// Returns the limit in force; `None` if storage does not limit.
    pub fn limit(&self, storage: StorageIx) -> Option<u32> {
        [self.own_limit(storage), self.gate(storage).leased].into_iter().flatten().min()
    }

    /// Whether limits come from measurements.
    pub fn is_auto(&self) -> bool {
        self.io == Io::Auto
    }

    /// Returns the limit that the controller of `storage` found, for the next run.
    pub fn lesson(&self, storage: StorageIx) -> Option<u32> {
        self.gate(storage).controller.as_ref().and_then(Controller::lesson)
    }

    pub fn is_full(&self, storage: StorageIx) -> bool {
        self.limit(storage).is_some_and(|limit| self.gate(storage).in_flight >= limit)
    }

    /// Returns the limits of this run's own that are reached and not reported yet, each once.
    pub fn take_first(&mut self) -> Vec<(StorageIx, u32)> {
        let reached = std::mem::take(&mut self.untold);
        let first = reached.into_iter().filter_map(|storage| {
            let limit = self.reached(storage);
            self.gate_mut(storage).told = limit.is_some();
            Some((storage, limit?))
        });
        first.collect()
    }

    /// Returns the storages that no task uses and whose limit the journal has, each once.
    pub fn take_unused(&mut self) -> Vec<StorageIx> {
        let hosts = (0..self.gates.len()).map(StorageIx::Host);
        let all: Vec<StorageIx> = hosts.chain((0..self.servers.len()).map(StorageIx::Server)).collect();
        let unused = |storage: &StorageIx| self.gate(*storage).told && self.in_flight(*storage) == 0;
        let unused: Vec<StorageIx> = all.into_iter().filter(unused).collect();
        unused.iter().for_each(|storage| self.gate_mut(*storage).told = false);
        let written = unused.iter().copied().filter(|storage| !self.untold.contains(storage)).collect();
        self.untold.retain(|untold| !unused.contains(untold));
        written
    }

    fn reached(&self, storage: StorageIx) -> Option<u32> {
        self.own_limit(storage).filter(|limit| self.in_flight(storage) >= *limit)
    }

    /// Returns how many more tasks it takes.
    pub fn room(&self, storage: StorageIx) -> Storage {
        match self.limit(storage) {
            Some(_) if self.is_full(storage) => Storage::Full,
            Some(limit) if limit < self.gate(storage).slots => Storage::Scarce,
            _ => Storage::Open,
        }
    }

    /// Counts a started task.
    pub fn started(&mut self, storage: StorageIx, reads: Reads) {
        let gate = self.gate_mut(storage);
        gate.in_flight += 1;
        gate.bytes += reads.bytes;
        gate.network += u32::from(reads.network);
        self.largest = self.largest.max(reads.bytes);
        if !self.gate(storage).told && self.reached(storage).is_some() {
            self.gate_mut(storage).told = true;
            self.untold.push(storage);
        }
    }

    /// Learns from the read calls of an ended task, in bytes, without the bytes that it wrote itself.
    pub fn record_reads(&mut self, reads: Reads, asked: u64) {
        if reads.bytes > 0 {
            self.again = Some(self.again == Some(true) || is_again(asked, reads.bytes));
        }
    }

    /// Counts an ended attempt. `wall_us` is 0 if it is no measure.
    pub fn ended(&mut self, storage: StorageIx, reads: Reads, wall_us: u64) {
        let gate = self.gate_mut(storage);
        gate.in_flight = gate.in_flight.saturating_sub(1);
        gate.bytes = gate.bytes.saturating_sub(reads.bytes);
        gate.network = gate.network.saturating_sub(u32::from(reads.network));
        if wall_us > 0 {
            let weight = if gate.task_us == 0.0 { 1.0 } else { 0.2 };
            gate.task_us += weight * (wall_us as f64 - gate.task_us);
        }
    }

    /// Passes a pulse of the storage to its controller, and returns a changed limit.
    pub fn pulse(&mut self, storage: StorageIx, pulse: &StorageSample, waiting: usize) -> Option<LimitChange> {
        if self.largest > 0 && is_again(pulse.longest, self.largest) {
            self.again = Some(true);
        }
        let again = self.again;
        let gate = self.gate_mut(storage);
        let load = TaskLoad {
            in_flight: gate.in_flight,
            waiting,
            inputs: gate.bytes,
            task_us: gate.task_us as u64,
            again,
            network: gate.network > 0,
        };
        let change = gate.controller.as_mut()?.observe(pulse, &load)?;
        gate.told = true;
        self.untold.retain(|untold| *untold != storage);
        Some(change)
    }
}

fn is_again(asked: u64, inputs: u64) -> bool {
    asked > (inputs as f64 * MORE_THAN_ONCE) as u64 + A_LITTLE
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: StorageIx = StorageIx::Host(0);

    fn admission() -> Admission {
        let mut admission = Admission::new(Io::Auto);
        admission.host_up(8, 8, None);
        admission
    }

    #[test]
    fn a_task_that_ends_tells_whether_data_is_read_again() {
        let reads = Reads { bytes: 100 << 20, network: false };
        let mut admission = admission();
        assert_eq!(admission.again, None);
        admission.record_reads(reads, 104 << 20);
        assert_eq!(admission.again, Some(false));
        admission.record_reads(reads, 200 << 20);
        admission.record_reads(reads, 100 << 20);
        assert_eq!(admission.again, Some(true), "one that does is enough");
        admission.record_reads(Reads { bytes: 0, ..reads }, 1 << 40);
    }

    #[test]
    fn one_that_runs_tells_it_too() {
        let mut admission = admission();
        let pulse = |longest| StorageSample { longest, ..StorageSample::default() };
        admission.pulse(HERE, &pulse(1 << 40), 1);
        assert_eq!(admission.again, None, "no task has inputs");
        admission.started(HERE, Reads { bytes: 100 << 20, network: false });
        admission.pulse(HERE, &pulse(170 << 20), 1);
        assert_eq!(admission.again, None, "a file, and what its program reads");
        admission.pulse(HERE, &pulse(190 << 20), 1);
        assert_eq!(admission.again, Some(true));
    }

    #[test]
    fn what_ended_needs_no_room() {
        let reads = Reads { bytes: 100, network: true };
        let mut admission = admission();
        admission.started(HERE, reads);
        admission.started(HERE, reads);
        admission.ended(HERE, reads, 0);
        assert_eq!((admission.gates[0].bytes, admission.gates[0].network), (100, 1));
        admission.ended(HERE, reads, 5);
        assert_eq!((admission.gates[0].bytes, admission.gates[0].network), (0, 0));
    }
}
