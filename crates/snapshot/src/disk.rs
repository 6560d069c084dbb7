//! How busy the disk below a folder is.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Looks that are kept: longer than anybody asks back.
const KEPT: Duration = Duration::from_secs(30);

/// Watches one disk.
#[derive(Debug)]
pub struct Disk {
    stat: PathBuf,
    reads_only: bool,
    looks: VecDeque<(Instant, u64)>,
}

impl Disk {
    /// The disk below a folder; `None` where it has none of its own that is known, as on a network or in memory.
    /// `reads_only`: writes are not counted, since they may be those of the copy itself, which the kernel makes later.
    pub fn below(folder: &Path, reads_only: bool) -> Option<Disk> {
        let of = |dev: u64| {
            let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
            Some(PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"))).filter(|path| path.exists())
        };
        // btrfs gives each subvolume a number of its own: its mount tells the disk.
        let source = || {
            let lines = homing_mounts::read().ok()?;
            let line = homing_mounts::holding(&lines, &folder.canonicalize().ok()?)?.mount.source.to_path();
            line.starts_with("/dev").then(|| fs::metadata(line).ok()).flatten().map(|meta| meta.rdev())
        };
        let stat = fs::metadata(folder).ok().and_then(|meta| of(meta.dev())).or_else(|| of(source()?))?;
        Some(Disk { stat, reads_only, looks: VecDeque::new() })
    }

    /// Notes what it has done up to now.
    pub fn look(&mut self, now: Instant) {
        let text = fs::read_to_string(&self.stat).unwrap_or_default();
        if let Some(busy) = busy_ms(&text, self.reads_only) {
            self.looks.push_back((now, busy));
        }
        while self.looks.front().is_some_and(|(at, _)| now.duration_since(*at) > KEPT) {
            self.looks.pop_front();
        }
    }

    /// The part of the time since then in which it worked, from 0 to 1; `None` before two looks.
    pub fn busy(&self, since: Instant) -> Option<f64> {
        let first = self.looks.iter().find(|(at, _)| *at >= since)?;
        let last = self.looks.back()?;
        let passed = last.0.duration_since(first.0).as_secs_f64() * 1000.0;
        let worked = last.1.saturating_sub(first.1) as f64;
        (passed > 0.0).then(|| (worked / passed).min(1.0))
    }
}

/// Milliseconds that a disk was busy, from its `stat` in sysfs (Documentation/block/stat.rst of Linux): those with a
/// request under way, or those that reads have waited for it.
fn busy_ms(stat: &str, reads_only: bool) -> Option<u64> {
    stat.split_ascii_whitespace().nth(if reads_only { 3 } else { 9 })?.parse().ok()
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
        let looks = [(at(0), 0), (at(1000), 900), (at(2000), 1000)].into();
        let disk = Disk { stat: "/none".into(), reads_only: false, looks };
        assert_eq!(disk.busy(at(0)), Some(0.5));
        assert_eq!(disk.busy(at(500)), Some(0.1));
        assert_eq!(disk.busy(at(2000)), None);
    }
}
