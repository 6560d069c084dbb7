//! The file of another run.

use super::own::PublishMethod;
use super::place::LeaseFile;
use super::said::{END, FLAGS, LeaseName, LeaseRecord, MOST};
use homing_os::folder::lock;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant, SystemTime};

/// The file of another run.
#[derive(Debug)]
pub(super) struct Other {
    pub(super) file: File,
    pub(super) uid: u32,
    /// The data in its name, if it publishes by names.
    pub(super) named: Option<LeaseName>,
    /// The leases that it held when it was passed over, since it did not take those that it could.
    pub(super) passed_over: Option<u32>,
    pub(super) beat: Option<Beat>,
}

/// The time of a file's last change on the file server, in seconds and nanoseconds; or the number of its current
/// name.
type FileVersion = (i64, u32);

/// The last observed touch of a run's file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beat {
    stamp: Option<FileVersion>,
    changed: Instant,
    asked: Instant,
}

impl Other {
    /// Opens the file. One that is not regular, or cannot be opened, holds nothing; a pipe does not block.
    pub(super) fn of(LeaseFile { entry, named, .. }: &LeaseFile) -> Option<Other> {
        if !entry.file_type().ok()?.is_file() {
            return None;
        }
        let file = homing_os::folder::open_plain(&entry.path()).ok()?;
        let meta = file.metadata().ok()?;
        Some(Other { uid: meta.uid(), file, named: *named, passed_over: None, beat: None })
    }

    /// Returns the data that its run publishes; `None` if the run has ended. The file server may have removed its
    /// file.
    pub(super) fn has(&self) -> Option<LeaseRecord> {
        if let Some(named) = self.named {
            return Some(named.record);
        }
        let flag = flag(&self.file).ok()??;
        let held = lock::met(&self.file, (0, MOST)).ok()?.map_or(0, |(from, to)| to - from);
        Some(LeaseRecord::of_flag(flag, held))
    }

    /// Whether its run was alive recently. After a long pause between looks the time starts anew: the file server may
    /// have stopped for all.
    pub(super) fn lives(&mut self, now: Instant) -> bool {
        let by = if self.named.is_some() { PublishMethod::Names } else { PublishMethod::Locks };
        let since = |then: Instant| now.duration_since(then);
        if self.beat.is_none_or(|beat| since(beat.asked) >= by.beat() / 2) {
            let stamp = self.named.map_or_else(|| touched(&self.file), |named| Some((named.beat.into(), 0)));
            let same = self.beat.filter(|beat| beat.stamp == stamp && stamp.is_some() && since(beat.asked) < by.gone());
            self.beat = Some(Beat { stamp, changed: same.map_or(now, |beat| beat.changed), asked: now });
        }
        self.beat.is_none_or(|beat| since(beat.changed) < by.gone())
    }

    /// Returns the time since its file was touched, or got its name, by this machine's clock.
    fn age(&self) -> Option<Duration> {
        let meta = self.file.metadata().ok()?;
        let since_epoch = |s: i64, ns: i64| Some(Duration::new(s.try_into().ok()?, ns.try_into().ok()?));
        match self.named {
            Some(_) => (SystemTime::UNIX_EPOCH + since_epoch(meta.ctime(), meta.ctime_nsec())?).elapsed().ok(),
            None => meta.modified().ok()?.elapsed().ok(),
        }
    }

    /// Whether its run seems alive at a single look. A file with locks needs no such check: the locks themselves are
    /// queried.
    pub(super) fn seems_alive(&self) -> bool {
        // The factor leaves a margin for clocks that differ.
        self.named.is_none() || self.age().is_none_or(|age| age < 5 * PublishMethod::Names.gone())
    }

    /// Whether no run has it, and no run has touched it for longer than this.
    pub(super) fn is_left(&self, longer: Duration) -> bool {
        let old = self.age().is_some_and(|age| age > longer);
        old && (self.named.is_some() || matches!(flag(&self.file), Ok(None)))
    }
}

/// Returns the time of a file's last change, from the file server.
#[cfg(target_os = "linux")]
fn touched(file: &File) -> Option<FileVersion> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let found = statx(file, "", AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC, StatxFlags::MTIME);
    found.ok().map(|found| (found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec))
}

/// Like the Linux version, but possibly from a cache: only Linux can bypass its caches.
#[cfg(not(target_os = "linux"))]
fn touched(file: &File) -> Option<FileVersion> {
    let found = file.metadata().ok()?;
    Some((found.mtime(), found.mtime_nsec() as u32))
}

/// Returns the byte that encodes a run's wishes; `None` if no run has this file any more.
fn flag(file: &File) -> io::Result<Option<u32>> {
    Ok(lock::met(file, (FLAGS, END))?.map(|(from, _)| from))
}
