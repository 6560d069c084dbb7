//! All that a job started: the living descendants of its keeper, which is a
//! subreaper, so that what made itself a daemon is found too.

use std::fs;
use std::path::Path;

/// The variable by which a job's processes are known when their keeper is gone.
pub(crate) const MARK: &str = "HOMING_JOB_FOLDER";

/// Its value.
pub(crate) fn mark(dir: &Path, index: u32) -> String {
    format!("{}:{index}", dir.display())
}

/// Kills what a killed keeper has left: it would run without slots. Only the
/// first process of a job dies with its keeper by itself.
pub(crate) fn bury(dir: &Path, index: u32) {
    let line = format!("{MARK}={}", mark(dir, index)).into_bytes();
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in numbers.filter_map(|e| e.file_name().to_str()?.parse::<libc::pid_t>().ok()) {
        // Those of other users cannot be read.
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        if pid != std::process::id() as libc::pid_t && environ.split(|b| *b == 0).any(|v| v == line) {
            // SAFETY: kill with plain numbers.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
}

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
