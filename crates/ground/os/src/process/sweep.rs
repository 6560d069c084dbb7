//! Ending everything that a process started, also what made itself a daemon.
//!
//! The sweeper is a child subreaper: orphans below it become its children. So
//! there is something left as long as it has a child, and nothing when it has
//! none: the kernel says so, no list has to be right.

use crate::process::tree;
use std::io;
use std::time::{Duration, Instant};

/// A process in uninterruptible sleep dies when its I/O ends; waiting longer does not help it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Looks without a pause between them. A chain of processes, each of which starts the next and ends, is
/// caught only by one who is faster than a step of it: a look takes some 30 µs, a step that forks 100 µs and more.
const AT_ONCE: u32 = 500;
const PAUSE: Duration = Duration::from_millis(1);

/// Makes orphaned descendants children of this process.
pub fn become_subreaper() {
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
pub fn bury(is_task: impl Fn(libc::pid_t) -> bool, seen: &mut Option<libc::pid_t>) {
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

/// Waits for all children that have ended. False when there is no child at all.
fn reap() -> bool {
    loop {
        // SAFETY: no status is asked for.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } {
            0 => return true,
            -1 if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted => return false,
            _ => {}
        }
    }
}

/// Ends all descendants: asked by SIGTERM, if they have a `grace`, then frozen
/// and killed until none is left. Takes the status of every child, whoever else
/// may wait for it. `Err` names those that SIGKILL did not end within seconds.
pub fn sweep(grace: Duration) -> Result<(), Vec<libc::pid_t>> {
    let own = std::process::id() as libc::pid_t;
    let began = Instant::now();
    if !grace.is_zero() && reap() {
        tree::signal(libc::SIGTERM);
        while reap() && began.elapsed() < grace {
            std::thread::sleep(PAUSE);
        }
    }
    let mut looks = 0;
    while reap() {
        let left = tree::descendants(own);
        // Frozen first: who is about to fork does not, and nobody starts anew what ends.
        tree::send(&left, libc::SIGSTOP);
        tree::send(&left, libc::SIGKILL);
        if began.elapsed() > grace + PATIENCE {
            return Err(left);
        }
        looks += 1;
        if looks > AT_ONCE {
            std::thread::sleep(PAUSE);
        }
    }
    Ok(())
}
