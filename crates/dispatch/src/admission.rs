//! How many tasks use each storage host, and how many may.

use homing_admit::{Change, Controller, Seen, Settings};
use homing_model::Pulse;
use homing_place::{HostIx, Placed, Reason, Storage};

/// How the limit of a storage host comes about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// From what is measured.
    #[default]
    Auto,
    /// As the user says.
    Fixed(u32),
    /// Slots are the only limit.
    Off,
}

#[derive(Debug)]
struct Gate {
    slots: u32,
    controller: Option<Controller>,
    in_flight: u32,
    ended: u64,
    task_us: f64,
}

/// The storage of each host of the run, by index.
#[derive(Debug)]
pub(crate) struct Admission {
    io: Io,
    gates: Vec<Gate>,
}

/// The host whose storage a placed task reads.
pub(crate) fn storage_of(host: HostIx, placed: &Placed) -> HostIx {
    match placed.why {
        Reason::Fetches { from, .. } => from,
        _ => host,
    }
}

impl Admission {
    pub fn new(io: Io) -> Admission {
        Admission { io, gates: Vec::new() }
    }

    /// Another limit from now on.
    #[cfg(test)]
    pub fn set(&mut self, io: Io) {
        self.io = io;
    }

    /// A further host with `slots` of its own; `most` are those of all hosts.
    pub fn host_up(&mut self, slots: u32, cores: u32, most: u32, learnt: Option<u32>) {
        let settings = Settings { most, open_at: slots, cores, learnt };
        let controller = (self.io == Io::Auto).then(|| Controller::new(settings));
        self.gates.push(Gate { slots, controller, in_flight: 0, ended: 0, task_us: 0.0 });
        self.gates.iter_mut().filter_map(|g| g.controller.as_mut()).for_each(|c| c.set_most(most));
    }

    /// The limit in force; `None` when storage does not limit.
    pub fn limit(&self, storage: HostIx) -> Option<u32> {
        match self.io {
            Io::Auto => self.gates[storage].controller.as_ref().and_then(Controller::limit),
            Io::Fixed(limit) => Some(limit.max(1)),
            Io::Off => None,
        }
    }

    /// What the controller of `storage` would have remembered.
    pub fn lesson(&self, storage: HostIx) -> Option<u32> {
        self.gates[storage].controller.as_ref().and_then(Controller::lesson)
    }

    pub fn is_full(&self, storage: HostIx) -> bool {
        self.limit(storage).is_some_and(|limit| self.gates[storage].in_flight >= limit)
    }

    /// How many more it takes.
    pub fn room(&self, storage: HostIx) -> Storage {
        match self.limit(storage) {
            Some(_) if self.is_full(storage) => Storage::Full,
            Some(limit) if limit < self.gates[storage].slots => Storage::Scarce,
            _ => Storage::Open,
        }
    }

    /// How many more than the limit allows are under way there.
    pub fn excess(&self, storage: HostIx) -> u32 {
        self.limit(storage).map_or(0, |limit| self.gates[storage].in_flight.saturating_sub(limit))
    }

    /// A task starts, or goes on after it stood still.
    pub fn started(&mut self, storage: HostIx) {
        self.gates[storage].in_flight += 1;
    }

    /// A task stands still from now on.
    pub fn stands(&mut self, storage: HostIx) {
        self.ended(storage, 0);
    }

    /// An attempt is over; `wall_us` 0 when it is no measure.
    pub fn ended(&mut self, storage: HostIx, wall_us: u64) {
        let gate = &mut self.gates[storage];
        gate.in_flight = gate.in_flight.saturating_sub(1);
        if wall_us > 0 {
            gate.ended += 1;
            let weight = if gate.task_us == 0.0 { 1.0 } else { 0.2 };
            gate.task_us += weight * (wall_us as f64 - gate.task_us);
        }
    }

    /// A pulse of the storage host came; its limit, when it changes.
    pub fn pulse(&mut self, storage: HostIx, pulse: &Pulse, waiting: usize) -> Option<Change> {
        let gate = &mut self.gates[storage];
        let seen = Seen {
            at_us: pulse.at_us,
            io_stall_us: pulse.io_some_us,
            cpu_stall_us: pulse.cpu_some_us,
            looked: pulse.looked,
            stood: pulse.stood,
            moved: pulse.moved,
            slow_us: pulse.slow_us,
            read: pulse.read,
            cached: pulse.cached,
            reread: pulse.reread,
            ended: gate.ended,
            in_flight: gate.in_flight,
            waiting,
            task_us: gate.task_us as u64,
        };
        gate.controller.as_mut()?.observe(&seen)
    }
}
