//! From looks at a storage host to its limit.

use crate::climb::{Climb, Measured, NOT_WORSE, START_US, Step, mb};
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
const CPU_BUSY: f64 = 0.85;
/// Under pressure a start goes on when the tasks have got so many bytes since
/// the last step: on a disk that stands it, some milliseconds.
const STEP_BYTES: f64 = 1e6;
/// Less than this since the last look: they do not read their data yet.
const FIRST_BYTES: f64 = 65_536.0;
/// ... or after this time: those that read from other hosts are not seen here.
const PATIENT_US: u64 = 100_000;
/// A head on its way for this share of the time, over so long, is the evidence
/// without which nothing is limited: then fewer may serve more.
const SLOW: f64 = 0.4;
const SEEK_US: u64 = 15_000;
/// The same where all have run for as long: a disk of a cloud or one that others use looks like it for moments.
const LATE_SEEK_US: u64 = 400_000;
const LESS: f64 = 0.95;
/// A start with this number: one processor reads while another computes.
const FIRST: u32 = 2;
/// Seeks that turned out to do no harm are believed again after this time, then ever more rarely.
const BELIEVE_AFTER_US: u64 = 2_000_000;
/// Without it: after so long under pressure fewer are tried, first after this
/// time, then ever more rarely; for as long as a task takes, within these bounds.
const PROBE_AFTER_US: u64 = 5_000_000;
const PROBE_LEAST: u32 = 4;
const PROBE_US: u64 = 250_000;
const PROBE_MOST_US: u64 = 1_000_000;
/// Fewer must serve so much more.
const PROBE_GAIN: f64 = 1.15;
/// Tasks too old to stand still: the trial is given up after this time.
const PROBE_WAIT_US: u64 = 1_000_000;
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
    /// Begins with two tasks, one where there is one processor, or with what was learnt.
    pub fn new(settings: Settings) -> Controller {
        let most = settings.most.max(1);
        let n = settings.learnt.unwrap_or(FIRST.min(settings.cores)).clamp(1, most);
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
        if over && matches!(self.phase, Phase::Probing { .. }) && seen.at_us > self.changed_us + PROBE_WAIT_US {
            return self.end_probe();
        }
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

    /// Doubles until the host's slots are the limit, unless that is seen to do harm.
    fn rise(&mut self, seen: &Seen, span: &Span, full: bool) -> Option<String> {
        if span.pressure() > QUIET {
            return self.rise_pressed(seen, span, full);
        }
        let busy = self.is_busy(span);
        let step = match (self.wary, busy) {
            (true, _) => MEASURE_US,
            (_, true) => BUSY_STEP_US,
            _ => STEP_US,
        };
        if span.us < step {
            return None;
        }
        // Not all that storage could do, but more at once must not do less.
        self.known = (span.got >= FIRST_BYTES).then(|| (self.n, span.got / span.us as f64));
        self.grow(seen, span, full).then(|| "no task waited for storage".into())
    }

    fn rise_pressed(&mut self, seen: &Seen, span: &Span, full: bool) -> Option<String> {
        let now_us = seen.at_us;
        if let Some(climb) = self.interrupted.take() {
            self.from = Some(*seen);
            self.phase = Phase::Climbing(climb.taken_up(now_us));
            return None;
        }
        if let Some(why) = self.retreat(seen, span) {
            return Some(why);
        }
        let patient = now_us < self.changed_us + PATIENT_US;
        if span.got < FIRST_BYTES && patient {
            // Programs are being read, not their data: the disk of the data is not known yet.
            self.from = Some(*seen);
            return None;
        }
        if span.got < STEP_BYTES && patient {
            return None;
        }
        if self.is_busy(span) {
            self.linger(seen);
            return None;
        }
        self.known = Some((self.n, span.got / span.us as f64));
        let n = self.n;
        self.grow(seen, span, full).then(|| format!("the start was not over: {n} at once were served"))
    }

    /// Twice as many made a head seek, and less came: so many it was before.
    fn retreat(&mut self, seen: &Seen, span: &Span) -> Option<String> {
        if span.us < SEEK_US || span.slow < SLOW || self.n < 2 {
            return None;
        }
        let Some((fewer, rate)) = self.known else { return Some(self.doubt(seen, span)) };
        if span.got / span.us as f64 >= rate * LESS {
            return None;
        }
        let now = span.got / span.us as f64 * 1e6;
        let why = format!("{} at once make the disk seek: {} instead of {}", self.n, mb(now), mb(rate * 1e6));
        self.from = Some(*seen);
        self.phase = Phase::Climbing(Climb::left(fewer, self.most(), now / (rate * 1e6)));
        self.hold = true;
        self.go(fewer);
        Some(why)
    }

    /// So many make a head seek, and what fewer do is not known yet.
    fn doubt(&mut self, seen: &Seen, span: &Span) -> String {
        let n = self.n;
        self.from = Some(*seen);
        self.hold = true;
        if n == 2 {
            self.phase = Phase::Climbing(Climb::doubtful(measured(seen, span, n), self.most()));
            self.go(1);
        } else {
            self.search(span.rate);
        }
        format!("{n} at once make the disk seek")
    }

    /// From one up, or from what was learnt; all together served `rate`.
    fn search(&mut self, rate: f64) {
        self.all = Some(rate);
        self.phase = Phase::Climbing(Climb::new(1, self.most(), true));
        self.hold = true;
        self.go(self.settings.learnt.unwrap_or(1));
    }

    /// A search that seeks began and that found nothing better than all at once is given up.
    fn give_up(&mut self, now_us: u64) -> Option<String> {
        let Phase::Climbing(climb) = &self.phase else { return None };
        let (rate, found) = self.all.zip(climb.best_rate)?;
        if climb.is_start() {
            return None;
        }
        self.all = None;
        if found >= rate * PROBE_GAIN {
            return None;
        }
        self.believe_us = (now_us + self.believe_us.1, self.believe_us.1.saturating_mul(2));
        (self.phase, self.from, self.pressed_us) = (Phase::Open, None, 0);
        Some("the disk's seeks did no harm".into())
    }

    /// Processors are the bottleneck: more at once gains nothing.
    fn is_busy(&self, span: &Span) -> bool {
        span.cpu.is_some_and(|c| c > CPU_BUSY) && self.n >= 2 * self.settings.cores
    }

    fn grow(&mut self, seen: &Seen, span: &Span, full: bool) -> bool {
        if self.n < self.settings.open_at.min(self.most()) {
            if !full && seen.waiting > 0 {
                self.from = Some(*seen);
                return false;
            }
            let cap = self.memory.cap(seen, self.n, span.pressure() > QUIET);
            // Beyond what the page cache holds, the last step has to show what it does.
            let beyond = seen.again == Some(true) && seen.fit().is_some_and(|fit| self.n >= fit);
            let shown_us = self.changed_us + seen.task_us.clamp(MEASURE_US, MEASURE_MOST_US);
            if cap <= self.n || (beyond && (self.is_busy(span) || seen.at_us < shown_us)) {
                self.linger(seen);
                return false;
            }
            self.go((self.n * 2).min(cap));
        } else {
            self.from = Some(*seen);
        }
        if self.n >= self.settings.open_at || !full {
            (self.phase, self.pressed_us) = (Phase::Open, 0);
        }
        true
    }

    /// Goes on measuring, long enough for the guard of the page cache.
    fn linger(&mut self, seen: &Seen) {
        self.from = self.from.filter(|from| seen.at_us < from.at_us + 2 * MEASURE_US).or(Some(*seen));
    }

    fn watch(&mut self, seen: &Seen, span: &Span) -> Option<String> {
        let enough = seen.task_us.clamp(PROBE_US, PROBE_MOST_US);
        let pressed = span.pressure() >= PRESSED && seen.in_flight > 1;
        let seeks = pressed && span.slow >= SLOW && seen.at_us >= self.believe_us.0;
        let late = seen.at_us > self.changed_us + LATE_SEEK_US;
        let evident = if late { LATE_SEEK_US } else { MEASURE_US };
        if span.us < if seeks { evident } else { enough } {
            return None;
        }
        self.from = Some(*seen);
        if seeks {
            self.search(span.rate);
            return Some(format!("{} at once make the disk seek", seen.in_flight));
        }
        self.pressed_us = if pressed { self.pressed_us + span.us } else { 0 };
        let now = seen.in_flight.min(self.settings.most);
        if self.pressed_us < self.probe_after_us || now < PROBE_LEAST || seen.waiting < now as usize {
            return None;
        }
        self.phase = Phase::Probing { rate: span.rate };
        self.hold = true;
        self.go(now / 2);
        Some(format!("storage was waited for {:.0} % of the time with {now} at once", span.pressure() * 100.0))
    }

    /// Fewer at once, to see whether that serves more: the limit stays only when it plainly does.
    fn probe(&mut self, seen: &Seen, span: &Span, rate: f64) -> Option<String> {
        let enough = seen.task_us.clamp(PROBE_US, PROBE_MOST_US);
        let worse = span.us >= EARLY_US && span.rate < rate * PLAINLY_WORSE;
        if span.us < enough && !worse {
            return None;
        }
        if span.rate < rate * PROBE_GAIN {
            return self.end_probe();
        }
        let mut climb = Climb::new(self.n, self.most(), false);
        let step = climb.measured(measured(seen, span, self.n));
        self.phase = Phase::Climbing(climb);
        let why = format!("{} at once moved {}, more moved {}", self.n, mb(span.rate), mb(rate));
        if let Step::Go(next, _) = step {
            self.hold = true;
            self.go(next);
        }
        Some(why)
    }

    fn end_probe(&mut self) -> Option<String> {
        (self.phase, self.from, self.pressed_us) = (Phase::Open, None, 0);
        self.probe_after_us = self.probe_after_us.saturating_mul(2);
        Some("fewer at once did not serve more".into())
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
        let step = climb.measured(measured(seen, span, n));
        if let Some(why) = self.give_up(seen.at_us) {
            return Some(why);
        }
        match step {
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
            // First its file from the disk, then from memory: half of a task tells nothing.
            Some(_) if self.n != climb.best && seen.again == Some(true) => enough,
            Some(best) if self.n != climb.best => {
                if self.n > climb.best && climb.is_start() && span.us < START_US && span.rate >= best * NOT_WORSE {
                    return EARLY_US;
                }
                let worse = if self.n < climb.best { FEWER_WORSE } else { PLAINLY_WORSE };
                // A search among all that run already: there is time to see harm for more than a moment.
                let early = if self.all.is_some() && span.rate < best { MEASURE_US } else { EARLY_US };
                let plain = !(best * worse..best * PLAINLY_BETTER).contains(&span.rate);
                if plain { early } else { enough }
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
