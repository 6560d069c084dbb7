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
    /// How often one of the run's own tasks was looked at there.
    pub looked: u64,
    /// How often it then stood still for I/O.
    pub stood: u64,
    /// Bytes that its busiest disk or its network moved.
    pub moved: Option<u64>,
    /// Time that disks spent on requests that took long for their bytes: heads that seek.
    pub slow_us: Option<u64>,
    /// Bytes that the run's own tasks there asked for.
    pub read: u64,
    /// Bytes that the run's own tasks read there and that came from no disk: the page cache served them.
    pub cached: u64,
    /// Bytes read again because the page cache had to drop them.
    pub reread: Option<u64>,
    /// Bytes of the inputs of the tasks that use it now; 0 while unknown.
    pub inputs: u64,
    /// Bytes that the page cache could hold for them.
    pub room: Option<u64>,
    /// Whether tasks of this run read their data more than once, when it has been seen.
    pub again: Option<bool>,
    /// Tasks that ended, of those that use it.
    pub ended: u64,
    /// Tasks that use it now.
    pub in_flight: u32,
    /// Tasks that wait; 0: a higher limit would change nothing.
    pub waiting: usize,
    /// Usual wall time of its tasks, microseconds; 0 while unknown.
    pub task_us: u64,
    /// Storage still serves tasks that stand still by order.
    pub drains: bool,
}

/// A task that ended counts as so many bytes: what a disk with one head could
/// have read in the time of a seek or two, so that tasks which create and stat
/// small files are progress as well.
const TASK_BYTES: f64 = 256.0 * 1024.0;

/// Tasks may fill this share of the page cache's room, since it also holds what those that ended
/// have read, until all else is younger. With a third, those that began together all read and then
/// all computed: 20 short tasks took 1.12 of the time of four at once.
const FILLED: f64 = 0.25;

/// What happened between two looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    pub us: u64,
    /// Share of the time in which somebody on the host waited for I/O, 0 to 1; `None` where the kernel does not tell.
    io: Option<f64>,
    /// Share of our tasks that stood still for I/O, 0 to 1.
    stood: Option<f64>,
    /// Share of the time in which somebody waited for a processor, 0 to 1.
    pub cpu: Option<f64>,
    /// Useful bytes per second.
    pub rate: f64,
    /// Share of the time in which a disk's head was on its way, 0 to 1.
    pub slow: f64,
    /// Bytes that our tasks got, and for each that ended.
    pub got: f64,
    /// Bytes per second that were read again, as a share of what moved, and of what moved again or was still there.
    pub again: f64,
    pub again_share: f64,
    pub missed: f64,
}

impl Span {
    /// Whether our tasks wait for storage, 0 to 1. Other people's tasks wait
    /// too, which must not hold back ours that only compute: so the lesser of
    /// what the host and what our tasks say. Where neither is known, bytes that
    /// move are all there is.
    pub(crate) fn pressure(&self) -> f64 {
        match (self.io, self.stood) {
            (Some(host), Some(own)) => host.min(own),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => f64::from(self.rate > 1e6),
        }
    }

    /// Bytes that our tasks got per microsecond.
    pub(crate) fn pace(&self) -> f64 {
        self.got / self.us as f64
    }

    /// Most of our tasks stood still for I/O.
    pub(crate) fn stands(&self) -> bool {
        self.stood.is_some_and(|share| share > 0.5)
    }

    /// Each of our tasks did whenever it was looked at.
    pub(crate) fn all_stand(&self) -> bool {
        self.stood.is_some_and(|share| share >= 1.0)
    }
}

impl Seen {
    /// How many tasks, of the size of those that run, the page cache has room for.
    pub(crate) fn fit(&self) -> Option<u32> {
        if self.inputs == 0 || self.in_flight == 0 {
            return None;
        }
        let each = self.inputs as f64 / f64::from(self.in_flight);
        self.room.map(|room| ((room as f64 * FILLED / each) as u32).max(1))
    }

    /// What grew since `before`.
    pub(crate) fn since(&self, before: &Seen) -> Span {
        let us = self.at_us.saturating_sub(before.at_us).max(1);
        let per_s = 1e6 / us as f64;
        let grown = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?) as f64);
        let share = |now, then| grown(now, then).map(|stalled| (stalled / us as f64).min(1.0));
        let moved = grown(self.moved, before.moved).unwrap_or(0.0);
        let again = grown(self.reread, before.reread).unwrap_or(0.0).min(moved);
        let cached = self.cached.saturating_sub(before.cached) as f64;
        let ended = self.ended.saturating_sub(before.ended) as f64;
        let looked = self.looked.saturating_sub(before.looked);
        let stood = self.stood.saturating_sub(before.stood) as f64 / looked.max(1) as f64;
        let got = self.read.saturating_sub(before.read) as f64 + ended * TASK_BYTES;
        Span {
            us,
            io: share(self.io_stall_us, before.io_stall_us),
            stood: (looked > 0).then_some(stood),
            cpu: share(self.cpu_stall_us, before.cpu_stall_us),
            rate: (moved - again + cached + ended * TASK_BYTES) * per_s,
            slow: share(self.slow_us, before.slow_us).unwrap_or(0.0),
            got,
            again: again * per_s,
            again_share: again / moved.max(1.0),
            missed: again / (again + cached).max(1.0),
        }
    }
}
