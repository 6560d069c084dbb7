//! The order among users, and what is done about one who does not keep to it.

use crate::QueueError;
use crate::places::Places;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// A user whose runner does not take its turn for this long is passed over.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// Whoever holds the lock of turns for longer holds it up: the slots' own locks must do then.
const STUCK: Duration = Duration::from_secs(5);

/// Whose turn it has been, and since when.
#[derive(Default)]
pub(crate) struct Turn {
    of: Option<(u32, u64)>,
    since: Option<Instant>,
    pub passed_over: BTreeSet<u32>,
    /// Since when the lock has been another's.
    locked_out: Option<Instant>,
}

impl Turn {
    pub fn note(&mut self, uid: u32, id: u64) {
        if self.of != Some((uid, id)) {
            (self.of, self.since) = (Some((uid, id)), Some(Instant::now()));
        }
        if self.since.is_some_and(|s| s.elapsed() > PATIENCE) {
            self.passed_over.insert(uid);
        }
    }

    /// The lock, on the shared folder itself, since nobody can put something else in the folder's place that
    /// cannot be locked; `Err(())` while another has it and is not stuck with it.
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
