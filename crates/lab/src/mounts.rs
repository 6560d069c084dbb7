//! The machine's mount table and loop devices, as far as a lab's folder is concerned.

use crate::error::{Doing, Result};
use crate::{process, program};
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

/// Whether the kernel frees a loop device by itself when nobody uses it any more.
pub(crate) fn frees_itself(device: &Path) -> bool {
    let flag = Path::new("/sys/block").join(device.file_name().unwrap_or_default()).join("loop/autoclear");
    // It may have gone between the two questions.
    fs::read_to_string(flag).map_or(true, |f| f.trim() == "1")
}

/// Whether a process in another mount namespace has the device mounted, where it cannot be unmounted from here.
pub(crate) fn held_elsewhere(device: &Path) -> bool {
    let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let own = namespace("self");
    let holds = |pid: i32| {
        let other = namespace(&pid.to_string()).is_some_and(|n| Some(n) != own);
        other && fs::read_to_string(format!("/proc/{pid}/mountinfo")).is_ok_and(|table| shows(&table, device))
    };
    process::pids().into_iter().any(holds)
}

/// Whether the device is the source of a mount of a mountinfo text.
fn shows(table: &str, device: &Path) -> bool {
    let source = |line: &str| Some(line.split_once(" - ")?.1.split(' ').nth(1)?.to_string());
    table.lines().filter_map(source).any(|s| Path::new(&s) == device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_the_fifth_column() {
        let table = "22 27 0:21 / /proc rw,relatime - proc proc rw\n40 27 0:9 /x /var/lib/a rw - overlay overlay rw\n";
        assert_eq!(points(table), [PathBuf::from("/proc"), PathBuf::from("/var/lib/a")]);
    }

    #[test]
    fn a_device_is_the_source_of_a_mount() {
        let table = "50 27 7:1 / /mnt/loop10 rw shared:1 - ext4 /dev/loop1 rw\n";
        assert!(shows(table, Path::new("/dev/loop1")));
        assert!(!shows(table, Path::new("/dev/loop10")) && !shows(table, Path::new("/mnt/loop10")));
    }
}
