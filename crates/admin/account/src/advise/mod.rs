//! Finds the bytes that runs have read over the network, and predicts the effect of another layout. Pure: from
//! records of tasks and the layout of their files to folders and predictions.

mod change;
mod evidence;
mod hot;
mod predict;
mod recorded;

pub use change::{AdjustableVolume, Advice, LayoutChange, advice};
pub use evidence::{Price, ReadEvidence, as_json, text};
pub use hot::{HotFolder, hot};
pub use predict::{PredictedCost, predict};
pub use recorded::Recorded;

use homing_model::FileLayout;

/// The evidence.
#[derive(Clone, Debug, Default)]
pub struct AdviceEvidence {
    /// The files that tasks have read, with their present layout.
    pub files: Vec<FileLayout>,
    /// The runs of these tasks.
    pub runs: Vec<FinishedRun>,
}

/// A run that has ended.
#[derive(Clone, Debug, Default)]
pub struct FinishedRun {
    /// Its hosts.
    pub hosts: Vec<Worker>,
    /// Its tasks that ended with status 0.
    pub tasks: Vec<FinishedTask>,
    /// Time from its first record to its last, microseconds.
    pub us: u64,
}

/// A host of a run.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Its name among the storage hosts, if it is one.
    pub name: String,
    /// The most tasks at once.
    pub slots: u32,
    /// Rate of its link, bytes per second; `None` if it is unknown.
    pub link: Option<u64>,
}

/// A task that ended with status 0.
#[derive(Clone, Debug)]
pub struct FinishedTask {
    /// The host where it ran, an index of the run's hosts.
    pub host: usize,
    /// Wall time, microseconds.
    pub wall_us: u64,
    /// Bytes of its inputs that were on its host, by their layout then.
    pub local: u64,
    /// Bytes of its inputs that were not.
    pub remote: u64,
    /// Its inputs, indices of the files.
    pub files: Vec<usize>,
}

impl AdviceEvidence {
    /// Returns the bytes that were read on the tasks' own hosts and over the network.
    pub fn bytes(&self) -> (u64, u64) {
        let tasks = || self.runs.iter().flat_map(|run| &run.tasks);
        (tasks().map(|task| task.local).sum(), tasks().map(|task| task.remote).sum())
    }
}
