//! A leader's folder, and those of leaders that were killed with their guards.

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Begins their names.
const PREFIX: &str = "homing-tree-";

/// A folder of its own, for as long as somebody has its lock.
pub fn make(room: &Path) -> io::Result<(PathBuf, OwnedFd)> {
    clear(room);
    let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(room)?;
    // Another who clears may have had it first, and then it is gone.
    let lock = locked(folder.path())?;
    Ok((folder.keep(), lock))
}

/// Files may be many: not in memory, as /tmp may be.
pub fn room() -> PathBuf {
    std::env::var_os("TMPDIR").map_or("/var/tmp".into(), PathBuf::from)
}

fn locked(folder: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let opened = open(folder, flags, Mode::empty())?;
    flock(&opened, FlockOperation::NonBlockingLockExclusive)?;
    Ok(opened)
}

/// Removes what nobody holds any more of this user's.
fn clear(room: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(room).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == own);
        if is_ours && let Ok(_lock) = locked(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_nobody_holds_is_cleared_and_no_other() {
        let room = tempfile::tempdir().unwrap();
        let (held, _lock) = make(room.path()).unwrap();
        let (left, lock) = make(room.path()).unwrap();
        fs::write(left.join("data"), "x").unwrap();
        let others = room.path().join("other");
        fs::create_dir(&others).unwrap();
        std::os::unix::fs::symlink(&others, room.path().join("homing-tree-link")).unwrap();
        drop(lock);
        let (new, _new_lock) = make(room.path()).unwrap();
        assert!(held.exists() && new.exists() && others.exists() && !left.exists());
    }
}
