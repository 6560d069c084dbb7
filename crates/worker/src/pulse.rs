//! Tells admission what this host's storage does while tasks run.

use crate::shared::Shared;
use homing_probe::Pulser;
use homing_wire::FromWorker;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Many pulses while a batch starts, so that a short one does not pay for
/// learning; then few enough to cost nothing.
const FIRST: u32 = 50;
const QUICK: Duration = Duration::from_millis(5);
const USUAL: Duration = Duration::from_millis(40);

/// Sends pulses until the worker ends, none while it has nothing to do.
pub(crate) fn send_from_now(shared: Arc<Shared>) {
    thread::spawn(move || {
        let mut pulser = Pulser::default();
        for nth in 0u32.. {
            shared.send(FromWorker::Pulse(pulser.take(&shared.leaders())));
            loop {
                thread::sleep(if nth < FIRST { QUICK } else { USUAL });
                if shared.is_busy() {
                    break;
                }
            }
        }
    });
}
