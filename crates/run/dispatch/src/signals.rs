//! The parts of its own process that a run observes: received signals, and whether standard output still has a
//! reader.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// The signals that end the run. The signal handlers report them here.
#[derive(Debug, Default)]
pub struct Interrupts {
    steps: AtomicU32,
    signal: AtomicI32,
}

impl Interrupts {
    /// Records `signal`, which advances the end of the run by `steps`. The first step drains the run, the second
    /// kills the running tasks, the third ends this process.
    pub fn came(&self, signal: i32, steps: u32) {
        let _ = self.signal.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
        self.steps.fetch_add(steps, Ordering::Release);
    }

    /// Returns the steps so far, and the number of the first signal (0: none).
    pub(crate) fn so_far(&self) -> (u32, i32) {
        let steps = self.steps.load(Ordering::Acquire);
        (steps, self.signal.load(Ordering::Relaxed))
    }
}

/// Whether the reader of standard output is gone: the other end of the pipe or socket is closed.
pub(crate) fn stdout_is_unread() -> bool {
    let stdout = rustix::stdio::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    // A closed descriptor (NVAL) is reported by the first write, together with a remedy.
    let gone = PollFlags::ERR | PollFlags::HUP;
    poll(&mut fds, Some(&Timespec::default())).is_ok() && fds[0].revents().intersects(gone)
}
