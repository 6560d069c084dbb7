//! The data that a run's own file shows to others, and the two ways to publish it.

use super::LeaseFolder;
use super::after::{After, Successor};
use super::place::{is_before, own_file};
use super::said::LeaseRecord;
use homing_os::folder::lock;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The way in which a run publishes its leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PublishMethod {
    /// By locks on bytes of its file, which the file server releases when the run ends, however it ends.
    Locks,
    /// By the name of its file. Used on FUSE: there a lock request that a signal interrupts blocked GlusterFS 10.3's
    /// client for good (its issue 4371; two processes killed in `fcntl`, 37 times).
    Names,
}

/// A name that is taken is skipped. If its number is a multiple of this, the error is returned instead.
const TRIED: u32 = 64;

/// FUSE_SUPER_MAGIC of linux/magic.h.
#[cfg(target_os = "linux")]
const FUSE: u64 = 0x6573_5546;

impl PublishMethod {
    /// Returns the way that works on the file system of this folder.
    #[cfg(target_os = "linux")]
    pub(super) fn of(folder: &Path) -> PublishMethod {
        match rustix::fs::statfs(folder) {
            Ok(found) if found.f_type as u64 == FUSE => PublishMethod::Names,
            _ => PublishMethod::Locks,
        }
    }

    /// Returns `Locks`: on other systems no client is known to suffer.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn of(_: &Path) -> PublishMethod {
        PublishMethod::Locks
    }

    /// Returns the interval at which a run touches its file.
    pub(super) fn beat(self) -> Duration {
        match self {
            PublishMethod::Locks => Duration::from_secs(5),
            PublishMethod::Names => Duration::from_secs(3),
        }
    }

    /// Returns the time without an observed touch after which a run counts as gone. Its locks may still exist then:
    /// MooseFS kept those of a dead host for more than 150 s, NFS 4 for 90 s. The time for names is four beats. It is
    /// longer than the 10 s for which a GlusterFS stops when a brick dies (`network.ping-timeout`, as `homing volume
    /// create` sets it). A slow file server must not make a run seem dead.
    pub(super) fn gone(self) -> Duration {
        match self {
            PublishMethod::Locks => Duration::from_secs(30),
            PublishMethod::Names => Duration::from_secs(12),
        }
    }
}

/// The file of this run.
#[derive(Debug)]
pub(super) struct OwnLease {
    folder: PathBuf,
    /// Its current name.
    name: String,
    /// The constant part of its name.
    pub(super) stem: String,
    pub(super) file: File,
    by: PublishMethod,
    said: Option<LeaseRecord>,
    /// How many names it has had for publishing.
    beats: u32,
    next: Option<Successor>,
    _after: Option<After>,
}

impl OwnLease {
    /// Makes the file; it publishes nothing yet.
    pub(super) fn make(place: &LeaseFolder, by: PublishMethod, next: Option<&Successor>) -> io::Result<OwnLease> {
        let (name, file) = own_file(place, next)?;
        let path = place.folder.join(&name);
        let after = match (next, by) {
            (Some(next), _) => After::succeed(&path, &file, next).ok(),
            (None, PublishMethod::Names) => After::remove(&path).ok(),
            (None, PublishMethod::Locks) => None,
        };
        let (folder, stem, next) = (place.folder.clone(), name.clone(), next.cloned());
        Ok(OwnLease { folder, stem, name, file, by, said: None, beats: 0, next, _after: after })
    }

    /// Makes the file again, with the same data.
    pub(super) fn make_again(&self, place: &LeaseFolder) -> io::Result<OwnLease> {
        let mut own = OwnLease::make(place, self.by, self.next.as_ref())?;
        self.said.map_or(Ok(true), |said| own.publish(said))?;
        Ok(own)
    }

    /// Whether a file belongs to a killed predecessor of this process.
    pub(super) fn succeeds(&self, place: &LeaseFolder, stem: &str) -> bool {
        self.next.as_ref().is_some_and(|next| is_before(place, next, stem))
    }

    /// Publishes the data; returns false if the lock of another process is in the way.
    pub(super) fn publish(&mut self, said: LeaseRecord) -> io::Result<bool> {
        if self.said == Some(said) {
            return Ok(true);
        }
        match self.by {
            PublishMethod::Locks if !self.lock(said)? => return Ok(false),
            PublishMethod::Locks => {}
            PublishMethod::Names => self.be_called(said)?,
        }
        self.said = Some(said);
        Ok(true)
    }

