//! File systems that lie on disks: of this host, or of several that share one.

use crate::FileSystem;
use crate::local::{Local, Unknown};
use homing_mounts::{Kind, MountLine};
use std::path::Path;
use std::sync::Arc;

/// Types whose disk many hosts read, each by itself, and what a mount of it says that is this host's alone.
const SHARED: [(&str, &str); 2] = [("gfs2", "lockproto=lock_nolock"), ("ocfs2", "heartbeat=none")];
/// Mounts of GFS2 by the kernel: that option is shown only where somebody gave it, and not where `mkfs.gfs2` was told.
const GFS2: &str = "/sys/fs/gfs2";

/// `copy`: of DRBD, whether a copy is here, as [`crate::drbd::has_copy`] has it.
pub(crate) fn of(first: &MountLine, kind: Kind, copy: Result<bool, String>) -> Arc<dyn FileSystem> {
    let fstype = first.mount.fstype.as_str();
    let shared = SHARED.iter().find(|(shared, _)| *shared == fstype);
    let told = shared.is_some_and(|(_, alone)| first.of_super.iter().any(|option| option == alone));
    let alone = told || (fstype == "gfs2" && locks(Path::new(GFS2), first.dev).as_deref() == Some("lock_nolock"));
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

/// Who keeps the locks of the GFS2 on a device, by the kernel's folder of all that are mounted.
fn locks(mounted: &Path, dev: u64) -> Option<String> {
    let number = format!("{}:{}", rustix::fs::major(dev), rustix::fs::minor(dev));
    let read = |path: &Path| std::fs::read_to_string(path).ok().map(|text| text.trim().to_string());
    let one = std::fs::read_dir(mounted).ok()?.flatten().map(|entry| entry.path());
    let one = one.into_iter().find(|one| read(&one.join("device/dev")).as_ref() == Some(&number))?;
    read(&one.join("lock_module/proto_name"))
}

#[cfg(test)]
mod tests;
