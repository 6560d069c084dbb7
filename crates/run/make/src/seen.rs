//! The state of a build for watching programs.

use homing_model::{Live, TaskId};

/// A build at one moment: the facts that its listener does not receive.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BuildSnapshot {
    /// Why recipes wait.
    pub live: Live,
    /// The ends of the output of running recipes.
    pub shown: Vec<(TaskId, Vec<u8>)>,
}
