//! Locks that end with the process: open file description locks. A child can receive a lock by its descriptor. Other
//! processes can test a lock without taking it. `flock` cannot do that: two processes that test by locking would take
//! each other for the holder.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

#[cfg(not(target_os = "freebsd"))]
use libc::{F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW};

/// FreeBSD has no such locks. Its fcntl rejects an unknown command, as file systems without such locks do.
#[cfg(target_os = "freebsd")]
const F_OFD_GETLK: libc::c_int = -1;
#[cfg(target_os = "freebsd")]
const F_OFD_SETLK: libc::c_int = -1;
#[cfg(target_os = "freebsd")]
const F_OFD_SETLKW: libc::c_int = -1;

/// Kinds of lock, in the width of the structure's field. The types of constants and field differ between systems.
const EXCLUSIVE: libc::c_short = libc::F_WRLCK as libc::c_short;
const SHARED: libc::c_short = libc::F_RDLCK as libc::c_short;
const NONE: libc::c_short = libc::F_UNLCK as libc::c_short;

/// A lock that is held until dropped, and by each process that inherits its descriptor.
#[derive(Debug)]
pub struct FileLock(File);

/// Opens a regular file to lock it. Follows no link and creates no file.
fn existing(path: &Path) -> io::Result<File> {
    crate::folder::open_plain_as(path, OpenOptions::new().read(true).write(true))
}

