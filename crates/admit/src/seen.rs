//! What is measured, and what grew between two measurements.

/// One look at a storage host. Counters are totals since any fixed time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// When, microseconds on the storage host's clock.
    pub at_us: u64,
    /// Time in which at least one process waited for I/O (PSI io some).
    pub io_stall_us: Option<u64>,
    /// Time in which at least one process waited for a processor (PSI cpu some).
    pub cpu_stall_us: Option<u64>,
    /// Bytes that its busiest disk or its network moved.
    pub moved: Option<u64>,
    /// Bytes read again because the page cache had to drop them.
    pub reread: Option<u64>,
    /// Tasks that ended, of those that use it.
    pub ended: u64,
    /// Tasks that use it now.
    pub in_flight: u32,
    /// Tasks that wait; 0: a higher limit would change nothing.
    pub waiting: usize,
    /// Usual wall time of its tasks, microseconds; 0 while unknown.
    pub task_us: u64,
}

/// A task that ended counts as so many bytes: what a disk with one head could
/// have read in the time of a seek or two, so that tasks which create and stat
/// small files are progress as well.
const TASK_BYTES: f64 = 256.0 * 1024.0;

/// What happened between two looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    pub us: u64,
    /// 0 to 1; `None` where the kernel does not tell.
    pub io: Option<f64>,
    /// 0 to 1.
    pub cpu: Option<f64>,
    /// Useful bytes per second.
    pub rate: f64,
}

impl Seen {
    /// What grew since `before`.
    pub(crate) fn since(&self, before: &Seen) -> Span {
        let us = self.at_us.saturating_sub(before.at_us).max(1);
        let grown = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?) as f64);
        let share = |now, then| grown(now, then).map(|stalled| (stalled / us as f64).min(1.0));
        let moved = grown(self.moved, before.moved).unwrap_or(0.0);
        let again = grown(self.reread, before.reread).unwrap_or(0.0);
        let ended = self.ended.saturating_sub(before.ended) as f64;
        Span {
            us,
            io: share(self.io_stall_us, before.io_stall_us),
            cpu: share(self.cpu_stall_us, before.cpu_stall_us),
            rate: ((moved - again).max(0.0) + ended * TASK_BYTES) * 1e6 / us as f64,
        }
    }
}
