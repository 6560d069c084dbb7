//! Finds a lab's processes in `/proc`. No pid file is kept: it would be wrong after a crash, the process table never
//! is.

use crate::plan::HostPlan;
use crate::{qemu, uml};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Returns all processes of the machine.
pub(crate) fn pids() -> Vec<i32> {
    let Ok(proc) = fs::read_dir("/proc") else { return Vec::new() };
    proc.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the arguments of a process; none for kernel threads, zombies and processes that are gone.
fn arguments(pid: i32) -> Vec<Vec<u8>> {
    let raw = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    raw.split(|b| *b == 0).filter(|a| !a.is_empty()).map(<[u8]>::to_vec).collect()
}

fn program_is(arguments: &[Vec<u8>], name: &str) -> bool {
    arguments.first().is_some_and(|a| a.rsplit(|b| *b == b'/').next() == Some(name.as_bytes()))
}

/// Returns the host's systemd-nspawn.
pub(crate) fn nspawn_of(host: &HostPlan) -> Option<i32> {
    let wanted = host.root_argument();
    pids().into_iter().find(|&pid| {
        let args = arguments(pid);
        program_is(&args, "systemd-nspawn") && args.iter().any(|a| a == wanted.as_bytes())
    })
}

fn is_guest_program(arguments: &[Vec<u8>]) -> bool {
    [qemu::PROGRAM, uml::PROGRAM].iter().any(|p| program_is(arguments, p))
}

/// Returns the process that runs a guest.
fn guest_of(host: &HostPlan) -> Option<i32> {
    let dir = host.dir();
    pids().into_iter().find(|&pid| {
        let args = arguments(pid);
        is_guest_program(&args) && args.iter().any(|a| mentions(a, &dir))
    })
}

/// Returns the first process inside the host: the one that is number 1 in its own namespace.
pub fn leader_of(host: &HostPlan) -> Option<i32> {
    if host.is_guest() {
        return guest_of(host);
    }
    let nspawn = nspawn_of(host)?;
    let children = fs::read_to_string(format!("/proc/{nspawn}/task/{nspawn}/children")).ok()?;
    children.split_whitespace().filter_map(|c| c.parse().ok()).find(|&pid| is_first_in_its_namespace(pid))
}

fn is_first_in_its_namespace(pid: i32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
    let Some(ids) = status.lines().find_map(|l| l.strip_prefix("NSpid:")) else { return false };
    let ids: Vec<&str> = ids.split_whitespace().collect();
    ids.len() > 1 && ids.last() == Some(&"1")
}

/// The selection of a lab's processes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessScope {
    /// The hosts alone: their disks can still be unmounted in order.
    Hosts,
    /// The servers of their disks too.
    All,
}

/// Returns every process that belongs to the lab in `dir`. These are its nspawns and guests, and the members of the
/// given control groups. Processes in a mount namespace whose root is one of its overlays belong to it too. So do the
/// servers of its disks with [`ProcessScope::All`].
pub(crate) fn all_of(dir: &Path, kind: ProcessScope, in_groups: impl IntoIterator<Item = i32>) -> BTreeSet<i32> {
    let own = fs::read_link("/proc/self/ns/mnt").ok();
    let me = std::process::id() as i32;
    let mut found: BTreeSet<i32> = in_groups.into_iter().collect();
    for pid in pids() {
        let args = arguments(pid);
        let programs: &[&str] = if kind == ProcessScope::All {
            &["systemd-nspawn", qemu::PROGRAM, uml::PROGRAM, "nbdfuse", "nbdkit"]
        } else {
            &["systemd-nspawn", qemu::PROGRAM, uml::PROGRAM]
        };
        let served = programs.iter().any(|p| program_is(&args, p)) && args.iter().any(|a| mentions(a, dir));
        if served || lives_in(pid, dir, own.as_deref()) {
            found.insert(pid);
        }
    }
    found.remove(&me);
    found
}

/// Whether an argument names something below `dir` (and not below a folder whose name only begins alike).
fn mentions(argument: &[u8], dir: &Path) -> bool {
    let mut needle = dir.as_os_str().as_bytes().to_vec();
    needle.push(b'/');
    argument.windows(needle.len()).any(|w| w == needle)
}

/// Whether a process has a mount namespace of its own with an overlay of the lab in it.
fn lives_in(pid: i32, dir: &Path, own: Option<&Path>) -> bool {
    let Ok(namespace) = fs::read_link(format!("/proc/{pid}/ns/mnt")) else { return false };
    if own == Some(namespace.as_path()) {
        return false;
    }
    let marker = format!("upperdir={}/", dir.display());
    let Ok(table) = fs::read_to_string(format!("/proc/{pid}/mountinfo")) else { return false };
    // Its own root must be the overlay: another namespace of the machine may hold a copy of the mount.
    table.lines().any(|l| l.split(' ').nth(4) == Some("/") && l.contains(&marker))
}

/// Kills until `remaining` finds no process, for at most `patience`. Returns the processes that are left.
pub(crate) fn kill_all(patience: Duration, remaining: impl Fn() -> BTreeSet<i32>) -> BTreeSet<i32> {
    let until = Instant::now() + patience;
    loop {
        let left = remaining();
        if left.is_empty() || Instant::now() > until {
            return left;
        }
        for pid in left.iter().filter_map(|p| Pid::from_raw(*p)) {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_is_not_taken_for_another_whose_name_begins_alike() {
        let dir = Path::new("/var/lib/homing/labs/a");
        assert!(mentions(b"--directory=/var/lib/homing/labs/a/n1/root", dir));
        assert!(!mentions(b"--directory=/var/lib/homing/labs/ab/n1/root", dir));
    }

    #[test]
    fn this_process_leads_no_namespace() {
        assert!(!is_first_in_its_namespace(std::process::id() as i32) || std::process::id() == 1);
    }
}
