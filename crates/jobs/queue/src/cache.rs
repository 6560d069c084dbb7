//! Keeps the results of earlier looks at the spool.

use crate::entry::Job;
use crate::job::JobSpec;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Records that have not changed since they were read. With them a look costs only as much as has changed.
#[derive(Default)]
pub(crate) struct Cache {
    pub(crate) jobs: Mutex<HashMap<(u32, u64), CachedJob>>,
    /// When an ended element was last put back into the queue, of each user.
    pub(crate) again: Mutex<HashMap<u32, i64>>,
    pub(crate) specs: Mutex<HashMap<(u32, u64), Arc<JobSpec>>>,
}

/// A job as the last look read it.
pub(crate) struct CachedJob {
    pub(crate) job: Job,
    /// The time of the last change of its folder, if nothing outside the folder can change the job.
    pub(crate) settled: Option<i64>,
}
