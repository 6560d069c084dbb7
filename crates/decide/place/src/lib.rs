//! Decides which task runs next on a host that has a free slot.
//!
//! Pure: no clock, no I/O, no randomness; time is an argument. Hosts are indices. A task belongs where most bytes of
//! its inputs lie. It runs elsewhere only if fetching them costs less than the expected wait there. A fixed waiting
//! time (Spark's `locality.wait`, SPARK-18886) piles short tasks on one host; a comparison of costs does not.
//!
//! Main types: `Placer` picks a task for a free slot and gives the reason; `simulate` plays a whole run for `homing
//! plan`.
//!
//! It does not: limit the tasks at one storage server (`admit`), or start them (`dispatch`).

mod awaited;
mod choose;
mod class;
mod cost;
mod fetch;
mod flow;
mod groups;
mod host;
mod lint;
mod mean;
mod near;
mod placer;
mod plan;
mod reason;
mod searches;
mod serving_cost;
mod simulate;
mod way;

pub use awaited::Awaited;
pub use host::Storage;
pub use lint::{Complaint, lint};
pub use near::near;
pub use placer::Placer;
pub use plan::{HostModel, Planned};
pub use reason::Reason;
pub use simulate::{replay, simulate};

use homing_model::{ClusterLinks, TaskId};

/// A host of the run, in the order of [`Placer::host_up`].
pub type HostIx = usize;

/// A storage server that is no host of the run, numbered by the caller from 0.
pub type ServerIx = usize;

/// The needs of a task that matter for placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Bytes of all inputs on volumes.
    pub total: u64,
    /// Bytes that a host could read from its own disks, for hosts of the run only.
    pub per_host: Vec<(HostIx, u64)>,
    /// The host whose caches are warm because it wrote the inputs, among hosts that hold as many bytes.
    pub writer: Option<HostIx>,
    /// Slots that it occupies, at least 1.
    pub cpus: u32,
    /// Whether `total` and `per_host` are a guess about its home; it may read nothing there.
    pub guessed: bool,
    /// The server that every host reads its bytes from, if no host of the run holds any of them.
    pub server: Option<ServerIx>,
    /// Its amount of each kind of room of its host, in the order of [`Placer::set_room`]; empty if none.
    pub takes: Vec<u64>,
    /// For a task that names no inputs, the kind of its command, below [`MOST_KINDS`]; else 0.
    pub kind: u8,
}

/// Kinds of commands that placement distinguishes.
pub const MOST_KINDS: u8 = 16;

impl Default for Need {
    /// Needs of a task without input, in one slot.
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
    /// Returns the bytes that lie on `host`.
    pub fn local(&self, host: HostIx) -> u64 {
        let bytes = self.per_host.iter().filter(|(at, _)| *at == host).map(|(_, bytes)| bytes).sum::<u64>();
        bytes.min(self.total)
    }

    /// Whether it is known beforehand to burden the storage that holds its inputs. Such tasks wait for a limit. So do
    /// tasks of kinds that were seen to move bytes: [`Placer::set_moves`].
    pub fn reads(&self) -> bool {
        self.total > 0 && !self.guessed
    }

    /// Returns the bytes that `host` would have to fetch.
    pub fn remote(&self, host: HostIx) -> u64 {
        self.total - self.local(host)
    }
}

/// Parameters that are fixed for a run.
#[derive(Clone, Debug)]
pub struct Params {
    /// Rate of a host's link while its own rate is unknown, bytes per second.
    pub default_bytes_per_s: f64,
    /// Known links between hosts: they decide which holder is near, and how many fetches cross a link at once.
    pub links: ClusterLinks,
    /// Whether locality counts. `false` takes hosts in turn, wherever bytes lie: the control of an experiment.
    pub locality: bool,
}

impl Default for Params {
    /// Half of 1 Gbit/s less its framing. An adapter that reports no rate is a virtual one, whose link is shared or
    /// limited elsewhere. A first fetch that is slower than expected is often the end of a batch for which all wait.
    /// Locality is on.
    fn default() -> Self {
        Params { default_bytes_per_s: 58.5e6, links: ClusterLinks::default(), locality: true }
    }
}

/// A task that is to start now.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The task.
    pub task: TaskId,
    /// The needs that it was added with, to add it again after a failure.
    pub need: Need,
    /// Bytes of its inputs on the host.
    pub local: u64,
    /// Bytes to fetch.
    pub remote: u64,
    /// The reason why it runs here.
    pub why: Reason,
}
