//! The search for the best number, and when it is given up.

use super::{
    Controller, EARLY_US, MEASURE_MOST_US, MEASURE_US, PLAINLY_WORSE, PROBE_GAIN, Phase, QUIET, SLOW, measured,
};
use crate::climb::{Climb, NOT_WORSE, START_US, Step};
use crate::seen::{Seen, Span};

/// Fewer at once are only kept when they serve as well: below this share they plainly do not.
const FEWER_WORSE: f64 = 0.75;
/// A trial is over early above this share of the best.
const PLAINLY_BETTER: f64 = 1.4;
/// Quiet for so long: not a pause between two files.
const QUIET_US: u64 = 150_000;

impl Controller {
    /// From one up, or from what was learnt; all together served `rate`.
    pub(super) fn search(&mut self, rate: f64) {
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

    /// A step of the search, which rests while storage is quiet.
    pub(super) fn climb(&mut self, seen: &Seen, span: &Span, full: bool) -> Option<String> {
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
                // A search among all that run already: there is time to see harm for more than a moment. And
                // one that has to seek alone looks for its file first.
                let moment = self.all.is_some() || (self.n == 1 && span.slow >= SLOW);
                let early = if moment && span.rate < best { MEASURE_US } else { EARLY_US };
                let plain = !(best * worse..best * PLAINLY_BETTER).contains(&span.rate);
                if plain { early } else { enough }
            }
            // A disk's quiet moments are between files.
            Some(_) if span.pressure() <= QUIET => MEASURE_US,
            Some(_) => enough,
        }
    }
}
