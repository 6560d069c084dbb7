//! The machine's mount table and loop devices, as far as a lab's folder is concerned.

use crate::error::{Doing, Result};
use crate::program;
use rustix::mount::{UnmountFlags, unmount};
use std::fs;
use std::path::{Path, PathBuf};

/// Mount points at or below `dir`, deepest first.
pub(crate) fn below(dir: &Path) -> Result<Vec<PathBuf>> {
    let table = fs::read_to_string("/proc/self/mountinfo").doing("reading", "/proc/self/mountinfo")?;
    let mut found: Vec<PathBuf> = points(&table).into_iter().filter(|p| p.starts_with(dir)).collect();
    // Later lines are mounted over earlier ones; undo in reverse.
    found.reverse();
    found.sort_by_key(|p| std::cmp::Reverse(p.components().count()));
    Ok(found)
}

/// Mount points of a mountinfo text, in its order. Lab paths hold no characters that the kernel escapes.
fn points(table: &str) -> Vec<PathBuf> {
    table.lines().filter_map(|l| l.split(' ').nth(4)).map(PathBuf::from).collect()
}

/// Unmounts everything at or below `dir`.
pub(crate) fn unmount_below(dir: &Path) -> Result<()> {
    unmount_all(below(dir)?)
}

/// As [`unmount_below`], but leaves mount points of the given file name.
pub(crate) fn unmount_below_except(dir: &Path, name: &str) -> Result<()> {
    unmount_all(below(dir)?.into_iter().filter(|p| p.file_name() != Some(name.as_ref())).collect())
}

fn unmount_all(points: Vec<PathBuf>) -> Result<()> {
    for point in points {
        if unmount(&point, UnmountFlags::empty()).is_err() {
            // Somebody's shell stands in it. Detached, it goes when they leave.
            unmount(&point, UnmountFlags::DETACH).doing("unmounting", &point)?;
        }
    }
    Ok(())
}

/// Loop devices whose backing file lies below `dir`.
pub(crate) fn loops_below(dir: &Path) -> Vec<PathBuf> {
    let Ok(blocks) = fs::read_dir("/sys/block") else { return Vec::new() };
    blocks
        .flatten()
        .filter(|b| {
            fs::read_to_string(b.path().join("loop/backing_file"))
                .is_ok_and(|f| Path::new(f.trim_end()).starts_with(dir))
        })
        .map(|b| Path::new("/dev").join(b.file_name()))
        .collect()
}

/// Detaches those loop devices; one that is in use is freed by the kernel with its last user.
pub(crate) fn detach_loops_below(dir: &Path) {
    for device in loops_below(dir) {
        // What is left of them is asked of /sys.
        let _ = program::run("detaching the disk of a host", "losetup", &["-d".as_ref(), device.as_os_str()]);
    }
}

/// Whether the kernel frees all those loop devices by itself when nobody uses them any more.
pub(crate) fn loops_free_themselves(dir: &Path) -> bool {
    let itself = |device: &PathBuf| {
        let flag = Path::new("/sys/block").join(device.file_name().unwrap_or_default()).join("loop/autoclear");
        // It may have gone between the two questions.
        fs::read_to_string(flag).map_or(true, |f| f.trim() == "1")
    };
    loops_below(dir).iter().all(itself)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_the_fifth_column() {
        let table = "22 27 0:21 / /proc rw,relatime - proc proc rw\n40 27 0:9 /x /var/lib/a rw - overlay overlay rw\n";
        assert_eq!(points(table), [PathBuf::from("/proc"), PathBuf::from("/var/lib/a")]);
    }
}
