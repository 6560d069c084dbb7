//! Ending everything that this worker started, also what made itself a daemon.
//!
//! The worker is a child subreaper: orphans below it become its children, so
//! all that it started is found by walking the process tree from the worker.

use std::collections::HashMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Time between asking and killing.
const GRACE: Duration = Duration::from_millis(300);
/// A process in uninterruptible sleep dies when its I/O ends; waiting longer does not help it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Makes orphaned descendants children of this process.
pub(crate) fn become_subreaper() {
    // SAFETY: prctl with plain numbers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// All living descendants of this process; zombies are nobody's harm.
fn descendants() -> Vec<libc::pid_t> {
    let mut children: HashMap<libc::pid_t, Vec<libc::pid_t>> = HashMap::new();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|e| e.file_name().to_str()?.parse::<libc::pid_t>().ok()) {
        let Ok(stat) = fs::read(format!("/proc/{pid}/stat")) else { continue };
        // The name in parentheses may hold anything; fields are counted from the last one.
        let Some(close) = stat.iter().rposition(|b| *b == b')') else { continue };
        let rest = String::from_utf8_lossy(&stat[close + 1..]).into_owned();
        let mut fields = rest.split_ascii_whitespace();
        let (state, parent) = (fields.next(), fields.next().and_then(|p| p.parse().ok()));
        if let (Some(state), Some(parent)) = (state, parent)
            && state != "Z"
        {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut open = vec![std::process::id() as libc::pid_t];
    while let Some(pid) = open.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            found.push(*child);
            open.push(*child);
        }
    }
    found
}

fn signal_all(pids: &[libc::pid_t], signal: libc::c_int) {
    for pid in pids {
        // SAFETY: kill with plain numbers; a process that is gone already is no error here.
        unsafe { libc::kill(*pid, signal) };
    }
}

/// Ends all descendants: first asked, then killed until none is left.
pub(crate) fn sweep() {
    let asked = descendants();
    signal_all(&asked, libc::SIGTERM);
    let started = Instant::now();
    while !asked.is_empty() && started.elapsed() < GRACE && !descendants().is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
    while started.elapsed() < PATIENCE {
        let left = descendants();
        if left.is_empty() {
            return;
        }
        signal_all(&left, libc::SIGKILL);
        thread::sleep(Duration::from_millis(2));
    }
}
