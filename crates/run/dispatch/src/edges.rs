//! Where a run touches its own process: signals that came, and
//! whether anybody reads standard output.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// Signals that ask the run to end; whoever sets the handlers reports them here.
#[derive(Debug, Default)]
pub struct Interrupts {
    steps: AtomicU32,
    signal: AtomicI32,
}

impl Interrupts {
    /// `signal` came, and moves the run on by so many `steps`: the first drains
    /// it, the second kills what runs, the third ends this process.
    pub fn came(&self, signal: i32, steps: u32) {
        let _ = self.signal.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
        self.steps.fetch_add(steps, Ordering::Release);
    }

    /// Steps so far, and the number of the first signal (0: none).
    pub(crate) fn so_far(&self) -> (u32, i32) {
        let steps = self.steps.load(Ordering::Acquire);
        (steps, self.signal.load(Ordering::Relaxed))
    }
}

/// Whether the reader of standard output is gone: of a pipe or socket whose other end is closed.
pub(crate) fn stdout_is_unread() -> bool {
    let stdout = rustix::stdio::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    // A closed descriptor (NVAL) is told by the first write, with what to do.
    let gone = PollFlags::ERR | PollFlags::HUP;
    poll(&mut fds, Some(&Timespec::default())).is_ok() && fds[0].revents().intersects(gone)
}
