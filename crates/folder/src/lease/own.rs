//! What a run's own file says to the others, and the two ways to say it.

use super::Place;
use super::after::{After, Successor};
use super::place::{is_before, own_file};
use super::said::Said;
use crate::lock;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// By what a run tells others what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Bytes of its file are locked, which the file server gives back when the run ends, however it ends.
    Locks,
    /// Its file is named so. On FUSE: a lock request that a signal interrupts blocked GlusterFS 10.3's client for good
    /// (its issue 4371; two processes killed in `fcntl`, 37 times), and a brick that healed waited for ever to remove
    /// a file that had been locked, so that the folder could not be written on any host.
    Names,
}

/// FUSE_SUPER_MAGIC of linux/magic.h.
#[cfg(target_os = "linux")]
const FUSE: u64 = 0x6573_5546;

impl By {
    /// What the file system of this folder bears.
    #[cfg(target_os = "linux")]
    pub(super) fn of(folder: &Path) -> By {
        match rustix::fs::statfs(folder) {
            Ok(found) if found.f_type as u64 == FUSE => By::Names,
            _ => By::Locks,
        }
    }

    /// No client of another system is known to suffer.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn of(_: &Path) -> By {
        By::Locks
    }

    /// A run touches its file so often.
    pub(super) fn beat(self) -> Duration {
        match self {
            By::Locks => Duration::from_secs(5),
            By::Names => Duration::from_secs(3),
        }
    }

    /// A run counts as gone when nobody has seen it touch its file for this long. Of locks: whatever they say, since
    /// MooseFS kept those of a host that died for more than 150 s, NFS 4 for 90 s. Of names: four beats, and longer
    /// than the 10 s that a GlusterFS stands still when a brick dies (`network.ping-timeout`, as `homing volume create`
    /// sets it). A file server that is slow must not make a run seem dead.
    pub(super) fn gone(self) -> Duration {
        match self {
            By::Locks => Duration::from_secs(30),
            By::Names => Duration::from_secs(12),
        }
    }
}

/// The file of this run.
#[derive(Debug)]
pub(super) struct Own {
    folder: PathBuf,
    /// What it is called now.
    name: String,
    /// The part of its name that stays.
    pub(super) stem: String,
    pub(super) file: File,
    by: By,
    said: Option<Said>,
    next: Option<Successor>,
    _after: Option<After>,
}

impl Own {
    /// Makes it; it says nothing yet.
    pub(super) fn make(place: &Place, by: By, next: Option<&Successor>) -> io::Result<Own> {
        let (name, file) = own_file(place, next)?;
        let path = place.folder.join(&name);
        let after = match (next, by) {
            (Some(next), _) => After::succeed(&path, &file, next).ok(),
            (None, By::Names) => After::remove(&path).ok(),
            (None, By::Locks) => None,
        };
        let (folder, stem, next) = (place.folder.clone(), name.clone(), next.cloned());
        Ok(Own { folder, stem, name, file, by, said: None, next, _after: after })
    }

    /// The same anew, which says as much.
    pub(super) fn make_again(&self, place: &Place) -> io::Result<Own> {
        let mut own = Own::make(place, self.by, self.next.as_ref())?;
        self.said.map_or(Ok(true), |said| own.say(said))?;
        Ok(own)
    }

    /// Whether a file is that of one whom this one succeeds, killed before.
    pub(super) fn succeeds(&self, place: &Place, stem: &str) -> bool {
        self.next.as_ref().is_some_and(|next| is_before(place, next, stem))
    }

    /// Says it from now on; `false` when somebody else's lock is in the way.
    pub(super) fn say(&mut self, said: Said) -> io::Result<bool> {
        if self.said == Some(said) {
            return Ok(true);
        }
        match self.by {
            By::Locks if !self.lock(said)? => return Ok(false),
            By::Locks => {}
            By::Names => {
                let name = said.named(&self.stem);
                fs::rename(self.path(), self.folder.join(&name))?;
                self.name = name;
            }
        }
        self.said = Some(said);
        Ok(true)
    }

    fn lock(&self, said: Said) -> io::Result<bool> {
        let held = self.said.map_or(0, |before| before.held);
        // From the first byte on: others ask for one lock, and not every file system joins those that only touch.
        if said.held > held && !lock::try_add(&self.file, (0, Some(said.held)))? {
            return Ok(false);
        }
        if said.held < held {
            lock::give_back(&self.file, (said.held, Some(held)))?;
        }
        let (flag, before) = (said.flag(), self.said.map(Said::flag));
        if before != Some(flag) {
            lock::try_add(&self.file, (flag, Some(flag + 1)))?;
            before.map_or(Ok(()), |before| lock::give_back(&self.file, (before, Some(before + 1))))?;
        }
        Ok(true)
    }

    /// The run is still there.
    pub(super) fn beat(&self) {
        let _ = self.file.set_modified(SystemTime::now());
    }

    /// Where it is.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_slow_for_as_long_as_a_brick_takes_to_die_is_not_gone() {
        for by in [By::Locks, By::Names] {
            assert!(by.gone() >= 4 * by.beat() && by.gone() > Duration::from_secs(10));
        }
    }
}
