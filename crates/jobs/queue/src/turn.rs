//! The turns of the users' runners. A runner that does not take its turn, or holds the lock too long, is passed over.

use crate::QueueError;
use crate::places::Places;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// A user whose runner does not take its turn for this long is passed over.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// If the lock of turns is held for longer, runners go on without it; the slots' own locks are enough.
const STUCK: Duration = Duration::from_secs(5);

/// The latest turn, and since when it is due.
#[derive(Default)]
pub(crate) struct UserTurn {
    of: Option<(u32, u64)>,
    since: Option<Instant>,
    pub passed_over: BTreeSet<u32>,
    /// Since when another process has held the lock.
    locked_out: Option<Instant>,
}

impl UserTurn {
    pub fn note(&mut self, uid: u32, id: u64) {
        if self.of != Some((uid, id)) {
            (self.of, self.since) = (Some((uid, id)), Some(Instant::now()));
        }
        if self.since.is_some_and(|s| s.elapsed() > PATIENCE) {
            self.passed_over.insert(uid);
        }
    }

    /// Takes the lock. It is on the shared folder itself, because no user can replace the folder by something that
    /// cannot be locked. Returns `Err(())` while another process has it, and no lock at all once that process is
    /// stuck.
    pub fn take(&mut self, places: &Places) -> Result<Result<Option<OwnedFd>, ()>, QueueError> {
        let path = places.shared();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = open(path, flags, Mode::empty()).map_err(|e| QueueError::io("open", path)(e.into()))?;
        if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
            self.locked_out = None;
            return Ok(Ok(Some(folder)));
        }
        let since = *self.locked_out.get_or_insert_with(Instant::now);
        Ok(if since.elapsed() > STUCK { Ok(None) } else { Err(()) })
    }
}
