//! What runs have read over the network, and what another layout of it would bring. Pure: from records of tasks and the
//! layout of their files to folders and predictions.

mod change;
mod evidence;
mod hot;
mod predict;
mod recorded;

pub use change::{Advice, Change, Site, advice};
pub use evidence::{Price, Told, as_json, text};
pub use hot::{Folder, hot};
pub use predict::{Outcome, predict};
pub use recorded::Recorded;

use homing_model::FileLayout;

/// What is looked at.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The files that tasks have read, as they lie now.
    pub files: Vec<FileLayout>,
    /// The runs of these tasks.
    pub runs: Vec<Run>,
}

/// A run that has ended.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Its hosts.
    pub hosts: Vec<Worker>,
    /// Its tasks that ended well.
    pub tasks: Vec<Done>,
    /// From its first record to its last, microseconds.
    pub us: u64,
}

/// A host of a run.
#[derive(Clone, Debug)]
pub struct Worker {
    /// By the name that storage hosts have, too.
    pub name: String,
    /// Tasks at once.
    pub slots: u32,
    /// Rate of its link, bytes per second; `None` where that is not known.
    pub link: Option<u64>,
}

/// A task that ended well.
#[derive(Clone, Debug)]
pub struct Done {
    /// Where, an index of the run's hosts.
    pub host: usize,
    /// Wall time, microseconds.
    pub wall_us: u64,
    /// Bytes of its inputs that were on its host, by their layout then.
    pub local: u64,
    /// Those that were not.
    pub remote: u64,
    /// Its inputs, indices of the files.
    pub files: Vec<usize>,
}

impl Seen {
    /// Bytes that were read at home and over the network.
    pub fn bytes(&self) -> (u64, u64) {
        let tasks = || self.runs.iter().flat_map(|run| &run.tasks);
        (tasks().map(|task| task.local).sum(), tasks().map(|task| task.remote).sum())
    }
}