/// Opens or creates a lock file. It tries to open first, because a kernel with `fs.protected_regular` refuses O_CREAT
/// on another user's file in a sticky folder.
pub fn file(path: &Path, mode: u32) -> io::Result<File> {
    for _ in 0..100 {
        match existing(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
        match OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path) {
            Ok(file) => {
                // The mode must not depend on the umask.
                let _ = file.set_permissions(fs::Permissions::from_mode(mode));
                return Ok(file);
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::other("it keeps changing"))
}

/// Bytes of a file, from the first number to before the second; `None` is the end of all files.
pub type Bytes = (u32, Option<u32>);
/// All bytes of a file, including bytes appended later.
const WHOLE: Bytes = (0, None);

/// Makes one call on the lock of some bytes of a file. Returns the resulting or the conflicting lock.
fn call(file: &File, command: libc::c_int, bytes: Bytes) -> io::Result<libc::flock> {
    call_of(file, command, EXCLUSIVE, bytes)
}

fn call_of(file: &File, command: libc::c_int, kind: libc::c_short, bytes: Bytes) -> io::Result<libc::flock> {
    // SAFETY: plain data, and OFD locks want l_pid 0.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = i64::from(bytes.0);
    lock.l_len = bytes.1.map_or(0, |end| i64::from(end - bytes.0));
    // SAFETY: the descriptor is open and the structure outlives the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, &mut lock) } {
        0 => Ok(lock),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Locks these bytes of a file now, for as long as it is open. `Ok(false)`: another process has locked one of them;
/// an error: the file system has no such locks.
fn try_lock(file: &File, ranges: &[Bytes]) -> io::Result<bool> {
    try_lock_as(file, EXCLUSIVE, ranges)
}

fn try_lock_as(file: &File, kind: libc::c_short, ranges: &[Bytes]) -> io::Result<bool> {
    match ranges.iter().try_for_each(|bytes| call_of(file, F_OFD_SETLK, kind, *bytes).map(drop)) {
        Ok(()) => Ok(true),
        Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Locks bytes in addition to those that this open file has locked already.
pub fn try_add(file: &File, bytes: Bytes) -> io::Result<bool> {
    try_lock(file, &[bytes])
}

/// Locks bytes as shared. Other processes may share them, but none can lock them exclusively.
pub fn try_share(file: &File, bytes: Bytes) -> io::Result<bool> {
    try_lock_as(file, SHARED, &[bytes])
}

/// Releases bytes that this open file has locked.
pub fn give_back(file: &File, bytes: Bytes) -> io::Result<()> {
    call_of(file, F_OFD_SETLK, NONE, bytes).map(drop)
}

/// Locks all of a file exclusively.
pub fn try_lock_all(file: &File) -> io::Result<bool> {
    try_lock(file, &[WHOLE])
}

/// Whether another open file has a lock on some of it. Reading permission is enough for this test.
pub fn is_locked(file: &File) -> io::Result<bool> {
    call(file, F_OFD_GETLK, WHOLE).map(|met| met.l_type != NONE)
}

/// Returns the part of these bytes that some lock of another open file covers. The range ends before its second
/// number. Reading permission is enough.
pub fn met(file: &File, bytes: (u32, u32)) -> io::Result<Option<(u32, u32)>> {
    met_as(file, EXCLUSIVE, bytes)
}

/// As [`met`], for locks that exclude this kind of lock.
fn met_as(file: &File, kind: libc::c_short, (from, to): (u32, u32)) -> io::Result<Option<(u32, u32)>> {
    let lock = call_of(file, F_OFD_GETLK, kind, (from, Some(to)))?;
    if lock.l_type == NONE {
        return Ok(None);
    }
    let within = |at: i64| u32::try_from(at.clamp(i64::from(from), i64::from(to))).unwrap_or(to);
    let behind = if lock.l_len == 0 { i64::MAX } else { lock.l_start.saturating_add(lock.l_len) };
    Ok(Some((within(lock.l_start), within(behind))))
}

/// Returns the bytes of a file below `end` that another open file has locked. Reading permission is enough.
pub fn held_bytes(file: &File, end: u32) -> io::Result<Vec<u32>> {
    held_as(file, EXCLUSIVE, end)
}

/// Returns the bytes below `end` that another open file has locked exclusively.
pub fn unshared_bytes(file: &File, end: u32) -> io::Result<Vec<u32>> {
    held_as(file, SHARED, end)
}

fn held_as(file: &File, kind: libc::c_short, end: u32) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    // The kernel reports any one lock of a range. The parts before and behind it are queried again.
    let mut unknown = vec![(0, end)];
    while let Some((from, to)) = unknown.pop() {
        if from >= to {
            continue;
        }
        let Some((first, behind)) = met_as(file, kind, (from, to))? else { continue };
        found.extend(first..behind);
        unknown.extend([(from, first), (behind.max(first + 1), to)]);
    }
    found.sort_unstable();
    Ok(found)
}

impl FileLock {
    /// Takes the lock now, or returns `None`.
    pub fn try_take(path: &Path) -> io::Result<Option<FileLock>> {
        FileLock::of(file(path, 0o600)?, &[WHOLE])
    }

    /// Takes these bytes of a file now, or none of them.
    pub fn of(file: File, ranges: &[Bytes]) -> io::Result<Option<FileLock>> {
        Ok(try_lock(&file, ranges)?.then_some(FileLock(file)))
    }

    /// Waits for the lock and takes it.
    pub fn take(path: &Path) -> io::Result<FileLock> {
        let file = file(path, 0o600)?;
        loop {
            match call(&file, F_OFD_SETLKW, WHOLE) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => return other.map(|_| FileLock(file)),
            }
        }
    }

    /// Whether a process holds it; `None` if this user may not know. A missing file is not locked.
    pub fn is_held(path: &Path) -> Option<bool> {
        match existing(path) {
            Ok(file) => Some(is_locked(&file).unwrap_or(false)),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => None,
            Err(_) => Some(false),
        }
    }

    /// Whether `path` still leads to the locked file: its folder may have been removed meanwhile.
    pub fn is_at(&self, path: &Path) -> bool {
        let there = fs::symlink_metadata(path).map(|meta| (meta.dev(), meta.ino()));
        self.0.metadata().is_ok_and(|own| there.is_ok_and(|there| there == (own.dev(), own.ino())))
    }

    /// Lets the next started program inherit it; returns its descriptor.
    pub fn pass_on(&self) -> io::Result<RawFd> {
        rustix::io::fcntl_setfd(self.0.as_fd(), rustix::io::FdFlags::empty())?;
        Ok(self.0.as_raw_fd())
    }

    /// Takes over an inherited lock, and does not pass it on.
    pub fn inherit(fd: RawFd) -> io::Result<FileLock> {
        // SAFETY: the number comes from the runner that started this process for the purpose.
        let file = unsafe { File::from_raw_fd(fd) };
        rustix::io::fcntl_setfd(file.as_fd(), rustix::io::FdFlags::CLOEXEC)?;
        Ok(FileLock(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::until::until;

    /// The event that these tests wait for: a child of another test holds a lock a moment longer, between its fork and
    /// its exec.
    const RELEASED: &str = "the lock is released";

    #[test]
    fn held_until_dropped_and_asking_takes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("l");
        assert_eq!(FileLock::is_held(&path), Some(false));
        let held = FileLock::try_take(&path).unwrap().unwrap();
        assert_eq!(FileLock::is_held(&path), Some(true));
        assert!(FileLock::try_take(&path).unwrap().is_none());
        assert!(held.is_at(&path));
        std::fs::rename(&path, dir.path().join("moved")).unwrap();
        assert!(!held.is_at(&path));
        file(&path, 0o600).unwrap();
        assert!(!held.is_at(&path), "another file of the same name");
        drop(held);
        until(RELEASED, || FileLock::is_held(&path) == Some(false));
        std::os::unix::fs::symlink(&path, dir.path().join("s")).unwrap();
        assert!(FileLock::try_take(&dir.path().join("s")).is_err());
    }

    #[test]
    fn bytes_are_locked_one_by_one_and_a_reader_sees_which() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("l");
        let _first = FileLock::of(file(&path, 0o644).unwrap(), &[(1, Some(2)), (4, Some(6))]).unwrap().unwrap();
        assert!(FileLock::of(file(&path, 0o644).unwrap(), &[(3, Some(5))]).unwrap().is_none(), "one is not free");
        let _second = FileLock::of(file(&path, 0o644).unwrap(), &[(2, Some(3))]).unwrap().unwrap();
        let read = File::open(&path).unwrap();
        assert_eq!(held_bytes(&read, 100).unwrap(), [1, 2, 4, 5]);
        assert_eq!(held_bytes(&read, 5).unwrap(), [1, 2, 4]);
    }

    #[test]
    fn shared_bytes_keep_out_those_who_want_one_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("l");
        let open = || file(&path, 0o644).unwrap();
        let (first, second) = (open(), open());
        let byte = (3, Some(4));
        assert!(try_share(&first, byte).unwrap() && try_share(&second, byte).unwrap());
        assert!(FileLock::of(open(), &[byte]).unwrap().is_none());
        let read = File::open(&path).unwrap();
        assert_eq!((held_bytes(&read, 9).unwrap(), unshared_bytes(&read, 9).unwrap()), (vec![3], vec![]));
        [&first, &second].iter().for_each(|file| give_back(file, byte).unwrap());
        let _alone = FileLock::of(open(), &[byte]).unwrap().unwrap();
        assert!(!try_share(&first, byte).unwrap());
        assert_eq!(unshared_bytes(&read, 9).unwrap(), [3]);
    }
}
