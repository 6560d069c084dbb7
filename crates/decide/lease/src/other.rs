//! What somebody else's file says.

use super::own::By;
use super::place::Found;
use super::said::{END, FLAGS, MOST, Named, Said};
use homing_os::folder::lock;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant, SystemTime};

/// The file of somebody else's run.
#[derive(Debug)]
pub(super) struct Other {
    pub(super) file: File,
    pub(super) uid: u32,
    /// What its name says, where its name does.
    pub(super) named: Option<Named>,
    /// What it held when it was found not to take what it could.
    pub(super) passed_over: Option<u32>,
    pub(super) beat: Option<Beat>,
}

/// When a file was changed last, seconds and nanoseconds as the file server has it, or which of its names it has.
type Stamp = (i64, u32);

/// When a run's file was seen to be touched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beat {
    stamp: Option<Stamp>,
    changed: Instant,
    asked: Instant,
}

impl Other {
    /// What is no regular file, or cannot be opened, holds nothing; a pipe is not waited for.
    pub(super) fn of(Found { entry, named, .. }: &Found) -> Option<Other> {
        if !entry.file_type().ok()?.is_file() {
            return None;
        }
        let file = homing_os::folder::open_plain(&entry.path()).ok()?;
        let meta = file.metadata().ok()?;
        Some(Other { uid: meta.uid(), file, named: *named, passed_over: None, beat: None })
    }

    /// What its run says; `None` when there is no such run any more, whose file may be gone on the file server.
    pub(super) fn has(&self) -> Option<Said> {
        if let Some(named) = self.named {
            return Some(named.said);
        }
        let flag = flag(&self.file).ok()??;
        let held = lock::met(&self.file, (0, MOST)).ok()?.map_or(0, |(from, to)| to - from);
        Some(Said::of_flag(flag, held))
    }

    /// Whether its run was there of late. Who has not looked for a while asks anew: the file server may have stood still
    /// for all.
    pub(super) fn lives(&mut self, now: Instant) -> bool {
        let by = if self.named.is_some() { By::Names } else { By::Locks };
        let since = |then: Instant| now.duration_since(then);
        if self.beat.is_none_or(|beat| since(beat.asked) >= by.beat() / 2) {
            let stamp = self.named.map_or_else(|| touched(&self.file), |named| Some((named.beat.into(), 0)));
            let same = self.beat.filter(|beat| beat.stamp == stamp && stamp.is_some() && since(beat.asked) < by.gone());
            self.beat = Some(Beat { stamp, changed: same.map_or(now, |beat| beat.changed), asked: now });
        }
        self.beat.is_none_or(|beat| since(beat.changed) < by.gone())
    }

    /// When its file was touched, or got its name, by this machine's clock.
    fn age(&self) -> Option<Duration> {
        let meta = self.file.metadata().ok()?;
        let since_epoch = |s: i64, ns: i64| Some(Duration::new(s.try_into().ok()?, ns.try_into().ok()?));
        match self.named {
            Some(_) => (SystemTime::UNIX_EPOCH + since_epoch(meta.ctime(), meta.ctime_nsec())?).elapsed().ok(),
            None => meta.modified().ok()?.elapsed().ok(),
        }
    }

    /// As much can be said by who looks only once. A file that locks tell of is asked for those.
    pub(super) fn seems_alive(&self) -> bool {
        // A clock may be another by so much, and then some.
        self.named.is_none() || self.age().is_none_or(|age| age < 5 * By::Names.gone())
    }

    /// Whether no run has it, and none has touched it for longer than this.
    pub(super) fn is_left(&self, longer: Duration) -> bool {
        let old = self.age().is_some_and(|age| age > longer);
        old && (self.named.is_some() || matches!(flag(&self.file), Ok(None)))
    }
}

/// When a file was changed last, asked of the file server.
#[cfg(target_os = "linux")]
fn touched(file: &File) -> Option<Stamp> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let found = statx(file, "", AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC, StatxFlags::MTIME);
    found.ok().map(|found| (found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec))
}

/// Only Linux can ask past its caches.
#[cfg(not(target_os = "linux"))]
fn touched(file: &File) -> Option<Stamp> {
    let found = file.metadata().ok()?;
    Some((found.mtime(), found.mtime_nsec() as u32))
}

/// The byte that tells what a run wishes; `None` when no run has this file any more.
fn flag(file: &File) -> io::Result<Option<u32>> {
    Ok(lock::met(file, (FLAGS, END))?.map(|(from, _)| from))
}
