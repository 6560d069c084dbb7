//! Slots of hosts. Slot N is byte N of a file for the host in each user's own folder. It is locked while a job of
//! that user has the slot. A killed keeper returns its slots, because the kernel drops its locks.
//!
//! The alternative was a shared folder with files that all users lock. There the first user could make files that no
//! other user was able to lock.

use crate::places::Places;
use crate::{QueueError, files};
use homing_os::folder::lock::{self, FileLock};
use homing_os::folder::open_plain;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Returns the folder of a user's slot files, and makes it if it is missing.
pub(crate) fn folder(own: &Path) -> Result<PathBuf, QueueError> {
    let dir = own.join(FOLDER);
    match files::make_dir(&dir, 0o755) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => Err(QueueError::io("make", &dir)(e)),
        _ => Ok(dir),
    }
}

/// Its name.
pub(crate) const FOLDER: &str = "slots";

/// Returns the slots of a host, of `count`, that these users have locked.
fn held(places: &Places, users: &[u32], host: &str, count: u32) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    for uid in users {
        if let Some(file) = opened(places, *uid, host) {
            all.extend(lock::held_bytes(&file, count).unwrap_or_default());
        }
    }
    all
}

/// Opens a user's file for a host. A user who makes it unreadable, or a pipe, hides only their own slots.
pub(crate) fn opened(places: &Places, uid: u32, host: &str) -> Option<fs::File> {
    let file = open_plain(&places.of(uid).join(FOLDER).join(host)).ok()?;
    file.metadata().is_ok_and(|m| m.uid() == uid).then_some(file)
}

/// Returns how many slots of this host the runs of each user hold. Runs lock slots for reading, jobs for writing.
pub(crate) fn of_runs(places: &Places, users: &[u32], host: &str, count: u32) -> Vec<(u32, u32)> {
    let of_user = |uid: &u32| {
        let file = opened(places, *uid, host)?;
        let (all, jobs) = (lock::held_bytes(&file, count).ok()?, lock::unshared_bytes(&file, count).ok()?);
        Some((*uid, (all.len() - jobs.len().min(all.len())) as u32)).filter(|(_, slots)| *slots > 0)
    };
    users.iter().filter_map(of_user).collect()
}

/// Returns how many slots of a host are free.
pub(crate) fn free(places: &Places, users: &[u32], host: &str, count: u32) -> u32 {
    count - held(places, users, host, count).len() as u32
}

/// Takes `wanted` slots of a host, or none. If two users take the same one at the same moment, each sees the other's
/// lock after taking its own, and both release it.
pub(crate) fn take(
    places: &Places,
    users: &[u32],
    host: &str,
    count: u32,
    wanted: u32,
) -> Result<Option<FileLock>, QueueError> {
    let path = folder(&places.own()?)?.join(host);
    let taken = held(places, users, host, count);
    let chosen: Vec<u32> = (0..count).filter(|n| !taken.contains(n)).take(wanted as usize).collect();
    if chosen.len() < wanted as usize {
        return Ok(None);
    }
    let ranges: Vec<_> = chosen.iter().map(|n| (*n, Some(n + 1))).collect();
    let locked = lock::file(&path, 0o644).and_then(|file| FileLock::of(file, &ranges));
    let locked = locked.map_err(QueueError::io("lock slots of this user in", &path))?;
    let others: Vec<u32> = users.iter().copied().filter(|uid| *uid != files::uid()).collect();
    let met = held(places, &others, host, count);
    Ok(locked.filter(|_| !chosen.iter().any(|n| met.contains(n))))
}

/// Reports to the runners that watch the slots' files that a turn is over.
pub(crate) fn announce_turn_end(own: &Path, host: &str) {
    let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
    let times = rustix::fs::Timestamps { last_access: now, last_modification: now };
    let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
    let _ = rustix::fs::utimensat(rustix::fs::CWD, own.join(FOLDER).join(host), &times, flags);
}

/// Returns the entries in the place of users' slot files that cannot be one, for a person who wants to know why jobs
/// wait.
pub(crate) fn odd(places: &Places, users: &[u32], host: &str) -> Vec<String> {
    let tell = |uid: &u32| {
        let path = places.of(*uid).join(FOLDER).join(host);
        let missing = fs::symlink_metadata(&path).is_err();
        let why = open_plain(&path).err().filter(|_| !missing)?;
        Some(format!("{} is ignored: {why}", path.display()))
    };
    users.iter().filter_map(tell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::until::until;

    /// The event that these tests wait for: a child of another test holds a lock a moment longer, between its fork and
    /// its exec.
    const RELEASED: &str = "the lock is released";

    #[test]
    fn no_more_slots_are_given_than_there_are_and_odd_files_stop_nobody() {
        let (_dir, base) = crate::places::new_shared();
        let places = Places::at(base).unwrap();
        let users = [files::uid()];
        let take = |wanted| take(&places, &users, "h", 4, wanted).unwrap();
        let (first, second) = (take(3).unwrap(), take(1).unwrap());
        assert!(take(1).is_none());
        assert_eq!(free(&places, &users, "h", 4), 0);
        drop(second);
        until(RELEASED, || free(&places, &users, "h", 4) == 1);
        assert!(take(2).is_none());
        assert_eq!(free(&places, &users, "h", 4), 1, "one is free, and it was not taken");
        drop(first);
        until(RELEASED, || free(&places, &users, "h", 4) == 4);
        // Opening a pipe without a writer to read it would block.
        let file = folder(&places.own().unwrap()).unwrap().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, 0o644.into(), 0).unwrap();
        assert_eq!(free(&places, &users, "pipe", 2), 2);
        assert!(odd(&places, &users, "pipe")[0].contains("no regular file"));
        assert!(odd(&places, &users, "h").is_empty() && odd(&places, &users, "none").is_empty());
    }
}
