//! The search under pressure: try another number, keep it if it served better.

/// More at once must bring this much, or it is not worth the risk.
const GAIN: f64 = 1.06;
/// While nothing is known a short look must do: more that serve no worse are not yet too many.
pub(crate) const NOT_WORSE: f64 = 1.0;
pub(crate) const START_US: u64 = 100_000;
/// Fewer at once that serve this share of the best serve as well.
const AS_GOOD: f64 = 0.96;
/// Trials may cost this share of the time since the search began. Each one
/// that fails costs its length times what it served less.
const PRICE: f64 = 0.03;
/// What a trial takes at least: two looks.
const TRIAL_US: f64 = 80_000.0;
/// After a search, time until the next.
const REST_US: u64 = 1_000_000;
/// Known rates within this factor of a new one are of the same time.
const SAME: std::ops::Range<f64> = 0.6..1.6;
/// So many measurements in a row, over so long, that differ: it is another time.
const STRANGE: u32 = 4;
const STRANGE_US: u64 = 1_000_000;
/// Longer steps while nothing is known, shorter ones around a known optimum.
const FINE: f64 = 0.25;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Aim {
    Up,
    Down,
}

impl Aim {
    fn other(self) -> Aim {
        if self == Aim::Up { Aim::Down } else { Aim::Up }
    }
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// Tasks at once.
    pub n: u32,
    /// Useful bytes per second.
    pub rate: f64,
    /// When it ended, and how long it took, microseconds.
    pub at_us: u64,
    pub took_us: u64,
    /// Tasks that wait.
    pub waiting: usize,
}

/// Where the search stands.
#[derive(Clone, Debug)]
pub(crate) struct Climb {
    /// The number known to serve best, and what it moved, bytes per second.
    pub best: u32,
    pub best_rate: Option<f64>,
    /// No number above this one is tried.
    pub most: u32,
    aim: Aim,
    /// Directions that have failed since the last success.
    failed: u32,
    coarse: bool,
    began_us: Option<u64>,
    trial_us: u64,
    /// What trials that failed have cost, and the last of them, microseconds.
    spent_us: f64,
    last_cost_us: f64,
    rest_until_us: Option<u64>,
    strange: u32,
    strange_since_us: u64,
}

/// What to do after a measurement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Let so many run at once, because of this.
    Go(u32, String),
    Stay,
}

impl Climb {
    /// A search that begins at `start`; `up` says whether more is tried first.
    pub fn new(start: u32, most: u32, up: bool) -> Climb {
        Climb {
            best: start,
            best_rate: None,
            most: most.max(1),
            aim: if up { Aim::Up } else { Aim::Down },
            failed: 0,
            coarse: true,
            began_us: None,
            trial_us: 0,
            spent_us: 0.0,
            last_cost_us: 0.0,
            rest_until_us: None,
            strange: 0,
            strange_since_us: 0,
        }
    }

    /// Begins at a number that is believed to be right: it is compared with its neighbours only.
    pub fn learnt(start: u32, most: u32) -> Climb {
        Climb { coarse: false, ..Climb::new(start, most, true) }
    }

    /// The same, after twice as many served only this share of it: to try that again will cost as much.
    pub fn left(start: u32, most: u32, share: f64) -> Climb {
        let cost_us = TRIAL_US * (1.0 - share).max(0.0);
        Climb { spent_us: cost_us, last_cost_us: cost_us, ..Climb::learnt(start, most) }
    }

    /// What `m` says is known and believed to be too many: fewer are under trial.
    pub fn doubtful(m: Measured, most: u32) -> Climb {
        let began_us = Some(m.at_us.saturating_sub(m.took_us));
        Climb { best_rate: Some(m.rate), trial_us: m.at_us, began_us, ..Climb::new(m.n, most, false) }
    }

    /// Goes on after a time without pressure; the number now may be another.
    pub fn taken_up(self, now_us: u64) -> Climb {
        Climb { trial_us: now_us, ..self }
    }

    /// What `n` at once serves.
    pub fn measured(&mut self, m: Measured) -> Step {
        self.began_us.get_or_insert(m.at_us.saturating_sub(m.took_us));
        let Some(best_rate) = self.best_rate else {
            (self.best_rate, self.best) = (Some(m.rate), m.n);
            if !self.coarse {
                self.rest(m.at_us);
            }
            return self.propose(m);
        };
        if m.n == self.best { self.at_best(m, best_rate) } else { self.trial(m, best_rate) }
    }

