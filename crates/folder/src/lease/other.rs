//! What one run's file says to the others: its bytes that are locked.

use crate::lock;
use std::fs::{DirEntry, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// More leases than this nobody has.
pub(super) const MOST: u32 = 1 << 16;
/// From this byte on one is locked while the run goes on: its offset says the run's limit (0: none), doubled, and
/// one more when it waits for leases.
pub(super) const FLAGS: u32 = 1 << 17;
/// Behind all flags.
const END: u32 = FLAGS + 2 * MOST;
/// A run touches its file so often,
pub(super) const BEAT: Duration = Duration::from_secs(5);
/// and counts as gone when nobody has seen it do so for this long, whatever its locks say: MooseFS kept those of a
/// host that died for more than 150 s, NFS 4 for 90 s. A file server that is slow must not make a run seem dead.
const DEAD: Duration = Duration::from_secs(30);

/// The file of somebody else's run.
#[derive(Debug)]
pub(super) struct Other {
    pub(super) file: File,
    pub(super) inode: u64,
    pub(super) uid: u32,
    /// What it held when it was found not to take what it could.
    pub(super) passed_over: Option<u32>,
    beat: Option<Beat>,
}

/// When a run's file was seen to be touched.
#[derive(Clone, Copy, Debug)]
struct Beat {
    stamp: Option<(i64, u32)>,
    changed: Instant,
    asked: Instant,
}

impl Other {
    /// What is no regular file, or cannot be opened, holds nothing; a pipe is not waited for.
    pub(super) fn of(entry: &DirEntry) -> Option<Other> {
        if !entry.file_type().ok()?.is_file() {
            return None;
        }
        let file = crate::open_plain(&entry.path()).ok()?;
        let meta = file.metadata().ok()?;
        Some(Other { inode: meta.ino(), uid: meta.uid(), file, passed_over: None, beat: None })
    }

    /// Whether its run waits, its limit, and its leases; `None` when there is no such run any more, whose file may be
    /// gone on the file server.
    pub(super) fn has(&self) -> Option<(bool, Option<u32>, u32)> {
        let (waits, limit) = flags(&self.file).ok()??;
        let held = lock::met(&self.file, (0, MOST)).ok()?.map_or(0, |(from, to)| to - from);
        Some((waits, limit, held))
    }

    /// Whether its run was there of late.
    pub(super) fn lives(&mut self, now: Instant) -> bool {
        if self.beat.is_none_or(|beat| now.duration_since(beat.asked) >= BEAT) {
            let stamp = touched(&self.file);
            let changed =
                self.beat.filter(|beat| beat.stamp == stamp && stamp.is_some()).map_or(now, |beat| beat.changed);
            self.beat = Some(Beat { stamp, changed, asked: now });
        }
        self.beat.is_none_or(|beat| now.duration_since(beat.changed) < DEAD)
    }
}

/// When a file was changed last, as the file server has it.
#[cfg(target_os = "linux")]
fn touched(file: &File) -> Option<(i64, u32)> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let found = statx(file, "", AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC, StatxFlags::MTIME);
    found.ok().map(|found| (found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec))
}

/// Only Linux can ask past its caches.
#[cfg(not(target_os = "linux"))]
fn touched(file: &File) -> Option<(i64, u32)> {
    let found = file.metadata().ok()?;
    Some((found.mtime(), found.mtime_nsec() as u32))
}

/// Whether a run waits, and its limit; `None` when no run has this file any more.
pub(super) fn flags(file: &File) -> io::Result<Option<(bool, Option<u32>)>> {
    let flag = lock::met(file, (FLAGS, END))?.map(|(from, _)| from - FLAGS);
    Ok(flag.map(|flag| (flag % 2 == 1, Some(flag / 2).filter(|limit| *limit > 0))))
}
