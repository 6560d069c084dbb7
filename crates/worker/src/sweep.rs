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

/// A child that is a zombie, left as it is; `Err` when there is no child at all.
fn zombie() -> Result<Option<libc::pid_t>, ()> {
    // SAFETY: siginfo is plain data that waitid fills in.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        match libc::waitid(libc::P_ALL, 0, &mut info, flags) {
            0 => Ok(Some(info.si_pid()).filter(|pid| *pid > 0)),
            _ => Err(()),
        }
    }
}

/// Buries orphans that ended: they became our children. A task's leader is its
/// slot's to wait for; leaders are alone in having started a group, but for
/// daemons, which are buried when they were `seen` as zombies a look before.
pub(crate) fn bury(is_task: impl Fn(libc::pid_t) -> bool, seen: &mut Option<libc::pid_t>) {
    while let Ok(Some(pid)) = zombie() {
        // SAFETY: a plain number; a zombie still has its group.
        let leads = unsafe { libc::getpgid(pid) } == pid;
        if is_task(pid) || (leads && *seen != Some(pid)) {
            *seen = Some(pid);
            return;
        }
        // SAFETY: nobody else waits for it, see above.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
    }
}

/// All living descendants of this process; zombies are nobody's harm.
fn descendants() -> Vec<libc::pid_t> {
    // Most workers have none at their end, and the table of processes can be long.
    if zombie().is_err() {
        return Vec::new();
    }
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
