//! Tells admission what this host's storage does while tasks run.

use crate::shared::Shared;
use homing_launch::wire::FromWorker;
use homing_probe::Pulser;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Many pulses while a batch starts, so that a short one does not pay for
/// learning; then few enough to cost nothing.
const FIRST: u32 = 50;
const QUICK: Duration = Duration::from_millis(5);
const USUAL: Duration = Duration::from_millis(40);
/// Pulses take at most one part in so many of a processor's time, first and later.
const QUICK_SHARE: u32 = 12;
const USUAL_SHARE: u32 = 60;

/// Longest pause while no task runs here. Tasks on other hosts may read from this
/// one: without a pulse their number, and with it the tasks here, would stay at what
/// the start allows for as long as they run.
const IDLE: Duration = Duration::from_millis(250);

/// Sends pulses until the worker ends.
/// An error says that there is no thread for it.
pub(crate) fn send(shared: Arc<Shared>) -> std::io::Result<()> {
    homing_os::threads::begin(move || {
        let mut pulser = Pulser::default();
        let mut ran = processor_time();
        let mut nth = 0u32;
        loop {
            for (server, bytes) in pulser.served() {
                shared.send(FromWorker::Served { server, bytes });
            }
            shared.send(FromWorker::Pulse(pulser.take(&shared.tasks())));
            let now = processor_time();
            let pause = pause(nth, now.saturating_sub(ran));
            ran = now;
            let slept = Instant::now();
            thread::sleep(pause);
            while !shared.is_busy() && slept.elapsed() < IDLE {
                thread::sleep(pause);
            }
            nth = nth.saturating_add(shared.is_busy().into());
        }
    })
    .map(drop)
}

/// How long to wait after the pulse with this number, that took so long.
fn pause(nth: u32, cost: Duration) -> Duration {
    if nth < FIRST { QUICK.max(cost * QUICK_SHARE) } else { USUAL.max(cost * USUAL_SHARE) }
}

/// What this thread has had of a processor; nothing where the kernel does not tell.
fn processor_time() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(told.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pulses_that_cost_much_are_rare() {
        assert_eq!(pause(0, Duration::from_micros(100)), QUICK);
        assert_eq!(pause(0, Duration::from_millis(1)), Duration::from_millis(12));
        assert_eq!(pause(FIRST, Duration::from_micros(100)), USUAL);
        assert_eq!(pause(FIRST, Duration::from_millis(2)), Duration::from_millis(120));
    }
}
