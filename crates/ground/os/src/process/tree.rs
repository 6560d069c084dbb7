//! Descendants of processes, from /proc.

use crate::process::stat::ProcessStat;
use std::collections::HashMap;
use std::fs;

/// Returns the living descendants of a process, parents before their children. Zombies are harmless and left out.
pub fn descendants(of: libc::pid_t) -> Vec<libc::pid_t> {
    // Some kernels have no such lists. Reading the table of all processes takes milliseconds instead.
    let listed = fs::exists(format!("/proc/self/task/{}/children", std::process::id())).unwrap_or(false);
    let table = if listed { HashMap::new() } else { by_parent() };
    let (mut found, mut next) = (vec![of], 0);
    while let Some(pid) = found.get(next).copied() {
        found.extend(if listed { children(pid) } else { table.get(&pid).cloned().unwrap_or_default() });
        next += 1;
    }
    found.remove(0);
    found.retain(|pid| !is_zombie(*pid));
    found
}

/// Sends a signal to all living descendants of this process.
pub fn signal(signal: libc::c_int) {
    send(&descendants(std::process::id() as libc::pid_t), signal);
}

/// Returns the memory of the living descendants of this process, bytes. Shared memory counts in each of them.
pub fn resident() -> u64 {
    resident_below(std::process::id() as libc::pid_t)
}

/// Returns the memory of the living descendants of a process, bytes. Shared memory counts in each of them.
pub fn resident_below(of: libc::pid_t) -> u64 {
    let pages = |pid: &libc::pid_t| {
        let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        text.split(' ').nth(1)?.parse::<u64>().ok()
    };
    descendants(of).iter().filter_map(pages).sum::<u64>() * rustix::param::page_size() as u64
}

pub(crate) fn send(pids: &[libc::pid_t], signal: libc::c_int) {
    for pid in pids {
        // SAFETY: kill with plain numbers; a process that is gone already is no error here.
        unsafe { libc::kill(*pid, signal) };
    }
}

/// Returns the children of all threads of a process, including zombies.
pub fn children(pid: libc::pid_t) -> Vec<libc::pid_t> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|t| fs::read_to_string(t.path().join("children")).ok());
    lists.flat_map(|l| l.split_ascii_whitespace().filter_map(|p| p.parse().ok()).collect::<Vec<_>>()).collect()
}

fn by_parent() -> HashMap<libc::pid_t, Vec<libc::pid_t>> {
    let mut children: HashMap<libc::pid_t, Vec<libc::pid_t>> = HashMap::new();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|e| e.file_name().to_str()?.parse::<libc::pid_t>().ok()) {
        if let Some(parent) = ProcessStat::of(pid).and_then(|stat| stat.parent()) {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

fn is_zombie(pid: libc::pid_t) -> bool {
    ProcessStat::of_living(pid).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_lists_and_the_table_tell_the_same() {
        let mut child = Command::new("sh").args(["-c", "sleep 600; true"]).spawn().unwrap();
        let pid = child.id() as libc::pid_t;
        while children(pid).is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(by_parent().get(&pid), Some(&children(pid)));
        let below = descendants(std::process::id() as libc::pid_t);
        assert!(below.contains(&pid) && below.contains(&children(pid)[0]));
        assert!(resident_below(pid) > 0, "its sleep has memory");
        send(&descendants(pid), libc::SIGKILL);
        child.wait().unwrap();
        assert!(descendants(pid).is_empty());
    }
}
