//! A guard over a process: a parent that outlives it, and then ends all processes that it started. The guard needs no
//! information from the dead process: it is a child subreaper, so orphans become its children.
//!
//! A delegated control group could do the same with one write. But sessions of sshd and jobs of Slurm have no
//! delegated groups; the guard works everywhere.

use crate::process::sweep::{become_subreaper, sweep};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Interval between two checks of the lease.
const LOOK: Duration = Duration::from_secs(1);
/// A process that has not ended this long after SIGTERM is killed.
const PATIENCE: Duration = Duration::from_secs(6);

/// The rules by which a process is guarded.
#[derive(Clone, Copy, Debug)]
pub struct GuardRules {
    /// A process that has not [renewed](Guarded::renew) for so long is killed, because it hangs or is stopped.
    pub lease: Option<Duration>,
    /// The signal that the process gets when its guard is killed; without one it continues unguarded.
    pub orphaned: Option<libc::c_int>,
    /// Whether processes that it leaves may continue if it ended with status 0, as daemons that it started on
    /// request.
    pub spares: bool,
}

/// How a guarded process ended, and the processes that it left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardReport {
    /// Its wait status.
    pub status: libc::c_int,
    /// Whether its lease had expired.
    pub hung: bool,
    /// Processes that SIGKILL has not ended yet.
    pub left: Vec<libc::pid_t>,
}

/// Handle of the guarded process to its guard.
#[derive(Clone, Copy, Debug)]
pub struct Guarded(&'static AtomicU64);

impl Guarded {
    /// Renews the lease. The process calls this when it has a message from the program that it works for.
    pub fn renew(self) {
        self.0.store(boot_ms(), Ordering::Relaxed);
    }

    fn age(self) -> Duration {
        Duration::from_millis(boot_ms().saturating_sub(self.0.load(Ordering::Relaxed)))
    }

    /// Makes a number in memory that this process and its guard share.
    fn shared() -> io::Result<Guarded> {
        let (read, share) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, which is zero, aligned to a page, and never unmapped.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), size_of::<AtomicU64>(), read, share, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: see above.
        let guarded = Guarded(unsafe { &*page.cast::<AtomicU64>() });
        guarded.renew();
        Ok(guarded)
    }
}

/// Returns milliseconds since the boot, including sleep of the machine: leases expire during sleep.
fn boot_ms() -> u64 {
    crate::clock::since_boot().as_millis() as u64
}

/// Splits this process, which must have one thread only, into a guard and a guarded child, and returns in the child.
/// The guard keeps the process id that others know. It passes on SIGTERM and SIGHUP as SIGTERM. It exits with the
/// status that `last` derives from the child's end, and never returns.
pub fn guarded(terms: GuardRules, last: impl FnOnce(GuardReport) -> i32) -> io::Result<Guarded> {
    become_subreaper();
    let guarded = Guarded::shared()?;
    let guard = std::process::id();
    let mask = block()?;
    // SAFETY: there is no other thread whose locks the child could find taken.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            leave_group(terms, guard, &mask);
            Ok(guarded)
        }
        child => std::process::exit(last(watch(child, guarded, terms))),
    }
}

/// As [`guarded`], for a process that is killed with its guard. The guard exits with the status of the process. It
/// calls `after` when no process of it is left, or the remaining processes are spared.
pub fn guarded_to_the_end(spares: bool, after: impl FnOnce()) -> io::Result<()> {
    let terms = GuardRules { lease: None, orphaned: Some(libc::SIGKILL), spares };
    let last = |end: GuardReport| {
        after();
        libc::WEXITSTATUS(end.status)
    };
    guarded(terms, last).map(drop)
}

/// Returns the signals that the guard waits for.
fn guard_signals() -> libc::sigset_t {
    // SAFETY: a signal set is plain data that sigemptyset fills in.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in [libc::SIGCHLD, libc::SIGTERM, libc::SIGHUP] {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

/// Blocks the signals that the guard waits for; returns the earlier mask.
fn block() -> io::Result<libc::sigset_t> {
    // SAFETY: plain data that the call fills in.
    let mut before: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: a plain number; the parent may have made this process ignore ends of children.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    // SAFETY: both sets outlive the call.
    match unsafe { libc::sigprocmask(libc::SIG_BLOCK, &guard_signals(), &mut before) } {
        0 => Ok(before),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Prepares the child. It gets its own process group, so that a signal to the group does not reach its guard.
fn leave_group(terms: GuardRules, guard: u32, mask: &libc::sigset_t) {
    // SAFETY: plain numbers, and a set that outlives the call.
    unsafe {
        libc::setpgid(0, 0);
        if let Some(signal) = terms.orphaned {
            libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0);
            // The guard may have died before that.
            if libc::getppid() as u32 != guard {
                libc::raise(signal);
            }
        }
        libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut());
    }
    become_subreaper();
}

/// Runs the guard: waits for the child's end, then for the end of all that it started.
fn watch(child: libc::pid_t, guarded: Guarded, terms: GuardRules) -> GuardReport {
    rustix::thread::set_name(c"homing-guard").unwrap_or_default();
    let (mut told, mut over, mut hung, mut status) = (None::<Instant>, None::<Instant>, false, 0);
    loop {
        // SAFETY: the status outlives the call.
        if unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } != 0 {
            break;
        }
        // After a sleep of the machine, the first check may come before the child could renew its lease.
        over = terms.lease.filter(|lease| guarded.age() > *lease).and(over.or_else(|| Some(Instant::now())));
        hung = over.is_some_and(|since| since.elapsed() >= LOOK);
        if hung || told.is_some_and(|at| at.elapsed() > PATIENCE) {
            // SAFETY: the child was not waited for, so the number is its own.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        if matches!(next_signal(), Some(libc::SIGTERM | libc::SIGHUP)) {
            told.get_or_insert_with(Instant::now);
            // SAFETY: as above.
            unsafe { libc::kill(child, libc::SIGTERM) };
        }
    }
    let left = if terms.spares && status == 0 { Vec::new() } else { sweep(Duration::ZERO).err().unwrap_or_default() };
    GuardReport { status, hung, left }
}

/// Returns the next awaited signal; `None` if none came within the interval of checks.
fn next_signal() -> Option<libc::c_int> {
    let timeout = libc::timespec { tv_sec: LOOK.as_secs() as _, tv_nsec: 0 };
    // SAFETY: both outlive the call, and the call stores no details.
    let signal = unsafe { libc::sigtimedwait(&guard_signals(), std::ptr::null_mut(), &timeout) };
    (signal > 0).then_some(signal)
}
