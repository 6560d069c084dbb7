//! From looks at a storage host to its limit.

use crate::climb::{Climb, Step};
use crate::seen::{Seen, Span};

/// Below this share of time with somebody waiting for I/O, storage is not the bottleneck.
const QUIET: f64 = 0.10;
/// An open door closes at this pressure only: below it there is little to win.
const PRESSED: f64 = 0.40;
/// Shortest time between two steps of a start without pressure. A disk's first
/// seek takes 8 ms and shows in the pressure while it lasts.
const STEP_US: u64 = 4_000;
/// The same while tasks wait for processors: more at once gains nothing soon.
const BUSY_STEP_US: u64 = 100_000;
const CPU_BUSY: f64 = 0.5;
/// Shortest time over which a throughput is measured, and the tasks' own pace:
/// whichever is longer, up to the last.
const MEASURE_US: u64 = 120_000;
const MEASURE_MOST_US: u64 = 5_000_000;

/// What does not change for a storage host during a run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Slots of the run: no limit above this one means anything.
    pub most: u32,
    /// Slots of the host itself: a start without pressure ends there.
    pub open_at: u32,
    /// Processors of the hosts that use it.
    pub cores: u32,
    /// The limit that earlier runs of the same command on the same storage ended with.
    pub learnt: Option<u32>,
}

/// A new limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Tasks at once; `None`: storage does not limit.
    pub limit: Option<u32>,
    /// One clause for people.
    pub why: String,
}

#[derive(Debug)]
enum Phase {
    /// No pressure so far: double.
    Rising,
    /// Storage does not limit.
    Open,
    /// Pressure: search.
    Climbing(Climb),
}

/// Finds the limit of one storage host.
#[derive(Debug)]
pub struct Controller {
    settings: Settings,
    phase: Phase,
    n: u32,
    from: Option<Seen>,
    settled: bool,
    quiet_us: u64,
}

impl Controller {
    /// Begins with one task, or with what was learnt.
    pub fn new(settings: Settings) -> Controller {
        let n = settings.learnt.unwrap_or(1).clamp(1, settings.most.max(1));
        Controller { settings, phase: Phase::Rising, n, from: None, settled: false, quiet_us: 0 }
    }

    /// The limit in force.
    pub fn limit(&self) -> Option<u32> {
        if matches!(self.phase, Phase::Open) { None } else { Some(self.n) }
    }

    /// What is worth remembering: the limit that was found under pressure.
    pub fn lesson(&self) -> Option<u32> {
        match &self.phase {
            Phase::Climbing(climb) => climb.best_rate.map(|_| climb.best),
            _ => None,
        }
    }

    /// Hosts came or went.
    pub fn set_most(&mut self, most: u32) {
        self.settings.most = most.max(1);
        self.n = self.n.min(self.settings.most);
    }

    /// Takes a look; returns the limit when it changes.
    pub fn observe(&mut self, seen: &Seen) -> Option<Change> {
        let before = self.limit();
        let why = self.step(seen);
        (self.limit() != before).then(|| Change { limit: self.limit(), why: why.unwrap_or_default() })
    }

    fn step(&mut self, seen: &Seen) -> Option<String> {
        // A measurement counts only while exactly the limit runs. With fewer
        // tasks than the limit there is nothing to learn and nothing to limit.
        let full = seen.in_flight >= self.n;
        let over = seen.in_flight > self.n && !matches!(self.phase, Phase::Open);
        if seen.in_flight == 0 || over || (!full && seen.waiting > 0 && !self.settled) {
            (self.from, self.settled) = (None, false);
            return None;
        }
        self.settled = true;
        let Some(from) = self.from else {
            self.from = Some(*seen);
            return None;
        };
        let span = seen.since(&from);
        match &self.phase {
            Phase::Rising => self.rise(seen, &span, full),
            Phase::Open => self.watch(seen, &span),
            Phase::Climbing(_) => self.climb(seen, &span, full),
        }
    }

    fn go(&mut self, n: u32) {
        if n != self.n {
            (self.from, self.settled) = (None, false);
        }
        self.n = n.clamp(1, self.settings.most);
    }

    /// Whether tasks wait for storage. Where the kernel keeps no pressure, bytes that move are all there is.
    fn pressure(span: &Span) -> f64 {
        span.io.unwrap_or(if span.rate > 1e6 { 1.0 } else { 0.0 })
    }

    fn rise(&mut self, seen: &Seen, span: &Span, full: bool) -> Option<String> {
        let busy = span.cpu.is_some_and(|c| c > CPU_BUSY) && self.n >= 2 * self.settings.cores;
        if span.us < if busy { BUSY_STEP_US } else { STEP_US } {
            return None;
        }
        if Self::pressure(span) > QUIET {
            self.from = Some(*seen);
            self.phase = Phase::Climbing(Climb::new(self.n, self.settings.most, true));
            return None;
        }
        if self.n >= self.settings.open_at {
            self.phase = Phase::Open;
            self.from = Some(*seen);
            return Some("no task waited for storage".into());
        }
        if !full {
            self.from = Some(*seen);
            return None;
        }
        self.go(self.n * 2);
        if self.n >= self.settings.open_at {
            self.phase = Phase::Open;
        }
        Some("no task waited for storage".into())
    }

    fn watch(&mut self, seen: &Seen, span: &Span) -> Option<String> {
        if span.us < MEASURE_US {
            return None;
        }
        self.from = Some(*seen);
        let pressure = Self::pressure(span);
        if pressure < PRESSED || seen.in_flight < 2 {
            return None;
        }
        // So many at once may be many too many: what was learnt, or else fewer, is tried first.
        let mut climb = Climb::new(seen.in_flight.min(self.settings.most), self.settings.most, false);
        let step = climb.measured(climb.best, span.rate, seen.at_us, seen.task_us);
        self.phase = Phase::Climbing(climb);
        let Step::Go(next, _) = step else { return None };
        self.go(self.settings.learnt.map_or(next, |learnt| learnt.min(next)));
        Some(format!("storage was waited for {:.0} % of the time with {} at once", pressure * 100.0, seen.in_flight))
    }

    fn climb(&mut self, seen: &Seen, span: &Span, full: bool) -> Option<String> {
        let enough = seen.task_us.clamp(MEASURE_US, MEASURE_MOST_US);
        if span.us < if full { enough } else { MEASURE_US } {
            return None;
        }
        self.from = Some(*seen);
        if !full {
            return None;
        }
        self.quiet_us = if Self::pressure(span) <= QUIET { self.quiet_us + span.us } else { 0 };
        if self.quiet_us >= 2 * MEASURE_US {
            self.quiet_us = 0;
            self.phase = Phase::Rising;
            return self.rise(seen, span, full);
        }
        let n = self.n;
        let Phase::Climbing(climb) = &mut self.phase else { return None };
        match climb.measured(n, span.rate, seen.at_us, seen.task_us) {
            Step::Go(next, why) => {
                self.go(next);
                Some(why)
            }
            Step::Stay => None,
        }
    }
}
