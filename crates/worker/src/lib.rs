//! The far side of a run: takes tasks from its standard input, runs them,
//! and answers on its standard output. Ends, with all that it started, when
//! its input ends.
//!
//! One thread reads; each slot is a thread that spawns, captures and measures
//! one task after another. That is the shape of the fastest loop there is
//! (spawn, wait, again), and a slow reader of output holds up only the task
//! that prints.

mod attempt;
mod environment;
mod gauge;
mod outputs;
mod pulse;
mod recipe;
mod session;
mod shared;
mod slots;
mod spawn;
mod sweep;
mod view;

pub use outputs::marker_path;
pub use session::serve;
pub use view::enter_view;

/// Serves the wire protocol on standard input and output; returns the exit status.
pub fn main_stdio() -> i32 {
    session::ignore_terminal_signals();
    leave_terminal();
    sweep::become_subreaper();
    let output = std::io::stdout();
    let status = serve(std::io::stdin(), output);
    sweep::sweep();
    status
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
