//! From looks at a storage host to its limit.

mod open;
mod search;
mod start;

use crate::climb::{Climb, Measured};
use crate::memory::{Memory, Verdict};
use crate::seen::{Seen, Span};

/// Below this share of waiting for I/O, storage is not the bottleneck.
const QUIET: f64 = 0.10;
/// Below this share there is little to win with fewer: a door that is open stays open.
const PRESSED: f64 = 0.40;
/// A head on its way for this share of the time is evidence of harm: fewer may serve more.
const SLOW: f64 = 0.4;
/// A start with this number, the second when the first one has begun to read: one processor reads while another computes.
const FIRST: u32 = 2;
/// Seeks that turned out to do no harm are believed again after this time, then ever more rarely.
const BELIEVE_AFTER_US: u64 = 2_000_000;
/// Without evidence fewer are tried after so long under pressure, then ever more rarely.
const PROBE_AFTER_US: u64 = 5_000_000;
/// Fewer must serve so much more.
const PROBE_GAIN: f64 = 1.15;
/// What a crowd had asked for is served in such a time: 50 requests of a head take half a second.
const DRAIN_US: u64 = 1_000_000;
/// Tasks too old to stand still: the trial is given up after this time.
const PROBE_WAIT_US: u64 = 1_000_000;
/// Shortest time over which a throughput is measured, and the tasks' own pace:
/// whichever is longer, up to the last.
const MEASURE_US: u64 = 120_000;
const MEASURE_MOST_US: u64 = 5_000_000;
/// A trial that is plainly better or worse is over after this time.
const EARLY_US: u64 = 25_000;
/// ... worse than this share.
const PLAINLY_WORSE: f64 = 0.6;
/// The page cache gets so long to show whether fewer tasks fit, the longer where no task has ended yet.
const CACHE_US: u64 = 200_000;
const CACHE_MOST_US: u64 = 1_500_000;
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
    /// It may: half as many for a moment. With all it served `rate` bytes per second.
    Probing { rate: f64 },
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
    /// The first look since the number changed.
    stage: Option<Seen>,
    /// The look before this one, and the one at which the second task was let in.
    last: Option<Seen>,
    begun: Option<Seen>,
    /// The first tasks have been seen to get bytes.
    reads: bool,
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
    /// The number before the last step of the start, and what tasks got with it, bytes per microsecond.
    known: Option<(u32, f64)>,
    /// What all served together when their seeks began a search: it must find more than that.
    all: Option<f64>,
    /// From when on, and after what pause, seeks are evidence again.
    believe_us: (u64, u64),
    /// Time under pressure without a limit, and after how much of it fewer are tried.
    pressed_us: u64,
    probe_after_us: u64,
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
            stage: None,
            last: None,
            begun: None,
            reads: false,
            settled: false,
            quiet_us: 0,
            memory: Memory::default(),
            forgiven_us: 0,
            hold: false,
            wary: learnt_any,
            seen_us: 0,
            changed_us: 0,
            interrupted: None,
            known: None,
            all: None,
            believe_us: (0, BELIEVE_AFTER_US),
            pressed_us: 0,
            probe_after_us: PROBE_AFTER_US,
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

    /// More than the start had come to are under way already, because nobody knew that they would
    /// use the storage: no limit, until there is evidence. One that was found or learnt holds.
    pub fn crowd(&mut self) {
        if matches!(self.phase, Phase::Rising) && self.interrupted.is_none() {
            (self.phase, self.from, self.pressed_us) = (Phase::Open, None, 0);
            self.changed_us = self.seen_us;
        }
    }

    /// Takes a look; returns the limit when it changes.
    pub fn observe(&mut self, seen: &Seen) -> Option<Change> {
        let before = self.limit();
        (self.hold, self.seen_us) = (false, seen.at_us);
        let why = self.step(seen);
        self.last = Some(*seen);
        let limit = self.limit();
        (limit != before).then(|| Change { limit, why: why.unwrap_or_default(), hold: self.hold })
    }

    fn step(&mut self, seen: &Seen) -> Option<String> {
        // A measurement counts only while exactly the limit runs. With fewer
        // tasks than the limit there is nothing to learn and nothing to limit.
        let full = seen.in_flight >= self.n;
        let over = seen.in_flight > self.n && !matches!(self.phase, Phase::Open);
        if over && matches!(self.phase, Phase::Probing { .. }) && seen.at_us > self.changed_us + PROBE_WAIT_US {
            return self.end_probe();
        }
        let drains = seen.drains && seen.at_us < self.changed_us + DRAIN_US;
        if seen.in_flight == 0 || over || drains || (!full && seen.waiting > 0 && !self.settled) {
            (self.from, self.stage, self.settled) = (None, None, false);
            return None;
        }
        self.settled = true;
        self.stage.get_or_insert(*seen);
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
            &Phase::Probing { rate } => self.probe(seen, &span, rate),
            Phase::Climbing(_) => self.climb(seen, &span, full),
        }
    }

    fn most(&self) -> u32 {
        self.settings.most.min(self.memory.ceiling())
    }

    fn go(&mut self, n: u32) {
        if n != self.n {
            self.changed_us = self.seen_us;
            (self.from, self.stage, self.settled) = (None, None, false);
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
        let patience = if seen.task_us == 0 { CACHE_MOST_US } else { seen.task_us / 2 };
        let until_us = self.changed_us + patience.clamp(CACHE_US, CACHE_MOST_US);
        let fills =
            !matches!(self.phase, Phase::Open) && span.again > 0.0 && seen.at_us.saturating_sub(span.us) < until_us;
        if span.us < MEASURE_US || fills {
            return None;
        }
        let share = span.again_share * 100.0;
        let (n, why) = match self.memory.judge(span, seen.in_flight, seen.fit()) {
            Verdict::Calm => return None,
            Verdict::Fewer(n) => {
                (n, format!("with {} at once {share:.0} % of the bytes had to be read again", seen.in_flight))
            }
            Verdict::Vain(n) => (n, "fewer at once had to read as much again".into()),
        };
        self.hold = n < seen.in_flight;
        self.all = None;
        self.phase = Phase::Climbing(Climb::learnt(n, self.most()));
        self.forgiven_us = seen.at_us;
        self.go(n);
        Some(why)
    }
}

fn measured(seen: &Seen, span: &Span, n: u32) -> Measured {
    Measured { n, rate: span.rate, at_us: seen.at_us, took_us: span.us, waiting: seen.waiting }
}
