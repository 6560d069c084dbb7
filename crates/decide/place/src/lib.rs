//! Decides which task runs next on a host that has a free slot.
//!
//! Pure: no clock, no I/O, no randomness; time comes in as a number. Hosts are
//! indices. A task belongs where most bytes of its inputs lie. It goes
//! elsewhere only when fetching them costs less than the expected wait there:
//! a fixed waiting time (Spark's `locality.wait`, SPARK-18886) piles short
//! tasks on one host, a comparison of costs does not.
//!
//! Main types: `Placer` picks a task for a free slot and gives the reason; `simulate` plays a whole run for `homing plan`.
//!
//! It does not: limit the tasks at one storage server (`admit`), or start them (`dispatch`).

mod awaited;
mod burden;
mod choose;
mod class;
mod cost;
mod fetch;
mod flow;
mod groups;
mod host;
mod lint;
mod mean;
mod placer;
mod plan;
mod reason;
mod searches;
mod simulate;
mod way;

pub use awaited::Awaited;
pub use host::Storage;
pub use lint::{Complaint, lint};
pub use placer::Placer;
pub use plan::{HostModel, Planned};
pub use reason::Reason;
pub use simulate::{replay, simulate};

use homing_model::{Links, TaskId};

/// A host of the run, in the order of [`Placer::host_up`].
pub type HostIx = usize;

/// A storage server that is no host of the run, numbered by the caller from 0.
pub type ServerIx = usize;

/// What a task needs, as far as placement cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Bytes of all inputs on volumes.
    pub total: u64,
    /// Bytes that a host could read from its own disks. Only hosts of the run.
    pub per_host: Vec<(HostIx, u64)>,
    /// Of hosts that hold as much of them, the one whose caches are warm, since it wrote them.
    pub writer: Option<HostIx>,
    /// Slots that it occupies, at least 1.
    pub cpus: u32,
    /// `total` and `per_host` are a guess about where it is at home; it may read nothing there.
    pub guessed: bool,
    /// Where no host of the run holds any of its bytes: the server that every host reads them from.
    pub server: Option<ServerIx>,
    /// What it takes of each kind of room that its host has, in the order of [`Placer::set_room`]; empty: none.
    pub takes: Vec<u64>,
    /// Of a task that names no inputs: what kind of command it is, below [`MOST_KINDS`]; else 0.
    pub kind: u8,
}

/// Kinds of commands that placement tells apart.
pub const MOST_KINDS: u8 = 16;

impl Default for Need {
    /// No input, one slot.
    fn default() -> Self {
        Need {
            total: 0,
            per_host: Vec::new(),
            writer: None,
            cpus: 1,
            guessed: false,
            server: None,
            takes: Vec::new(),
            kind: 0,
        }
    }
}

impl Need {
    /// Bytes that lie on `host`.
    pub fn local(&self, host: HostIx) -> u64 {
        let bytes = self.per_host.iter().filter(|(at, _)| *at == host).map(|(_, bytes)| bytes).sum::<u64>();
        bytes.min(self.total)
    }

    /// Whether it is known beforehand to press the storage that holds its inputs. Such tasks wait
    /// for a limit, and those of kinds that were seen to move bytes: [`Placer::set_moves`].
    pub fn reads(&self) -> bool {
        self.total > 0 && !self.guessed
    }

    /// Bytes that `host` would have to fetch.
    pub fn remote(&self, host: HostIx) -> u64 {
        self.total - self.local(host)
    }
}

/// What a run decides once.
#[derive(Clone, Debug)]
pub struct Params {
    /// Rate of a host's link as long as nothing better is known, bytes per second.
    pub default_bytes_per_s: f64,
    /// What is known of the links between hosts: which holder is near, and how many fetches cross a link at once.
    pub links: Links,
    /// `false` takes hosts in turn, whatever lies where: the control of an experiment.
    pub locality: bool,
}

impl Default for Params {
    /// Half of 1 Gbit/s less its framing: an adapter that tells no rate is a virtual one, whose link is
    /// shared or limited somewhere else. A first fetch that turns out slower than it promised is often
    /// the end of a batch for which all wait. Locality on.
    fn default() -> Self {
        Params { default_bytes_per_s: 58.5e6, links: Links::default(), locality: true }
    }
}

/// A task that shall start now.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The task.
    pub task: TaskId,
    /// What was said of it when it was added, to add it again after a failure.
    pub need: Need,
    /// Bytes of its inputs on the host.
    pub local: u64,
    /// Bytes to fetch.
    pub remote: u64,
    /// Why here.
    pub why: Reason,
}
