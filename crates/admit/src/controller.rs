//! From looks at a storage host to its limit.

use crate::climb::{Climb, Measured, NOT_WORSE, START_US, Step};
use crate::memory::{Memory, Verdict};
use crate::seen::{Seen, Span};

/// Below this share of waiting for I/O, storage is not the bottleneck.
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
/// A trial that is plainly better or worse is over after this time.
const EARLY_US: u64 = 25_000;
const PLAINLY_WORSE: f64 = 0.6;
/// The same for fewer at once, which are only kept when they serve as well.
const FEWER_WORSE: f64 = 0.75;
const PLAINLY_BETTER: f64 = 1.4;
/// Quiet for so long: not a pause between two files.
const QUIET_US: u64 = 150_000;
/// The page cache gets so long to show whether fewer tasks fit.
const CACHE_US: u64 = 200_000;
const CACHE_MOST_US: u64 = 1_000_000;
/// A number that overran the page cache is tried again after this time.
const FORGIVE_US: u64 = 60_000_000;

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
    /// More than that run now, to the harm of all: the youngest of them should stand still for a while.
    pub hold: bool,
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
    memory: Memory,
    forgiven_us: u64,
    hold: bool,
    /// There was pressure before: steps without it are slow enough to see what they do.
    wary: bool,
    /// Now, and when the number changed last.
    seen_us: u64,
    changed_us: u64,
    /// The search that was under way before it became quiet.
    interrupted: Option<Climb>,
}

impl Controller {
    /// Begins with one task, or with what was learnt.
    pub fn new(settings: Settings) -> Controller {
        let most = settings.most.max(1);
        let n = settings.learnt.unwrap_or(1).clamp(1, most);
        let learnt_any = settings.learnt.is_some();
        let phase = settings.learnt.map_or(Phase::Rising, |_| Phase::Climbing(Climb::learnt(n, most)));
        Controller {
            settings,
            phase,
            n,
            from: None,
            settled: false,
            quiet_us: 0,
            memory: Memory::default(),
            forgiven_us: 0,
            hold: false,
            wary: learnt_any,
            seen_us: 0,
            changed_us: 0,
            interrupted: None,
        }
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
        (self.hold, self.seen_us) = (false, seen.at_us);
        let why = self.step(seen);
        let limit = self.limit();
        (limit != before).then(|| Change { limit, why: why.unwrap_or_default(), hold: self.hold })
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
        if let Some(why) = self.guard(seen, &span) {
            return Some(why);
        }
        match &self.phase {
            Phase::Rising => self.rise(seen, &span, full),
            Phase::Open => self.watch(seen, &span),
            Phase::Climbing(_) => self.climb(seen, &span, full),
        }
    }

    fn most(&self) -> u32 {
        self.settings.most.min(self.memory.ceiling())
    }

    fn go(&mut self, n: u32) {
        if n != self.n {
            self.changed_us = self.seen_us;
            (self.from, self.settled) = (None, false);
        }
        self.n = n.clamp(1, self.most());
    }

    fn guard(&mut self, seen: &Seen, span: &Span) -> Option<String> {
        if seen.at_us.saturating_sub(self.forgiven_us) > FORGIVE_US {
            self.forgiven_us = seen.at_us;
            self.memory.forgive();
        }
        // The rate of a page cache that is being filled is not that of one that is full.
        // After a change it takes part of a task until the cache holds what those that run want.
        let patience = (seen.task_us / 2).clamp(CACHE_US, CACHE_MOST_US);
        if span.us < MEASURE_US
            || (!matches!(self.phase, Phase::Open) && span.again > 0.0 && seen.at_us < self.changed_us + patience)
        {
            return None;
        }
        let share = span.again_share * 100.0;
        let (n, why) = match self.memory.judge(span, seen.in_flight) {
            Verdict::Calm => return None,
            Verdict::Fewer(n) => {
                (n, format!("with {} at once {share:.0} % of the bytes had to be read again", seen.in_flight))
            }
            Verdict::Vain(n) => (n, "fewer at once had to read as much again".into()),
        };
        self.hold = n < seen.in_flight;
        self.phase = Phase::Climbing(Climb::learnt(n, self.most()));
        self.forgiven_us = seen.at_us;
        self.go(n);
        Some(why)
    }

