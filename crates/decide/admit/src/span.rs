//! The state of a storage server and of the run at one time, and the growth between two times.

use homing_model::StorageSample;

/// The tasks of the run at a storage server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TaskLoad {
    /// Tasks that use it now.
    pub in_flight: u32,
    /// Tasks that wait; with 0 a higher limit would change nothing.
    pub waiting: usize,
    /// Bytes of the inputs of the tasks that use it now; 0 while unknown.
    pub inputs: u64,
    /// Usual wall time of its tasks, microseconds; 0 while unknown.
    pub task_us: u64,
    /// Whether tasks of this run read their data more than once; `None` until it was seen.
    pub again: Option<bool>,
    /// Whether tasks read through a network file system. The kernel counts no disk for its client: all of their bytes
    /// would seem to come from the page cache.
    pub network: bool,
}

/// Pulse and load at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdmissionSample {
    pub pulse: StorageSample,
    pub load: TaskLoad,
}

/// The growth between two looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    /// Its length, microseconds.
    pub us: u64,
    /// Share of the time in which any process on the host waited for I/O, 0 to 1; `None` if the kernel does not
    /// report it.
    host: Option<f64>,
    /// Share of looks at the run's tasks in which these waited for I/O, 0 to 1.
    own: Option<f64>,
    /// Number of looks at the run's tasks.
    looked: u64,
    /// Useful bytes per second: those that the storage moved, without those read again, and those from the page
    /// cache.
    pub rate: f64,
    /// Bytes that the run's tasks read.
    pub got: u64,
}

impl Span {
    /// Returns how much the run's tasks wait for storage, 0 to 1. Tasks of other users wait, too. They must not hold
    /// back tasks of the run that only compute: therefore the smaller value of the host and the tasks. If neither is
    /// known, moving bytes count as pressure.
    pub fn pressure(&self) -> f64 {
        match (self.host, self.own) {
            (Some(host), Some(own)) => host.min(own),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => f64::from(self.rate > 0.0),
        }
    }

    /// Returns whether the pressure is at most `most`; `None` if there were too few looks to measure so small a
    /// share.
    pub fn quiet(&self, most: f64) -> Option<bool> {
        let few = self.own.is_some() && self.looked as f64 * most < 1.0;
        (self.pressure() > most).then_some(false).or((!few).then_some(true))
    }
}

impl AdmissionSample {
    /// Returns how many tasks, of the size of the running ones, fill the share `filled` of the page cache.
    pub fn fit(&self, filled: f64) -> Option<u32> {
        if self.load.inputs == 0 || self.load.in_flight == 0 {
            return None;
        }
        let each = self.load.inputs as f64 / f64::from(self.load.in_flight);
        self.pulse.room.map(|room| ((room as f64 * filled / each) as u32).max(1))
    }

    /// Returns the growth since `before`.
    pub fn since(&self, before: &AdmissionSample) -> Span {
        let (now, then) = (&self.pulse, &before.pulse);
        let us = now.at_us.saturating_sub(then.at_us).max(1);
        let grown = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?) as f64);
        let moved = grown(now.moved, then.moved).unwrap_or(0.0);
        let again = grown(now.reread, then.reread).unwrap_or(0.0).min(moved);
        let cached = if self.load.network { 0 } else { now.cached.saturating_sub(then.cached) };
        let looked = now.looked.saturating_sub(then.looked);
        let stood = now.blocked_on_io.saturating_sub(then.blocked_on_io) as f64;
        Span {
            us,
            host: grown(now.io_some_us, then.io_some_us).map(|stalled| (stalled / us as f64).min(1.0)),
            own: (looked > 0).then(|| stood / looked as f64),
            looked,
            rate: (moved - again + cached as f64) * 1e6 / us as f64,
            got: now.read.saturating_sub(then.read),
        }
    }
}
