//! Slots of hosts: files that are locked while a job runs. A keeper that is
//! killed gives its slots back, because the kernel drops its locks.

use crate::QueueError;
use crate::lock::{For, Held};
use crate::places::make_shared;
use std::path::Path;

/// Takes all slots of a host that are free. Call it with the turn's lock held.
pub(crate) fn take_free(shared: &Path, host: &str, count: u32) -> Result<Vec<Held>, QueueError> {
    let dir = shared.join("slots").join(host);
    if !dir.is_dir() {
        make_shared(&dir)?;
    }
    let mut free = Vec::new();
    for number in 0..count {
        let path = dir.join(number.to_string());
        free.extend(Held::try_take(&path, For::All).map_err(QueueError::io("lock the slot", &path))?);
    }
    Ok(free)
}
