//! File systems that lie on disks: of this host, or of several that share one.

use crate::FileSystem;
use crate::local::{Local, Unknown};
use homing_mounts::{Kind, MountLine};
use std::sync::Arc;

/// Types whose disk many hosts read, each by itself, and what a mount of it says that is this host's alone.
const SHARED: [(&str, &str); 2] = [("gfs2", "lockproto=lock_nolock"), ("ocfs2", "heartbeat=none")];

/// `copy`: of DRBD, whether a copy is here, as [`crate::drbd::has_copy`] has it.
pub(crate) fn of(first: &MountLine, kind: Kind, copy: Result<bool, String>) -> Arc<dyn FileSystem> {
    let fstype = first.mount.fstype.as_str();
    let shared = SHARED.iter().find(|(shared, _)| *shared == fstype);
    let alone = shared.is_some_and(|(_, alone)| first.of_super.iter().any(|option| option == alone));
    match copy {
        Err(reason) => Arc::new(Unknown(reason)),
        Ok(true) => Arc::new(Local::new()),
        Ok(false) if alone || kind == Kind::Local => Arc::new(Local::new()),
        Ok(false) if shared.is_some() => {
            Arc::new(Unknown(format!("it lies on a disk that the hosts of this {fstype} share: none is nearer to it")))
        }
        Ok(false) => Arc::new(Unknown(format!("homing does not know how to ask {fstype} where bytes lie"))),
    }
}

#[cfg(test)]
mod tests;
