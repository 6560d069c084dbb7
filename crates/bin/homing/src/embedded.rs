//! The queue of this machine, as its commands and runs of jobs over several hosts open it.

use crate::cluster::Cluster;
use homing_model::Failure;
use homing_queue::Embedded;

/// Opens it. To be called before there are threads.
pub fn open() -> Result<Embedded, Failure> {
    let exe = std::env::current_exe().map_err(|e| Failure::system(format!("cannot find homing itself: {e}")))?;
    let config = Cluster::of_queue()?.queue_config()?;
    // The runner lives in /.
    if let Some(file) = crate::cluster::named_file() {
        // SAFETY: this program has no other thread here.
        unsafe { std::env::set_var("HOMING_CLUSTER", file) };
    }
    Ok(Embedded::open(config, exe, &["queue-runner"])?)
}
