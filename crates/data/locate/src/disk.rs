//! File systems on disks: of this host, or of several hosts that share a disk.

use crate::FileSystem;
use crate::local::{Local, UnknownLayout};
use homing_mounts::{FileSystemKind, MountLine};
use std::path::Path;
use std::sync::Arc;

/// Types whose disk several hosts read directly, and the mount option that means that only this host uses it.
const SHARED: [(&str, &str); 2] = [("gfs2", "lockproto=lock_nolock"), ("ocfs2", "heartbeat=none")];
/// GFS2 mounts in the kernel. The mount option is shown only if it was given at mount time, not if `mkfs.gfs2` set
/// it.
const GFS2: &str = "/sys/fs/gfs2";

/// Returns the file system on this device. `copy` is the result of [`crate::drbd::has_copy`].
pub(crate) fn of(first: &MountLine, kind: FileSystemKind, copy: Result<bool, String>) -> Arc<dyn FileSystem> {
    let fstype = first.mount.fstype.as_str();
    let shared = SHARED.iter().find(|(shared, _)| *shared == fstype);
    let told = shared.is_some_and(|(_, alone)| first.of_super.iter().any(|option| option == alone));
    let alone = told || (fstype == "gfs2" && locks(Path::new(GFS2), first.dev).as_deref() == Some("lock_nolock"));
    match copy {
        Err(reason) => Arc::new(UnknownLayout(reason)),
        Ok(true) => Arc::new(Local::new()),
        Ok(false) if alone || kind == FileSystemKind::Local => Arc::new(Local::new()),
        Ok(false) if shared.is_some() => Arc::new(UnknownLayout(format!(
            "it is on a disk that all hosts of this {fstype} share: no host is nearer to it"
        ))),
        Ok(false) => Arc::new(UnknownLayout(format!("homing cannot query {fstype} for the place of bytes"))),
    }
}

/// Returns the lock protocol of the GFS2 on a device, from the kernel's folder of all GFS2 mounts.
fn locks(mounted: &Path, dev: u64) -> Option<String> {
    let number = format!("{}:{}", rustix::fs::major(dev), rustix::fs::minor(dev));
    let read = |path: &Path| std::fs::read_to_string(path).ok().map(|text| text.trim().to_string());
    let one = std::fs::read_dir(mounted).ok()?.flatten().map(|entry| entry.path());
    let one = one.into_iter().find(|one| read(&one.join("device/dev")).as_ref() == Some(&number))?;
    read(&one.join("lock_module/proto_name"))
}

#[cfg(test)]
mod tests;
