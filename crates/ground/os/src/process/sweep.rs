//! Ends every process that a process started, daemons included.
//!
//! The sweeper is a child subreaper: orphans below it become its children. So it has a child as long as any process
//! is left. The kernel reports that, so no list of processes has to be complete.

use crate::process::tree;
use std::io;
use std::time::{Duration, Instant};

/// The time that SIGKILL gets. A process in uninterruptible sleep ends when its I/O ends; waiting longer does not
/// help.
const PATIENCE: Duration = Duration::from_secs(5);
/// The variable in the environment of a process that removes things that a task left elsewhere, as `podman rm` does. Such a
/// process may finish, within [`REMOVAL`].
pub const REMOVER: &str = "HOMING_REMOVER";
/// The time that removers get. A loaded host needs a second for one container; the guard waits 6 s.
const REMOVAL: Duration = Duration::from_secs(4);
/// The number of rounds without a pause. A chain of processes, each of which starts the next and ends, is caught only
/// by rounds that are faster than a step of it. A round takes some 30 µs, a step that forks 100 µs and more.
const AT_ONCE: u32 = 500;
const PAUSE: Duration = Duration::from_millis(1);

/// Makes orphaned descendants children of this process.
pub fn become_subreaper() {
    // SAFETY: prctl with plain numbers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// Returns a child that is a zombie, without reaping it; `Err` if there is no child at all.
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

/// Reaps orphans that have ended, which became children of this process. The leaders of tasks (`is_task`) are left to
/// the slots that wait for them. A zombie that leads a process group may be such a leader of a task that has just
/// begun. It is reaped only if the last call has `seen` it already: then it is a daemon.
pub fn reap_orphans(is_task: impl Fn(libc::pid_t) -> bool, seen: &mut Option<libc::pid_t>) {
    while let Ok(Some(pid)) = zombie() {
        // SAFETY: a plain number; a zombie still has its group.
        let leads = unsafe { libc::getpgid(pid) } == pid;
        if is_task(pid) || (leads && *seen != Some(pid)) {
            *seen = Some(pid);
            return;
        }
        // SAFETY: no other thread waits for it, see above.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
    }
}

/// Reaps all children that have ended. Returns false if there is no child at all.
fn reap() -> bool {
    loop {
        // SAFETY: the status is not stored.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } {
            0 => return true,
            -1 if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted => return false,
            _ => {}
        }
    }
}

/// Waits until no remover is left below `own`, or `until`.
fn await_removers(own: libc::pid_t, until: Instant) {
    while reap() && Instant::now() < until && tree::descendants(own).into_iter().any(is_remover) {
        std::thread::sleep(10 * PAUSE);
    }
}

/// Whether the process began with [`REMOVER`] in its environment.
fn is_remover(pid: libc::pid_t) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment
        .split(|byte| *byte == 0)
        .any(|entry| entry.strip_prefix(REMOVER.as_bytes()).is_some_and(|rest| rest.starts_with(b"=")))
}

/// Ends all descendants: first by SIGTERM, if they have a `grace`, then stops and kills them until none is left. With
/// a grace, removers ([`REMOVER`]) get no SIGTERM and more time. Takes the status of every child, even if another thread waits for it. `Err` lists those that SIGKILL did not end
/// within seconds.
pub fn sweep(grace: Duration) -> Result<(), Vec<libc::pid_t>> {
    let own = std::process::id() as libc::pid_t;
    let began = Instant::now();
    if !grace.is_zero() && reap() {
        let others: Vec<_> = tree::descendants(own).into_iter().filter(|pid| !is_remover(*pid)).collect();
        tree::send(&others, libc::SIGTERM);
        while reap() && began.elapsed() < grace {
            std::thread::sleep(PAUSE);
        }
        await_removers(own, began + REMOVAL);
    }
    let begun_to_kill = Instant::now();
    let mut looks = 0;
    while reap() {
        let left = tree::descendants(own);
        // Stopped first: a stopped process does not fork, and does not replace the processes that end.
        tree::send(&left, libc::SIGSTOP);
        tree::send(&left, libc::SIGKILL);
        if begun_to_kill.elapsed() > PATIENCE {
            return Err(left);
        }
        looks += 1;
        if looks > AT_ONCE {
            std::thread::sleep(PAUSE);
        }
    }
    Ok(())
}