    fn rise(&mut self, seen: &Seen, span: &Span, full: bool) -> Option<String> {
        let busy = span.cpu.is_some_and(|c| c > CPU_BUSY) && self.n >= 2 * self.settings.cores;
        let step = match (self.wary, busy) {
            (true, _) => MEASURE_US,
            (_, true) => BUSY_STEP_US,
            _ => STEP_US,
        };
        if span.us < step {
            return None;
        }
        if span.pressure() > QUIET {
            self.from = Some(*seen);
            let new = Climb::new(self.n, self.most(), true);
            self.phase = Phase::Climbing(self.interrupted.take().map_or(new, |known| known.taken_up(seen.at_us)));
            return None;
        }
        if self.n >= self.settings.open_at.min(self.most()) {
            self.from = Some(*seen);
            if self.n < self.settings.open_at {
                return None;
            }
            self.phase = Phase::Open;
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
        let pressure = span.pressure();
        if pressure < PRESSED || seen.in_flight < 2 {
            return None;
        }
        // So many at once may be many too many: what was learnt, or else fewer, is tried first.
        let now = seen.in_flight.min(self.settings.most);
        let mut climb = Climb::new(now, self.most(), false);
        let step = climb.measured(measured(seen, span, now));
        self.phase = Phase::Climbing(climb);
        let Step::Go(next, _) = step else { return None };
        self.go(self.settings.learnt.map_or(next, |learnt| learnt.min(next)));
        Some(format!("storage was waited for {:.0} % of the time with {} at once", pressure * 100.0, seen.in_flight))
    }

    fn climb(&mut self, seen: &Seen, span: &Span, full: bool) -> Option<String> {
        if span.us < self.patience(seen, span, full) {
            return None;
        }
        self.from = Some(*seen);
        self.quiet_us = if span.pressure() <= QUIET { self.quiet_us + span.us } else { 0 };
        if self.quiet_us >= QUIET_US {
            self.quiet_us = 0;
            self.wary = true;
            if let Phase::Climbing(climb) = std::mem::replace(&mut self.phase, Phase::Rising) {
                self.interrupted = Some(climb);
            }
            return self.rise(seen, span, full);
        }
        if !full {
            return None;
        }
        let (n, most) = (self.n, self.most());
        let Phase::Climbing(climb) = &mut self.phase else { return None };
        climb.most = most;
        let best = climb.best;
        match climb.measured(measured(seen, span, n)) {
            Step::Go(next, why) => {
                // Back from a trial: those that came with it wait until there is room.
                self.hold = next < n && next <= best;
                if self.hold {
                    self.memory.failed(span, n, best);
                }
                self.go(next);
                Some(why)
            }
            Step::Stay => None,
        }
    }

    /// How long to measure.
    fn patience(&self, seen: &Seen, span: &Span, full: bool) -> u64 {
        let Phase::Climbing(climb) = &self.phase else { return MEASURE_US };
        let enough = seen.task_us.clamp(MEASURE_US, MEASURE_MOST_US);
        match climb.best_rate {
            _ if !full => MEASURE_US,
            None => MEASURE_US / 2,
            Some(best) if self.n != climb.best => {
                if self.n > climb.best && climb.is_start() && span.us < START_US && span.rate >= best * NOT_WORSE {
                    return EARLY_US;
                }
                let worse = if self.n < climb.best { FEWER_WORSE } else { PLAINLY_WORSE };
                let plain = !(best * worse..best * PLAINLY_BETTER).contains(&span.rate);
                if plain { EARLY_US } else { enough }
            }
            // A disk's quiet moments are between files.
            Some(_) if span.pressure() <= QUIET => MEASURE_US,
            Some(_) => enough,
        }
    }
}

fn measured(seen: &Seen, span: &Span, n: u32) -> Measured {
    Measured { n, rate: span.rate, at_us: seen.at_us, took_us: span.us, waiting: seen.waiting }
}
