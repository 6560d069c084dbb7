//! The search under pressure: try another number, keep it if it served better.

/// More at once must bring this much, or it is not worth the risk.
const GAIN: f64 = 1.06;
/// Fewer at once that serve this share of the best serve as well.
const AS_GOOD: f64 = 0.96;
/// Below this share of the best, a trial was plainly wrong.
const PLAINLY_WORSE: f64 = 0.7;
/// Pause between two trials: the first, and the longest, microseconds. A failed
/// trial costs about a task's time, so that pauses are also counted in tasks.
const FIRST_PAUSE_US: u64 = 3_000_000;
const LONGEST_PAUSE_US: u64 = 120_000_000;
const PAUSE_TASKS: u64 = 30;
/// Longer steps while nothing is known, shorter ones around a known optimum.
const FINE: f64 = 0.25;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Aim {
    Up,
    Down,
}

/// Where the search stands.
#[derive(Clone, Debug)]
pub(crate) struct Climb {
    /// The number known to serve best, and what it moved, bytes per second.
    pub best: u32,
    pub best_rate: Option<f64>,
    most: u32,
    aim: Aim,
    /// Directions that have failed since the last success.
    failed: u32,
    coarse: bool,
    pause_us: u64,
    resume_at_us: Option<u64>,
    /// Measurements in a row at `best` that differ from what was known.
    strange: u32,
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
            most,
            aim: if up { Aim::Up } else { Aim::Down },
            failed: 0,
            coarse: true,
            pause_us: FIRST_PAUSE_US,
            resume_at_us: None,
            strange: 0,
        }
    }

    /// `rate` was measured with `n` at once until `now_us`.
    pub fn measured(&mut self, n: u32, rate: f64, now_us: u64, task_us: u64) -> Step {
        let Some(best_rate) = self.best_rate else {
            self.best_rate = Some(rate);
            self.best = n;
            return self.propose(now_us, task_us);
        };
        if n == self.best {
            return self.at_best(rate, best_rate, now_us, task_us);
        }
        let wins = if n > self.best { rate >= best_rate * GAIN } else { rate >= best_rate * AS_GOOD };
        let told = format!("{n} at once moved {}, {} moved {}", mb(rate), self.best, mb(best_rate));
        if wins {
            // Several steps down that are each as good must not add up to a loss.
            self.best_rate = Some(if n < self.best { rate.max(best_rate) } else { rate });
            self.best = n;
            self.failed = 0;
            return match self.propose(now_us, task_us) {
                Step::Stay => Step::Go(n, told),
                Step::Go(next, _) => Step::Go(next, told),
            };
        }
        self.failed += 1;
        if rate < best_rate * PLAINLY_WORSE {
            self.pause_us = (self.pause_us * 3).min(LONGEST_PAUSE_US);
        }
        self.aim = if self.aim == Aim::Up { Aim::Down } else { Aim::Up };
        if self.failed >= 2 || self.next(self.aim) == self.best {
            self.rest(now_us, task_us);
        }
        Step::Go(self.best, told)
    }

    fn at_best(&mut self, rate: f64, known: f64, now_us: u64, task_us: u64) -> Step {
        // Other users came or went: what was known is of another time.
        let differs = !(0.6..1.5).contains(&(rate / known.max(1.0)));
        self.strange = if differs { self.strange + 1 } else { 0 };
        if self.strange >= 4 {
            self.best_rate = Some(rate);
            (self.strange, self.failed, self.coarse) = (0, 0, true);
            self.pause_us = FIRST_PAUSE_US;
            self.resume_at_us = self.resume_at_us.map(|at| at.min(now_us + FIRST_PAUSE_US));
            self.aim = if rate < known { Aim::Down } else { Aim::Up };
            return self.propose(now_us, task_us);
        }
        if !differs {
            self.best_rate = Some(0.8 * known + 0.2 * rate);
        }
        self.propose(now_us, task_us)
    }

    fn next(&self, aim: Aim) -> u32 {
        let n = self.best;
        let step = if self.coarse { n } else { ((f64::from(n) * FINE) as u32).max(1) };
        match aim {
            Aim::Up => (n + step).min(self.most),
            Aim::Down => n.saturating_sub(if self.coarse { n / 2 } else { step }).max(1),
        }
    }

    fn propose(&mut self, now_us: u64, task_us: u64) -> Step {
        if self.resume_at_us.is_some_and(|at| now_us < at) {
            return Step::Stay;
        }
        if self.resume_at_us.take().is_some() {
            self.failed = 0;
        }
        for _ in 0..2 {
            let next = self.next(self.aim);
            if next != self.best {
                return Step::Go(next, format!("trying {next} after {} at once", self.best));
            }
            self.aim = if self.aim == Aim::Up { Aim::Down } else { Aim::Up };
            self.failed += 1;
        }
        self.rest(now_us, task_us);
        Step::Stay
    }

    fn rest(&mut self, now_us: u64, task_us: u64) {
        let pause = self.pause_us.max(task_us.saturating_mul(PAUSE_TASKS)).min(LONGEST_PAUSE_US.max(task_us * 8));
        self.resume_at_us = Some(now_us + pause);
        self.pause_us = (self.pause_us * 2).min(LONGEST_PAUSE_US);
        self.coarse = false;
        self.failed = 0;
    }
}

/// A rate for people.
pub(crate) fn mb(rate: f64) -> String {
    if rate < 1e6 { format!("{:.0} kB/s", rate / 1e3) } else { format!("{:.0} MB/s", rate / 1e6) }
}
