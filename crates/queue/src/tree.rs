//! All that a job started: the living descendants of its keeper, which is a
//! subreaper, so that what made itself a daemon is found too.

use std::fs;

/// Makes orphaned descendants children of this process.
pub(crate) fn become_subreaper() {
    // SAFETY: prctl with plain numbers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// Living descendants of this process, zombies left out.
pub(crate) fn descendants() -> Vec<libc::pid_t> {
    let mut found = Vec::new();
    let mut open = vec![std::process::id() as libc::pid_t];
    while let Some(pid) = open.pop() {
        for child in children(pid) {
            open.push(child);
            if !is_zombie(child) {
                found.push(child);
            }
        }
    }
    found
}

fn children(pid: libc::pid_t) -> Vec<libc::pid_t> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|t| fs::read_to_string(t.path().join("children")).ok());
    lists.flat_map(|l| l.split_ascii_whitespace().filter_map(|p| p.parse().ok()).collect::<Vec<_>>()).collect()
}

fn is_zombie(pid: libc::pid_t) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| matches!(rest.trim_start().chars().next(), Some('Z' | 'X')))
}

/// Sends a signal to all of them.
pub(crate) fn signal(signal: libc::c_int) {
    for pid in descendants() {
        // SAFETY: kill with plain numbers; a process that is gone is no error here.
        unsafe { libc::kill(pid, signal) };
    }
}
