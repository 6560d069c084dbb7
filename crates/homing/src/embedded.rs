//! The queue of this machine, as its commands and runs of jobs over several hosts open it.

use crate::cluster::Cluster;
use crate::failure::Failure;
use homing_queue::{Embedded, QueueError};

/// What a failure of the queue is to the user.
pub fn failed(error: QueueError) -> Failure {
    match error {
        QueueError::NotFound(_) | QueueError::Request(_) => Failure::usage(error),
        QueueError::Program(said) => match homing_slurm::advice(&said) {
            Some(advice) => Failure::system(said).hint(advice),
            None => Failure::system(said),
        },
        other => Failure::system(other),
    }
}

/// Opens it. To be called before there are threads.
pub fn open() -> Result<Embedded, Failure> {
    let exe = std::env::current_exe().map_err(|e| Failure::system(format!("cannot find homing itself: {e}")))?;
    let config = Cluster::of_queue()?.queue_config()?;
    // The runner lives in /.
    if let Some(file) = crate::cluster::named_file() {
        // SAFETY: this program has no other thread here.
        unsafe { std::env::set_var("HOMING_CLUSTER", file) };
    }
    Embedded::open(config, exe, &["queue-runner"]).map_err(failed)
}
