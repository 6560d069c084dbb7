//! What those see who watch a build.

use homing_model::{Live, TaskId};

/// A build at one moment, as far as its listener does not hear of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Why recipes wait.
    pub live: Live,
    /// The ends of what was printed by recipes that run.
    pub shown: Vec<(TaskId, Vec<u8>)>,
}
