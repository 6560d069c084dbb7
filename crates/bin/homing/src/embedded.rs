//! Opens the queue of this machine, for its commands and for runs of jobs over several hosts.

use crate::cluster::Cluster;
use homing_model::Failure;
use homing_queue::Embedded;

/// Opens the queue. Call it before there are threads.
pub fn open() -> Result<Embedded, Failure> {
    let exe = crate::programs::own_path()?;
    let config = Cluster::of_queue()?.queue_config()?;
    // The runner works in /, so it needs the file's full path.
    if let Some(file) = crate::cluster::named_file() {
        // SAFETY: this program has no other thread here.
        unsafe { std::env::set_var("HOMING_CLUSTER", file) };
    }
    Ok(Embedded::open(config, exe, &["queue-runner"])?)
}
