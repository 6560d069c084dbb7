//! Measures how busy the disk below a folder is.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long looks are kept: longer than any caller looks back.
const KEPT: Duration = Duration::from_secs(30);

/// Watches one disk.
#[derive(Debug)]
pub struct DiskMonitor {
    stat: PathBuf,
    reads_only: bool,
    looks: VecDeque<DiskSample>,
}

#[derive(Clone, Copy, Debug)]
struct DiskSample {
    at: Instant,
    /// Milliseconds in which the disk was busy.
    busy: u64,
    /// Bytes that the disk has read, and those that the copy has read, where both are known.
    read: Option<(u64, u64)>,
}

impl DiskMonitor {
    /// Returns the disk below a folder.
    /// `None`: no disk of its own is known, as for a folder on a network or in memory.
    /// `reads_only`: do not count writes. They may be those of the copy itself, which the kernel makes later.
    pub fn below(folder: &Path, reads_only: bool) -> Option<DiskMonitor> {
        let of = |dev: u64| {
            let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
            Some(PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"))).filter(|path| path.exists())
        };
        // btrfs gives each subvolume a device number of its own: the mount names the disk.
        let source = || {
            let lines = homing_mounts::read().ok()?;
            let line = homing_mounts::holding(&lines, &folder.canonicalize().ok()?)?.mount.source.to_path();
            line.starts_with("/dev").then(|| fs::metadata(line).ok()).flatten().map(|meta| meta.rdev())
        };
        let stat = fs::metadata(folder).ok().and_then(|meta| of(meta.dev())).or_else(|| of(source()?))?;
        Some(DiskMonitor { stat, reads_only, looks: VecDeque::new() })
    }

    /// Notes the state of the disk now. `own`: the bytes that the copy has read from it.
    pub fn look(&mut self, own: Option<u64>, now: Instant) {
        let text = fs::read_to_string(&self.stat).unwrap_or_default();
        if let Some(busy) = busy_ms(&text, self.reads_only) {
            self.looks.push_back(DiskSample { at: now, busy, read: read_bytes(&text).zip(own) });
        }
        while self.looks.front().is_some_and(|look| now.duration_since(look.at) > KEPT) {
            self.looks.pop_front();
        }
    }

    /// Returns the part of the bytes read since then that was not for the copy, from 0 to 1; `None`: unknown.
    pub fn of_others(&self, since: Instant) -> Option<f64> {
        let mut read = self.looks.iter().filter(|look| look.at >= since).filter_map(|look| look.read);
        let first = read.next()?;
        let last = read.next_back().unwrap_or(first);
        let (all, own) = (last.0.saturating_sub(first.0), last.1.saturating_sub(first.1));
        (all > 0).then(|| all.saturating_sub(own) as f64 / all as f64)
    }

    /// Returns the part of the time since then in which the disk worked, from 0 to 1; `None` before two looks.
    pub fn busy(&self, since: Instant) -> Option<f64> {
        let first = self.looks.iter().find(|look| look.at >= since)?;
        let last = self.looks.back()?;
        let passed = last.at.duration_since(first.at).as_secs_f64() * 1000.0;
        let worked = last.busy.saturating_sub(first.busy) as f64;
        (passed > 0.0).then(|| (worked / passed).min(1.0))
    }
}

/// Returns the milliseconds that a disk was busy, from its `stat` in sysfs (Documentation/block/stat.rst of Linux).
/// They are the time with a request under way, or the time that reads have waited for it.
fn busy_ms(stat: &str, reads_only: bool) -> Option<u64> {
    stat.split_ascii_whitespace().nth(if reads_only { 3 } else { 9 })?.parse().ok()
}

/// Returns the bytes that a disk has read, from the same file, which counts sectors of 512 bytes.
fn read_bytes(stat: &str) -> Option<u64> {
    stat.split_ascii_whitespace().nth(2)?.parse::<u64>().ok()?.checked_mul(512)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_a_part_of_the_time_since_a_moment() {
        let stat = "  100 0 800 250 7 0 56 9 0 400 259 0 0 0 0 0 0\n";
        assert_eq!((busy_ms(stat, true), busy_ms(stat, false), busy_ms("", false)), (Some(250), Some(400), None));
        let begun = Instant::now();
        let at = |ms: u64| begun + Duration::from_millis(ms);
        let look = |ms, busy, all, own| DiskSample { at: at(ms), busy, read: Some((all, own)) };
        let looks = [look(0, 0, 0, 0), look(1000, 900, 4096, 4096), look(2000, 1000, 12288, 8192)].into();
        let disk = DiskMonitor { stat: "/none".into(), reads_only: false, looks };
        assert_eq!(
            (read_bytes(stat), disk.of_others(at(0)), disk.of_others(at(500))),
            (Some(409_600), Some(1.0 / 3.0), Some(0.5))
        );
        assert_eq!(disk.of_others(at(2000)), None);
        assert_eq!(disk.busy(at(0)), Some(0.5));
        assert_eq!(disk.busy(at(500)), Some(0.1));
        assert_eq!(disk.busy(at(2000)), None);
    }
}
