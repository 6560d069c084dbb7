//! A host's control groups: its share of processor time, and a systemd hierarchy. Each host has a hierarchy of its
//! own, so two hosts' systemds do not share a group.

use crate::error::{Doing, Result};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const BASE: &str = "/sys/fs/cgroup";
const PERIOD_US: f64 = 100_000.0;

/// Returns this machine's hierarchies that matter to a host.
fn hierarchies() -> Vec<PathBuf> {
    let base = Path::new(BASE);
    if base.join("cgroup.controllers").exists() {
        return vec![base.to_path_buf()];
    }
    ["cpu", "systemd", "unified"].iter().map(|h| base.join(h)).filter(|h| h.join("cgroup.procs").exists()).collect()
}

/// Makes the groups named `name` and sets the limit on processor time.
/// Returns their `cgroup.procs` files, open for writing.
pub(crate) fn make(name: &str, cpus: Option<f64>) -> Result<Vec<File>> {
    let mut doors = Vec::new();
    for hierarchy in hierarchies() {
        let group = hierarchy.join(name);
        fs::create_dir_all(&group).doing("making control group", &group)?;
        if let Some(cpus) = cpus {
            limit(&hierarchy, &group, cpus)?;
        }
        doors.push(door(&group)?);
    }
    Ok(doors)
}

fn limit(hierarchy: &Path, group: &Path, cpus: f64) -> Result<()> {
    let quota = (cpus * PERIOD_US).round().max(1000.0);
    let v1 = group.join("cpu.cfs_quota_us");
    if v1.exists() {
        return fs::write(&v1, format!("{quota}")).doing("limiting processor time in", &v1);
    }
    if hierarchy != Path::new(BASE) {
        return Ok(());
    }
    // In version 2 a controller must be handed down at every level above the group.
    let mut above = hierarchy.to_path_buf();
    for part in group.strip_prefix(hierarchy).unwrap_or(group).components() {
        let handed = above.join("cgroup.subtree_control");
        fs::write(&handed, "+cpu").doing("handing down the cpu controller in", &handed)?;
        above.push(part);
    }
    let v2 = group.join("cpu.max");
    fs::write(&v2, format!("{quota} {PERIOD_US}")).doing("limiting processor time in", &v2)
}

fn door(group: &Path) -> Result<File> {
    let procs = group.join("cgroup.procs");
    OpenOptions::new().write(true).open(&procs).doing("opening", &procs)
}

/// Makes a command enter the groups of these doors before it runs.
pub(crate) fn enter(command: &mut Command, mut doors: Vec<File>) {
    // SAFETY: writing to descriptors opened before the fork is async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            for door in &mut doors {
                door.write_all(b"0")?;
            }
            Ok(())
        });
    }
}

/// Opens the group that carries the limit, for a process to enter. `None` when the machine has none. It is this group
/// alone, because the groups of the host's systemd have no place for a process from outside.
pub(crate) fn enter_cpu(name: &str) -> Option<File> {
    let group = Path::new(BASE).join("cpu").join(name);
    door(&group).ok()
}

/// Returns the processes in the groups named `name` and below.
pub(crate) fn members(name: &str) -> Vec<i32> {
    let mut pids = Vec::new();
    for hierarchy in hierarchies() {
        walk(&hierarchy.join(name), &mut |group| {
            let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            pids.extend(listed.lines().filter_map(|l| l.parse::<i32>().ok()));
        });
    }
    pids
}

/// Removes the groups named `name` and below. Groups that still hold processes stay.
pub(crate) fn remove(name: &str) {
    for hierarchy in hierarchies() {
        walk(&hierarchy.join(name), &mut |group| {
            let _ = fs::remove_dir(group);
        });
    }
}

/// Removes the groups named `name` when no other lab has groups in them.
pub(crate) fn remove_if_empty(name: &str) {
    for hierarchy in hierarchies() {
        let _ = fs::remove_dir(hierarchy.join(name));
    }
}

/// Returns the groups of this name that exist.
pub(crate) fn left(name: &str) -> Vec<PathBuf> {
    hierarchies().into_iter().map(|h| h.join(name)).filter(|g| g.exists()).collect()
}

/// Visits a group after the groups below it.
fn walk(group: &Path, visit: &mut dyn FnMut(&Path)) {
    let Ok(entries) = fs::read_dir(group) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            walk(&entry.path(), visit);
        }
    }
    visit(group);
}
