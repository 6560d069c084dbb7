//! The far side of a run: takes tasks from its standard input, runs them,
//! and answers on its standard output. Ends, with all that it started, when
//! its input ends.
//!
//! One thread reads; each slot is a thread that spawns, captures and measures
//! one task after another. That is the shape of the fastest loop there is
//! (spawn, wait, again), and a slow reader of output holds up only the task
//! that prints.
//!
//! It is also a program of its own, which hosts are sent. A worker can lead others (`lead`), and it watches for changes
//! that a `fence` reports.
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
mod view;

use homing_os::process::{End, Guarded, Terms};
use std::ffi::OsString;
use std::time::Duration;

/// A worker that has not even seen that its own lease is over does not see anything any more.
const HANGS: Duration = Duration::from_secs(homing_launch::wire::WORKER_LEASE_S + 1);
/// Time between asking and killing at a worker's end.
const GRACE: Duration = Duration::from_millis(300);
/// Exit statuses of a worker that could not begin, and of a guard that found processes that do not end.
const UNGUARDED: i32 = 254;
const LEFT: i32 = 1;

/// The static programs have it, homing and the worker alone: with the allocator of musl they start a tenth fewer tasks a
/// second (`bench/results/dispatch.md`).
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

pub use lead::lead_stdio;
pub use outputs::marker_path;
pub use session::serve;
pub use view::enter_view;

/// Serves the wire protocol on standard input and output; returns the exit status. `words` follow its role: none, or
/// [`homing_launch::wire::CHILD`].
pub fn main_stdio(words: &[OsString]) -> i32 {
    let Some(guarded) = begin("worker", "stood still", "its tasks") else { return UNGUARDED };
    let leased = words.first().is_none_or(|word| word != homing_launch::wire::CHILD);
    let status = serve(std::io::stdin(), std::io::stdout(), leased, move || guarded.renew());
    end_all();
    status
}

/// What a process does that only a coordinator ends: it has a guard, and nobody's signals and screen. `name` and `with` are
/// what the guard calls it and what it started, `still` is what it did when its lease is over.
fn begin(name: &str, still: &str, with: &str) -> Option<Guarded> {
    homing_os::process::raise_files();
    session::ignore_terminal_signals();
    leave_terminal();
    let terms = Terms { lease: Some(HANGS), orphaned: Some(libc::SIGTERM), spares: false };
    let guarded = homing_os::process::guarded(terms, |end| last_words(name, still, with, end));
    guarded.inspect_err(|error| homing_os::say!("homing: cannot start a guard for the {name}: {error}")).ok()
}

/// Ends all that this worker started.
pub(crate) fn end_all() {
    let _ = homing_os::process::sweep(GRACE);
}

/// The guard's status, and what it has to say: only a guard that found nothing left says that all ended.
fn last_words(name: &str, still: &str, with: &str, end: End) -> i32 {
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

/// Gives up the controlling terminal, for this process and the tasks that it
/// will start: none of them can be stopped by it or read a password from it. A
/// session for each task does the same and costs a thirtieth of a short task's time.
fn leave_terminal() {
    if let Ok(terminal) = std::fs::File::open("/dev/tty") {
        // SAFETY: the request takes no argument; the descriptor is open.
        unsafe { libc::ioctl(std::os::fd::AsRawFd::as_raw_fd(&terminal), libc::TIOCNOTTY) };
    }
}
