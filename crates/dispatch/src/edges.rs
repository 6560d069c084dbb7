//! Where a run touches its own process: signals that came.

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
