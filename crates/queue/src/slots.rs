//! Slots of hosts: files that are locked while a job runs. A keeper that is
//! killed gives its slots back, because the kernel drops its locks.

use crate::QueueError;
use crate::lock::Held;
use std::fs;
use std::path::Path;

/// Takes all slots of a host that are free. Call it with the turn's lock held.
pub(crate) fn take_free(dir: &Path, host: &str, count: u32) -> Result<Vec<Held>, QueueError> {
    let dir = dir.join("slots").join(host);
    if !dir.is_dir() {
        make_shared(&dir)?;
    }
    let mut free = Vec::new();
    for number in 0..count {
        let path = dir.join(number.to_string());
        free.extend(Held::try_take(&path).map_err(QueueError::io("lock the slot", &path))?);
    }
    Ok(free)
}

/// A folder in which every user may make files and only remove their own.
pub(crate) fn make_shared(dir: &Path) -> Result<(), QueueError> {
    use std::os::unix::fs::PermissionsExt;
    match fs::create_dir(dir) {
        Ok(()) => {
            let open = fs::Permissions::from_mode(0o1777);
            fs::set_permissions(dir, open).map_err(QueueError::io("open to all users", dir))
        }
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(QueueError::io("make", dir)(e)),
    }
}