    fn trial(&mut self, m: Measured, best_rate: f64) -> Step {
        let wins = match m.n > self.best {
            true if self.is_start() && m.took_us < START_US => m.rate >= best_rate * NOT_WORSE,
            true => m.rate >= best_rate * GAIN,
            false => m.rate >= best_rate * AS_GOOD,
        };
        let told = format!("{} at once moved {} and {} moved {}", m.n, mb(m.rate), self.best, mb(best_rate));
        if wins {
            // Several steps down that are each as good must not add up to a loss.
            self.best_rate = Some(if m.n < self.best || self.is_start() { m.rate.max(best_rate) } else { m.rate });
            self.best = m.n;
            self.failed = 0;
            if self.aim == Aim::Down && m.n == 1 {
                // What is above was left a moment ago, and to try it again costs as much.
                self.last_cost_us = TRIAL_US * (1.0 - best_rate / m.rate.max(1.0)).max(0.0);
                self.spent_us += self.last_cost_us;
                self.rest(m.at_us);
            }
            return match self.propose(m) {
                Step::Stay => Step::Go(m.n, told),
                Step::Go(next, _) => Step::Go(next, format!("{told}: {next} were being tried")),
            };
        }
        self.last_cost_us = m.at_us.saturating_sub(self.trial_us) as f64 * (1.0 - m.rate / best_rate).max(0.0);
        self.spent_us += self.last_cost_us;
        self.failed += 1;
        self.aim = self.aim.other();
        if self.failed >= 2 || self.next(self.aim) == self.best {
            self.rest(m.at_us);
        }
        Step::Go(self.best, told)
    }

    fn at_best(&mut self, m: Measured, known: f64) -> Step {
        if SAME.contains(&(m.rate / known.max(1.0))) {
            self.strange = 0;
            self.best_rate = Some(0.8 * known + 0.2 * m.rate);
            return self.propose(m);
        }
        if self.strange == 0 {
            self.strange_since_us = m.at_us - m.took_us.min(m.at_us);
        }
        self.strange += 1;
        // Other users came or went: what was known is of another time.
        if self.strange >= STRANGE && m.at_us - self.strange_since_us >= STRANGE_US {
            self.best_rate = Some(m.rate);
            (self.strange, self.failed, self.coarse) = (0, 0, true);
            self.rest_until_us = self.rest_until_us.map(|_| m.at_us);
            self.aim = if m.rate < known { Aim::Down } else { Aim::Up };
        }
        self.propose(m)
    }

    /// Nothing has failed yet and the numbers still double.
    pub fn is_start(&self) -> bool {
        self.coarse && self.failed == 0 && self.aim == Aim::Up && self.rest_until_us.is_none()
    }

    fn next(&self, aim: Aim) -> u32 {
        let n = self.best;
        let step = ((f64::from(n) * FINE) as u32).max(1);
        match aim {
            Aim::Up => (n + if self.coarse { n } else { step }).min(self.most).max(n),
            Aim::Down => (n - if self.coarse { n / 2 } else { step.min(n - 1) }).max(1),
        }
    }

    /// Whether what a failed trial would cost is small beside the run so far and what waits.
    fn affordable(&self, m: Measured) -> bool {
        let elapsed = m.at_us.saturating_sub(self.began_us.unwrap_or(m.at_us)) as f64;
        self.spent_us + self.last_cost_us <= elapsed * PRICE && m.waiting > m.n as usize
    }

    fn propose(&mut self, m: Measured) -> Step {
        if let Some(until) = self.rest_until_us {
            if m.at_us < until || !self.affordable(m) {
                return Step::Stay;
            }
            self.rest_until_us = None;
        }
        for _ in 0..2 {
            let next = self.next(self.aim);
            if next != self.best {
                self.trial_us = m.at_us;
                return Step::Go(next, format!("{next} were being tried: {} at once had served best", self.best));
            }
            self.aim = self.aim.other();
        }
        self.rest(m.at_us);
        Step::Stay
    }

    fn rest(&mut self, now_us: u64) {
        self.rest_until_us = Some(now_us + REST_US);
        self.coarse = false;
        self.failed = 0;
    }
}

/// A rate for people.
pub(crate) fn mb(rate: f64) -> String {
    if rate < 1e6 { format!("{:.0} kB/s", rate / 1e3) } else { format!("{:.0} MB/s", rate / 1e6) }
}
