//! Locks that end with the process: `flock` on files of a local disk. Each
//! lock may be taken by any user who can read the file, and may be handed to a
//! child by its descriptor.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Held until dropped, and by whoever inherits its descriptor.
#[derive(Debug)]
pub(crate) struct Held(File);

/// A file to lock. Opened before it is created, because a kernel with
/// `fs.protected_regular` refuses O_CREAT on another user's file in a sticky folder.
pub(crate) fn file(path: &Path) -> io::Result<File> {
    for _ in 0..100 {
        match crate::files::open_plain(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
        match OpenOptions::new().write(true).create_new(true).mode(0o644).open(path) {
            Ok(file) => {
                // Whatever the umask was: the others must be able to read it.
                let _ = file.set_permissions(fs::Permissions::from_mode(0o644));
                return Ok(file);
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::other("it comes and goes"))
}

impl Held {
    /// Takes it now, or not at all.
    pub fn try_take(path: &Path) -> io::Result<Option<Held>> {
        let file = file(path)?;
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Held(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// True when somebody holds it. A file that is not there is held by nobody.
    pub fn is_held(path: &Path) -> bool {
        let Ok(file) = crate::files::open_plain(path) else { return false };
        // A shared lock, so that two who look at once do not take each other for the holder.
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockShared).is_err()
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
