//! Makes a leader's folder, and removes folders of leaders that were killed with their guards.

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The beginning of their names.
const PREFIX: &str = "homing-tree-";

/// Makes a folder that stays as long as some process holds its lock.
pub fn make(room: &Path) -> io::Result<(PathBuf, OwnedFd)> {
    clear(room);
    let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(room)?;
    // Another process that clears may have locked it first, and removed it.
    let lock = locked(folder.path())?;
    Ok((folder.keep(), lock))
}

/// Returns the folder for many files: /tmp may be in memory.
pub fn room() -> PathBuf {
    std::env::var_os("TMPDIR").map_or("/var/tmp".into(), PathBuf::from)
}

fn locked(folder: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let opened = open(folder, flags, Mode::empty())?;
    flock(&opened, FlockOperation::NonBlockingLockExclusive)?;
    Ok(opened)
}

/// Removes this user's folders that no process holds any more.
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
