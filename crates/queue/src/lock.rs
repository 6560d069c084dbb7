//! Locks that end with the process: open file description locks, on files of
//! a local disk. A lock may be handed to a child by its descriptor, and others
//! can ask whether it is held without taking it, which `flock` cannot do: two
//! who look at once would take each other for the holder.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Who may take a lock: its owner, or every user.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    Owner,
    All,
}

/// Held until dropped, and by whoever inherits its descriptor.
#[derive(Debug)]
pub(crate) struct Held(File);

/// Opens a regular file to lock; nothing is followed, nothing is made.
fn existing(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "it is no regular file")),
    }
}

/// Opened before it is created, because a kernel with `fs.protected_regular`
/// refuses O_CREAT on another user's file in a sticky folder.
fn file(path: &Path, whose: For) -> io::Result<File> {
    let mode = if whose == For::All { 0o666 } else { 0o600 };
    for _ in 0..100 {
        match existing(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
        match OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path) {
            Ok(file) => {
                // Whatever the umask was.
                let _ = file.set_permissions(fs::Permissions::from_mode(mode));
                return Ok(file);
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::other("it comes and goes"))
}

/// One call on the lock of the whole file; returns the kind that it leaves or meets.
fn call(file: &File, command: libc::c_int) -> io::Result<libc::c_int> {
    // SAFETY: plain data; all zero means the whole file, and OFD locks want l_pid 0.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: the descriptor is open and the structure outlives the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, &mut lock) } {
        0 => Ok(libc::c_int::from(lock.l_type)),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Held {
    /// Takes it now, or not at all.
    pub fn try_take(path: &Path, whose: For) -> io::Result<Option<Held>> {
        let file = file(path, whose)?;
        match call(&file, libc::F_OFD_SETLK) {
            Ok(_) => Ok(Some(Held(file))),
            Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Waits for it.
    pub fn take(path: &Path) -> io::Result<Held> {
        let file = file(path, For::Owner)?;
        loop {
            match call(&file, libc::F_OFD_SETLKW) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => return other.map(|_| Held(file)),
            }
        }
    }

    /// Whether somebody holds it; `None` when this user may not know. A file that is not there is held by nobody.
    pub fn is_held(path: &Path) -> Option<bool> {
        match existing(path) {
            Ok(file) => Some(call(&file, libc::F_OFD_GETLK).is_ok_and(|kind| kind != libc::F_UNLCK as libc::c_int)),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => None,
            Err(_) => Some(false),
        }
    }

    /// Lets the next program that is started keep it; returns its descriptor.
    pub fn pass_on(&self) -> io::Result<RawFd> {
        rustix::io::fcntl_setfd(self.0.as_fd(), rustix::io::FdFlags::empty())?;
        Ok(self.0.as_raw_fd())
    }

    /// Takes over a lock that was passed on, and passes it no further.
    pub fn inherit(fd: RawFd) -> io::Result<Held> {
        // SAFETY: the number comes from the runner that started this process for the purpose.
        let file = unsafe { File::from_raw_fd(fd) };
        rustix::io::fcntl_setfd(file.as_fd(), rustix::io::FdFlags::CLOEXEC)?;
        Ok(Held(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_until_dropped_and_asking_takes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("l");
        assert_eq!(Held::is_held(&path), Some(false));
        let held = Held::try_take(&path, For::Owner).unwrap().unwrap();
        assert_eq!(Held::is_held(&path), Some(true));
        assert!(Held::try_take(&path, For::Owner).unwrap().is_none());
        drop(held);
        assert_eq!(Held::is_held(&path), Some(false));
        std::os::unix::fs::symlink(&path, dir.path().join("s")).unwrap();
        assert!(Held::try_take(&dir.path().join("s"), For::All).is_err());
    }
}
