//! A guard over a process: its parent, which outlives it and then ends all that
//! it started. It needs nothing of the dead: orphans come to it by themselves,
//! as it is a child subreaper too.
//!
//! A control group would do the same with one write, where one is delegated.
//! Sessions of sshd and jobs of Slurm are not delegated any; this works everywhere.

use crate::process::sweep::{become_subreaper, sweep};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Between two looks at the lease.
const LOOK: Duration = Duration::from_secs(1);
/// A process that was told to end and has not is killed after this.
const PATIENCE: Duration = Duration::from_secs(6);

/// On what terms a process is guarded.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// A process that has not [renewed](Guarded::renew) for so long is killed: it hangs, or stands still.
    pub lease: Option<Duration>,
    /// The signal that it gets when its guard is killed; without one it goes on unguarded.
    pub orphaned: Option<libc::c_int>,
    /// What it leaves goes on when it ended with status 0, as daemons do that it was asked to start.
    pub spares: bool,
}

/// How a guarded process ended, and what it left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Its wait status.
    pub status: libc::c_int,
    /// Its lease was over.
    pub hung: bool,
    /// Processes that even SIGKILL did not end yet.
    pub left: Vec<libc::pid_t>,
}

/// For the guarded process: it has a guard.
#[derive(Clone, Copy, Debug)]
pub struct Guarded(&'static AtomicU64);

impl Guarded {
    /// Whoever it works for was heard.
    pub fn renew(self) {
        self.0.store(boot_ms(), Ordering::Relaxed);
    }

    fn age(self) -> Duration {
        Duration::from_millis(boot_ms().saturating_sub(self.0.load(Ordering::Relaxed)))
    }

    /// A number that this process and its guard share.
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

/// Milliseconds since the boot, those included in which the machine slept: a lease goes on meanwhile.
fn boot_ms() -> u64 {
    crate::clock::since_boot().as_millis() as u64
}

/// Splits this process, which must have one thread only, into a guard and a
/// guarded child, and returns in the child. The guard, which keeps the number
/// that others know, passes on SIGTERM and SIGHUP as SIGTERM, ends with the
/// status that `last` makes of the child's end, and never returns.
pub fn guarded(terms: Terms, last: impl FnOnce(End) -> i32) -> io::Result<Guarded> {
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

/// As [`guarded`], of a process that ends when its guard is killed, and whose status its guard ends with. `after` is
/// done when nothing of it is left, or all that is left is spared.
pub fn guarded_to_the_end(spares: bool, after: impl FnOnce()) -> io::Result<()> {
    let terms = Terms { lease: None, orphaned: Some(libc::SIGKILL), spares };
    let last = |end: End| {
        after();
        libc::WEXITSTATUS(end.status)
    };
    guarded(terms, last).map(drop)
}

/// What the guard listens for.
fn heard() -> libc::sigset_t {
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

/// Blocks what the guard listens for; returns the mask that was.
fn block() -> io::Result<libc::sigset_t> {
    // SAFETY: plain data that the call fills in.
    let mut before: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: a plain number; whoever started us may have had ends of children ignored.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    // SAFETY: both sets outlive the call.
    match unsafe { libc::sigprocmask(libc::SIG_BLOCK, &heard(), &mut before) } {
        0 => Ok(before),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The child's side. In a group of its own: who kills it by its group does not meet its guard.
fn leave_group(terms: Terms, guard: u32, mask: &libc::sigset_t) {
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

/// The guard's side: waits for the child's end, then for the end of all that it started.
fn watch(child: libc::pid_t, guarded: Guarded, terms: Terms) -> End {
    rustix::thread::set_name(c"homing-guard").unwrap_or_default();
    let (mut told, mut over, mut hung, mut status) = (None::<Instant>, None::<Instant>, false, 0);
    loop {
        // SAFETY: the status outlives the call.
        if unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } != 0 {
            break;
        }
        // Where the machine has slept, the first look may come before the child could renew its lease.
        over = terms.lease.filter(|lease| guarded.age() > *lease).and(over.or_else(|| Some(Instant::now())));
        hung = over.is_some_and(|since| since.elapsed() >= LOOK);
        if hung || told.is_some_and(|at| at.elapsed() > PATIENCE) {
            // SAFETY: the child was not waited for, so that the number is its own.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        if matches!(next_signal(), Some(libc::SIGTERM | libc::SIGHUP)) {
            told.get_or_insert_with(Instant::now);
            // SAFETY: as above.
            unsafe { libc::kill(child, libc::SIGTERM) };
        }
    }
    let left = if terms.spares && status == 0 { Vec::new() } else { sweep(Duration::ZERO).err().unwrap_or_default() };
    End { status, hung, left }
}

/// The next signal that is heard; `None` when none came in the time of a look.
fn next_signal() -> Option<libc::c_int> {
    let timeout = libc::timespec { tv_sec: LOOK.as_secs() as _, tv_nsec: 0 };
    // SAFETY: both outlive the call, and no details are asked for.
    let signal = unsafe { libc::sigtimedwait(&heard(), std::ptr::null_mut(), &timeout) };
    (signal > 0).then_some(signal)
}
