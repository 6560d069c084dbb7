//! Limits how many hosts are connected to at the same time.

use homing_os::threads::lock;
use std::sync::{Condvar, Mutex, PoisonError};

/// Hosts that one process connects to at once, as ClusterShell does. A thousand ssh processes at the same moment
/// burden this machine, and exceed the limit of a jump host (its MaxStartups).
pub const FAN_OUT: usize = 64;

static BUSY: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

/// One of [`FAN_OUT`] places, held while it lives.
pub(crate) struct FanOutSlot;

impl FanOutSlot {
    /// Waits for a free place.
    pub fn wait_for() -> FanOutSlot {
        let busy = lock(&BUSY);
        *FREED.wait_while(busy, |busy| *busy >= FAN_OUT).unwrap_or_else(PoisonError::into_inner) += 1;
        FanOutSlot
    }
}

impl Drop for FanOutSlot {
    fn drop(&mut self) {
        *lock(&BUSY) -= 1;
        FREED.notify_one();
    }
}
