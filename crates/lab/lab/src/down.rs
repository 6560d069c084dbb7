//! `lab down`: removes every remainder of a lab. It reads from the process, mount, loop and interface tables which
//! parts exist, and may be repeated.

use crate::error::{Doing, LabError, Result};
use crate::plan::LabPlan;
use crate::process::{self, ProcessScope};
use crate::{cgroup, folder, mounts, net, program};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

/// Takes a lab down. Returns whether there was one.
pub fn down(name: &str) -> Result<bool> {
    program::need_root()?;
    crate::spec::check_name(name)?;
    let dir = LabPlan::dir_of(name);
    let plan = folder::load(name).ok();
    let groups = format!("homing-lab/{name}");
    let found = dir.exists() || !process::all_of(&dir, ProcessScope::All, []).is_empty();

    let locks = plan.as_ref().map(nspawn_locks).unwrap_or_default();
    let hosts = || process::all_of(&dir, ProcessScope::Hosts, cgroup::members(&groups));
    kill(name, hosts)?;
    mounts::make_read_only_below(&dir)?;
    mounts::unmount_below_except(&dir, "hdd")?;
    // The kernel releases the mounts of the hosts' namespaces a moment after their last process. A host that a killed
    // `up` had just forked may enter its group, or mount, only now.
    let free = settle(name, "loop device", || {
        let _ = kill(name, hosts);
        let _ = mounts::unmount_below_except(&dir, "hdd");
        mounts::detach_loops_below(&dir);
        // A mount namespace that another program made meanwhile holds a copy of the mount. That copy goes with the
        // folder below, or with the last process whose working directory is there. The rest of the lab need not wait
        // for it.
        let others = |device: &PathBuf| mounts::frees_itself(device) && mounts::held_elsewhere(device);
        mounts::loops_below(&dir).into_iter().filter(|device| !others(device)).collect()
    });
    // A mount may be held in ways that no table shows. A device that the kernel frees by itself is no reason to stop.
    if free.is_err() && !mounts::loops_below(&dir).iter().all(|device| mounts::frees_itself(device)) {
        return free.map(|()| found);
    }
    mounts::unmount_below(&dir)?;
    kill(name, || process::all_of(&dir, ProcessScope::All, []))?;
    settle(name, "control group", || {
        cgroup::remove(&groups);
        cgroup::left(&groups)
    })?;
    cgroup::remove_if_empty("homing-lab");
    if let Some(plan) = &plan {
        net::remove(plan)?;
        settle(name, "interface", || net::interfaces(plan))?;
        forget_nspawn(plan);
    }
    for lock in locks {
        let _ = fs::remove_file(lock);
    }
    remove_folder(name, &dir)?;
    Ok(found)
}

fn kill(name: &str, remaining: impl Fn() -> BTreeSet<i32>) -> Result<()> {
    let left = process::kill_all(PATIENCE, remaining);
    if left.is_empty() {
        return Ok(());
    }
    Err(LabError::Left { name: name.into(), left: format!("processes {left:?} do not end; see /proc/PID/stack") })
}

/// Waits until a table is free of the lab.
fn settle<T: std::fmt::Debug>(name: &str, what: &str, left: impl Fn() -> Vec<T>) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        let now = left();
        if now.is_empty() {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(LabError::Left { name: name.into(), left: format!("{what} {now:?} stays in use") });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the lock files of the hosts' roots, which systemd-nspawn names by device and inode. Works only while the
/// roots are mounted.
fn nspawn_locks(plan: &LabPlan) -> Vec<PathBuf> {
    let of = |root: PathBuf| {
        let meta = fs::metadata(root).ok()?;
        let (device, inode) = (meta.dev(), meta.ino());
        Some(Path::new("/run/systemd/nspawn/locks").join(format!("inode-{device}:{inode}")))
    };
    plan.hosts().iter().filter_map(|h| of(h.root())).collect()
}

/// Removes the files that systemd-nspawn leaves in /run when it is killed.
fn forget_nspawn(plan: &LabPlan) {
    for host in plan.hosts() {
        let _ = fs::remove_dir(Path::new("/run/systemd/nspawn/propagate").join(host.machine()));
        let _ = fs::remove_dir_all(Path::new("/run/systemd/nspawn/unix-export").join(host.machine()));
    }
}

/// Removes the state folder, but only when nothing is mounted in it: the hosts' roots show the machine's own files.
fn remove_folder(name: &str, dir: &Path) -> Result<()> {
    let mounted = mounts::below(dir)?;
    if !mounted.is_empty() {
        return Err(LabError::Left { name: name.into(), left: format!("{mounted:?} stay mounted") });
    }
    match fs::remove_dir_all(dir) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.doing("removing", dir),
    }
}
