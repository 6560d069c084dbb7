//! Looks paths up on this host.

use crate::ask::HostView;
use homing_model::RawText;
use jiff::Timestamp;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

/// Returns the version of rsync as [`homing_model::rsync::VERSION_SCRIPT`] prints it.
fn rsync() -> Option<String> {
    let script = homing_model::rsync::VERSION_SCRIPT;
    let output = Command::new("/bin/sh").args(["-c", script]).stdin(Stdio::null()).output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(String::from)
}

/// Looks up each path, and describes this host.
pub fn look(paths: &[RawText]) -> HostView {
    let lines = homing_mounts::read().unwrap_or_default();
    let one = |path: &RawText| {
        let real = path.as_path().canonicalize().ok()?;
        let meta = fs::metadata(&real).ok().filter(|meta| meta.is_dir())?;
        let volume = homing_mounts::volume_name(&homing_mounts::identified(homing_mounts::holding(&lines, &real)?));
        Some((volume, meta.ino()))
    };
    let (name, boot) = (homing_os::names::own_name(), homing_os::names::boot_id());
    HostView {
        identity: format!("{name} {boot}"),
        exports: fs::read_to_string(homing_mounts::nfs::EXPORTS).unwrap_or_default(),
        paths: paths.iter().map(one).collect(),
        clock: Timestamp::now(),
        rsync: rsync(),
    }
}
