//! Reads the machine's mount table and loop devices for a lab's folder.

use crate::error::{Doing, Result};
use crate::{process, program};
use rustix::mount::{MountFlags, UnmountFlags, mount_remount, unmount};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the mount points at or below `dir`, deepest first.
pub(crate) fn below(dir: &Path) -> Result<Vec<PathBuf>> {
    let table = homing_mounts::read().doing("reading", "/proc/self/mountinfo")?;
    let mut found: Vec<PathBuf> =
        table.iter().map(|line| line.mount.point.to_path()).filter(|p| p.starts_with(dir)).collect();
    // Later lines are mounted over earlier ones, so they are unmounted in reverse.
    found.reverse();
    found.sort_by_key(|p| std::cmp::Reverse(p.components().count()));
    Ok(found)
}

/// Unmounts everything at or below `dir`.
pub(crate) fn unmount_below(dir: &Path) -> Result<()> {
    unmount_all(below(dir)?)
}

/// Makes the disks of the hosts in `dir` read-only, and so clean. Another namespace of the machine may hold a copy of
/// such a mount. The kernel writes to the disk when the last copy goes. If the disk has no server by then, the kernel
/// logs I/O errors. A disk stays writable while a process still writes to it.
pub(crate) fn make_read_only_below(dir: &Path) -> Result<()> {
    let table = homing_mounts::read().doing("reading", "/proc/self/mountinfo")?;
    let disks = table.iter().filter(|line| line.mount.source.as_path().starts_with("/dev"));
    for point in disks.map(|line| line.mount.point.to_path()).filter(|p| p.starts_with(dir)) {
        let _ = mount_remount(&point, MountFlags::RDONLY, c"");
    }
    Ok(())
}

/// Unmounts like [`unmount_below`], but leaves mount points of the given file name.
pub(crate) fn unmount_below_except(dir: &Path, name: &str) -> Result<()> {
    unmount_all(below(dir)?.into_iter().filter(|p| p.file_name() != Some(name.as_ref())).collect())
}

fn unmount_all(points: Vec<PathBuf>) -> Result<()> {
    for point in points {
        if unmount(&point, UnmountFlags::empty()).is_err() {
            // A process, such as a user's shell, has its working directory there. A detached mount goes when that
            // process leaves.
            unmount(&point, UnmountFlags::DETACH).doing("unmounting", &point)?;
        }
    }
    Ok(())
}

/// Returns the loop devices whose backing file is below `dir`.
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

/// Detaches those loop devices. The kernel frees a device in use with its last user.
pub(crate) fn detach_loops_below(dir: &Path) {
    for device in loops_below(dir) {
        // Failures are ignored: the caller reads from /sys which devices are left.
        let _ = program::run("detaching the disk of a host", "losetup", &["-d".as_ref(), device.as_os_str()]);
    }
}

/// Whether the kernel frees a loop device by itself after its last use.
pub(crate) fn frees_itself(device: &Path) -> bool {
    let flag = Path::new("/sys/block").join(device.file_name().unwrap_or_default()).join("loop/autoclear");
    // The device may have gone meanwhile.
    fs::read_to_string(flag).map_or(true, |f| f.trim() == "1")
}

/// Whether a process in another mount namespace has the device mounted, where it cannot be unmounted from here.
pub(crate) fn held_elsewhere(device: &Path) -> bool {
    let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let own = namespace("self");
    let holds = |pid: i32| {
        let other = namespace(&pid.to_string()).is_some_and(|n| Some(n) != own);
        let shows = |line: &homing_mounts::MountLine| line.mount.source.as_path() == device;
        other && homing_mounts::of_process(pid).is_ok_and(|table| table.iter().any(shows))
    };
    process::pids().into_iter().any(holds)
}
