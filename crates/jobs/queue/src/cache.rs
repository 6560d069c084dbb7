//! What earlier looks at the spool have read.

use crate::entry::Job;
use crate::job::JobSpec;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// What has not changed since it was read, so that a look costs what changed.
#[derive(Default)]
pub(crate) struct Cache {
    pub(crate) jobs: Mutex<HashMap<(u32, u64), Kept>>,
    /// When something that had ended was last put back into the queue, of each user.
    pub(crate) again: Mutex<HashMap<u32, i64>>,
    pub(crate) specs: Mutex<HashMap<(u32, u64), Arc<JobSpec>>>,
}

/// A job as it was read last.
pub(crate) struct Kept {
    pub(crate) job: Job,
    /// When its folder had been changed, where nothing else could make another job of it.
    pub(crate) settled: Option<i64>,
}
