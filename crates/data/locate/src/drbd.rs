//! DRBD: a disk with copies on other hosts. One host mounts it and reads its own copy, unless that is missing or
//! incomplete.

use homing_mounts::MountLine;
use serde::Deserialize;
use std::path::Path;
use std::process::{Command, Stdio};

/// State file of the module in Linux itself (8.4). Version 9 shows only its version there.
const PROC: &str = "/proc/drbd";
/// The program of version 9 that queries the kernel; only root has its folder in the path.
const SETUP: &str = "/usr/sbin/drbdsetup";

/// The output of `drbdsetup status --json`.
#[derive(Deserialize)]
struct Resource {
    devices: Vec<Device>,
}

#[derive(Deserialize)]
struct Device {
    minor: u32,
    #[serde(rename = "disk-state")]
    disk_state: String,
}

/// Returns whether a DRBD is below the mount: `Ok(false)` if none is, `Ok(true)` if its copy on this host is
/// complete. The error is the reason why this host has no complete copy.
pub(crate) fn has_copy(line: &MountLine) -> Result<bool, String> {
    let (major, minor) = (rustix::fs::major(line.dev), rustix::fs::minor(line.dev));
    let device = format!("/sys/dev/block/{major}:{minor}");
    let below = below(Path::new(&device), 0);
    let Some(minor) = below.iter().find_map(|name| minor_of(name)) else { return Ok(false) };
    let old = std::fs::read_to_string(PROC).unwrap_or_default();
    copy_here(minor, disk_state(&old, minor).or_else(status_query(minor)).as_deref()).map(|()| true)
}

/// Returns the names of a block device and of the devices below it, such as those of LVM.
fn below(device: &Path, depth: u8) -> Vec<String> {
    /// The most layers. LVM, RAID and encryption use few; the bound also ends a circle.
    const DEEPEST: u8 = 8;
    let Ok(real) = device.canonicalize() else { return Vec::new() };
    let own = real.file_name().map(|name| name.to_string_lossy().into_owned());
    let slaves = std::fs::read_dir(real.join("slaves")).into_iter().flatten().flatten();
    let deeper = slaves.filter(|_| depth < DEEPEST).flat_map(|slave| below(&slave.path(), depth + 1));
    own.into_iter().chain(deeper).collect()
}

/// Parses `drbd0`, and its partition `drbd0p1`.
fn minor_of(name: &str) -> Option<u32> {
    name.strip_prefix("drbd")?.split('p').next()?.parse().ok()
}

/// Reads the state of this host's disk from [`PROC`]: ` 0: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate C
/// r-----`.
fn disk_state(text: &str, minor: u32) -> Option<String> {
    let line = text.lines().find(|line| line.trim_start().starts_with(&format!("{minor}: ")))?;
    let states = line.split(' ').find_map(|word| word.strip_prefix("ds:"))?;
    states.split('/').next().map(String::from)
}

fn status_query(minor: u32) -> impl FnOnce() -> Option<String> {
    move || {
        let mut command = Command::new(SETUP);
        command.args(["status", "--json"]).stdin(Stdio::null()).stderr(Stdio::null());
        of_status(&command.output().ok()?.stdout, minor)
    }
}

fn of_status(json: &[u8], minor: u32) -> Option<String> {
    let all: Vec<Resource> = serde_json::from_slice(json).ok()?;
    all.into_iter().flat_map(|one| one.devices).find(|device| device.minor == minor).map(|device| device.disk_state)
}

fn copy_here(minor: u32, state: Option<&str>) -> Result<(), String> {
    match state {
        Some("UpToDate") => Ok(()),
        Some("Diskless") => {
            Err(format!("its disk, drbd{minor}, has copies on its peers only, and only this host can read it"))
        }
        Some(other) => Err(format!(
            "the copy of its disk, drbd{minor}, on this host is {other}: this host reads parts of it from a peer"
        )),
        None => {
            Err(format!("neither {PROC} nor drbdsetup reports whether its disk, drbd{minor}, has a copy on this host"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_counts_when_it_is_whole() {
        let text = "version: 8.4.11 (api:1/proto:86-101)\nsrcversion: 0F54FB9E8D5B2B2C8E5F4E5\n \
            0: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate C r-----\n    ns:1048 nr:0 dw:1048 dr:2\n \
            1: cs:Connected ro:Primary/Secondary ds:Diskless/UpToDate C r-----\n\
            11: cs:SyncTarget ro:Primary/Primary ds:Inconsistent/UpToDate C r-----\n";
        let of = |minor| copy_here(minor, disk_state(text, minor).as_deref());
        assert_eq!(of(0), Ok(()));
        assert!(of(1).is_err_and(|why| why.contains("copies on its peers only")));
        assert!(of(11).is_err_and(|why| why.contains("is Inconsistent")));
        assert!(of(2).is_err_and(|why| why.contains("neither ")));
        assert_eq!(["drbd0", "drbd12p3", "drbdx", "sda"].map(minor_of), [Some(0), Some(12), None, None]);
    }

    #[test]
    fn version_9_is_asked() {
        let json = br#"[{"name": "r0", "role": "Primary", "devices": [{"volume": 0, "minor": 3,
            "disk-state": "Diskless", "client": true, "quorum": true}], "connections": []}]"#;
        assert_eq!(of_status(json, 3).as_deref(), Some("Diskless"));
        assert_eq!((of_status(json, 4), of_status(b"", 3)), (None, None));
    }
}
