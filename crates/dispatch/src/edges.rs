//! Where a run touches its own process: signals that came, and standard output
//! as it is.

use std::io::{self, Write};
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

/// Standard output without the standard library's kindness of taking a closed
/// one for a success: what tasks printed would be lost, and the run look fine.
pub(crate) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(rustix::stdio::stdout(), bytes)?)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
