//! The far side of a run. It takes tasks from its standard input, runs them, and answers on its standard output. When
//! its input ends, it ends with all that it started. A broken connection need not end the input. Therefore a worker
//! that is no child of its coordinator also ends when no message came for the time of its lease (`WORKER_LEASE_S` of
//! `launch::wire`).
//!
//! One thread reads. Each slot is a thread that spawns, captures and measures one task after another. The fastest
//! possible loop (spawn, wait, again) has the same shape. A slow reader of output delays only the task that prints.
//!
//! Hosts get it as a small program of its own (`main.rs`). As a leader (`lead`) that program holds the channels to the
//! workers of other hosts. For a build, a worker watches which files its recipes change (`recipe`, by the crate
//! `fence`).
//!
//! It does not: open a socket, read a journal, or choose its tasks.

mod attempt;
mod energy;
mod environment;
mod gauge;
mod input;
mod lead;
mod outputs;
mod pulse;
mod recipe;
mod session;
mod shared;
mod slots;
mod spawn;
mod units;
mod view;

#[cfg(test)]
#[path = "../../../../tests/script.rs"]
mod script;

use homing_os::process::{GuardReport, GuardRules, Guarded};
use std::ffi::OsString;
use std::time::Duration;

/// Time without renewal after which the guard ends the worker. One second more than the lease: a worker that misses
/// the end of its own lease hangs.
const HANGS: Duration = Duration::from_secs(homing_launch::wire::WORKER_LEASE_S + 1);
/// Time between SIGTERM and SIGKILL at a worker's end.
const GRACE: Duration = Duration::from_millis(300);
/// Exit statuses of a worker that could not begin, and of a guard that found processes that do not end.
const UNGUARDED: i32 = 254;
const LEFT: i32 = 1;

/// The allocator of the static programs, homing and the worker alone. With that of musl they start a tenth fewer
/// tasks per second (`bench/results/dispatch.md`).
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

pub use lead::lead_stdio;
pub use outputs::marker_path;
pub use session::serve;
pub use view::enter_view;

/// Serves the wire protocol on standard input and output; returns the exit status. `words` are the arguments after
/// its role: none, or [`homing_launch::wire::CHILD`].
pub fn main_stdio(words: &[OsString]) -> i32 {
    let Some(guarded) = begin("worker", "made no progress", "its tasks") else { return UNGUARDED };
    let leased = words.first().is_none_or(|word| word != homing_launch::wire::CHILD);
    let status = serve(std::io::stdin(), std::io::stdout(), leased, move || guarded.renew());
    end_all();
    status
}

/// Prepares a process that only its coordinator may end: detaches it from the terminal and its signals, and starts
/// its guard. The guard's messages use `name` for the process, `with` for its children, and `still` for its state
/// after the lease.
fn begin(name: &str, still: &str, with: &str) -> Option<Guarded> {
    homing_os::process::raise_files();
    session::ignore_terminal_signals();
    leave_terminal();
    let terms = GuardRules { lease: Some(HANGS), orphaned: Some(libc::SIGTERM), spares: false };
    let guarded = homing_os::process::guarded(terms, |end| last_words(name, still, with, end));
    guarded.inspect_err(|error| homing_os::say!("homing: cannot start a guard for the {name}: {error}")).ok()
}

/// Ends all that this worker started.
pub(crate) fn end_all() {
    let _ = homing_os::process::sweep(GRACE);
}

/// Returns the guard's status and prints its message. Only a guard that found no process left returns a status by
/// which all ended.
fn last_words(name: &str, still: &str, with: &str, end: GuardReport) -> i32 {
    if !end.left.is_empty() {
        homing_os::say!("homing: these processes wait for I/O and have not ended yet: {:?}", end.left);
        return LEFT;
    }
    if end.hung {
        homing_os::say!("homing: the {name} {still} for {} s and was ended with {with}", HANGS.as_secs());
    } else if libc::WIFSIGNALED(end.status) {
        let signal = libc::WTERMSIG(end.status);
        homing_os::say!("homing: the {name} was killed by signal {signal}; {with} are ended");
    }
    if end.status == 0 { 0 } else { homing_launch::wire::ALL_ENDED }
}

/// Gives up the controlling terminal, for this process and its tasks. The terminal can then stop none of them, and
/// none can read a password from it. A session for each task has the same effect and costs a thirtieth of a short
/// task's time.
fn leave_terminal() {
    if let Ok(terminal) = std::fs::File::open("/dev/tty") {
        // SAFETY: the request takes no argument; the descriptor is open.
        unsafe { libc::ioctl(std::os::fd::AsRawFd::as_raw_fd(&terminal), libc::TIOCNOTTY) };
    }
}
