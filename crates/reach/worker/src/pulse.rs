//! Reports the activity of this host's storage to admission: often while tasks run here, a few times a second
//! otherwise.

use crate::shared::WorkerState;
use homing_launch::wire::FromWorker;
use homing_probe::Sampler;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Number of quick pulses. A batch starts with many, so that a short one learns quickly; later ones are rare enough
/// to cost nothing.
const FIRST: u32 = 50;
const QUICK: Duration = Duration::from_millis(5);
const USUAL: Duration = Duration::from_millis(40);
/// A pause is at least this many times the cost of the pulse before it, first and later.
const QUICK_SHARE: u32 = 12;
const USUAL_SHARE: u32 = 60;

/// Longest pause while no task runs here. Tasks on other hosts may read from this host's storage. Without its pulses
/// admission would keep their number, and that of the tasks here, at the limit of the start.
const IDLE: Duration = Duration::from_millis(250);

/// Sends pulses until the worker ends. An error means that no thread could be started.
pub(crate) fn send(shared: Arc<WorkerState>) -> std::io::Result<()> {
    homing_os::threads::begin(move || {
        let mut pulser = Sampler::default();
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

/// Returns the pause after the `nth` pulse, which took `cost`.
fn pause(nth: u32, cost: Duration) -> Duration {
    if nth < FIRST { QUICK.max(cost * QUICK_SHARE) } else { USUAL.max(cost * USUAL_SHARE) }
}

/// Returns the processor time of this thread; zero if the kernel does not report it.
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