    fn lock(&self, said: LeaseRecord) -> io::Result<bool> {
        let held = self.said.map_or(0, |before| before.held);
        // Always from the first byte: others query one lock, and not every file system joins adjacent locks.
        if said.held > held && !lock::try_add(&self.file, (0, Some(said.held)))? {
            return Ok(false);
        }
        if said.held < held {
            lock::give_back(&self.file, (said.held, Some(held)))?;
        }
        let (flag, before) = (said.flag(), self.said.map(LeaseRecord::flag));
        if before != Some(flag) {
            lock::try_add(&self.file, (flag, Some(flag + 1)))?;
            before.map_or(Ok(()), |before| lock::give_back(&self.file, (before, Some(before + 1))))?;
        }
        Ok(true)
    }

    /// Shows that the run is still there. If the file itself is gone, the next look at the others finds that.
    pub(super) fn beat(&mut self) {
        match self.by {
            PublishMethod::Locks => _ = self.file.set_modified(SystemTime::now()),
            PublishMethod::Names => _ = self.said.map(|said| self.be_called(said)),
        }
    }

    /// Gives the file a name that it has not had. For a moment it has two names, and never none.
    fn be_called(&mut self, said: LeaseRecord) -> io::Result<()> {
        let before = self.path();
        loop {
            self.beats += 1;
            let name = said.named(&self.stem, self.beats);
            match link(&before, &self.folder.join(&name)) {
                // Another process has put a file there.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && !self.beats.is_multiple_of(TRIED) => {}
                Err(e) => return Err(e),
                Ok(()) => {
                    self.name = name;
                    let removed = fs::remove_file(before);
                    return removed.or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) });
                }
            }
        }
    }

    /// Returns its path.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }
}

/// Adds a name by a link. A file is neither renamed nor touched: both make a GlusterFS client lock the file's inode
/// on its bricks. An unlink that waits there for the lock of a disconnected client is never answered. (Up to its
/// release 11.1, `pl_inodelk_client_cleanup` wakes no waiter.) The folder is locked meanwhile, until
/// `network.frame-timeout` of half an hour. Links and their removal lock names only. Of three cuts during each,
/// renaming and touching hung once, links never. Nor is the file made anew: MooseFS keeps removed files for a day.
fn link(before: &Path, name: &Path) -> io::Result<()> {
    fs::hard_link(before, name).or_else(|e| match e.kind() {
        // A file system without links.
        io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied => fs::rename(before, name),
        _ => Err(e),
    })
}

impl Drop for OwnLease {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a run that publishes by names; returns it with a function that lists its folder.
    fn by_names(dir: &Path) -> (OwnLease, impl Fn() -> Vec<String>) {
        let place = LeaseFolder { folder: dir.into(), server: "nas".into(), limit: None, unfit: None };
        let folder = dir.to_path_buf();
        let names =
            move || fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        (OwnLease::make(&place, PublishMethod::Names, None).unwrap(), names)
    }

    #[test]
    fn a_file_that_tells_by_its_name_is_never_touched_nor_without_a_name() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let (mut own, names) = by_names(dir.path());
        own.file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let said = LeaseRecord { held: 3, ..LeaseRecord::default() };
        assert!(own.publish(said).unwrap());
        for beat in 2..5 {
            own.beat();
            assert_eq!(names(), [said.named(&own.stem, beat)]);
        }
        let (open, there) = (own.file.metadata().unwrap(), fs::metadata(own.path()).unwrap());
        assert_eq!((there.ino(), there.mtime(), there.mode() & 0o777), (open.ino(), 0, 0o644));
        fs::remove_file(own.path()).unwrap();
        own.beat();
        assert!(names().is_empty(), "it is made anew by who looks at the others");
    }

    #[test]
    fn a_name_that_somebody_else_has_taken_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let (mut own, names) = by_names(dir.path());
        let said = LeaseRecord::default();
        let (taken, next) = (said.named(&own.stem, 1), said.named(&own.stem, 2));
        fs::write(dir.path().join(&taken), "").unwrap();
        assert!(own.publish(said).unwrap());
        let mut left = names();
        left.sort();
        assert_eq!((left, own.path()), (vec![taken, next.clone()], dir.path().join(next)));
    }

    #[test]
    fn who_is_slow_for_as_long_as_a_brick_takes_to_die_is_not_gone() {
        for by in [PublishMethod::Locks, PublishMethod::Names] {
            assert!(by.gone() >= 4 * by.beat() && by.gone() > Duration::from_secs(10));
        }
    }
}
