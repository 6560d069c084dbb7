//! The search: another number is tried, and kept if it serves more.

use super::{Controller, Direction, SearchPhase, ServedRate, mb, rate_comparison};
use crate::span::{AdmissionSample, Span};
use homing_model::event::NO_WAIT;

impl Controller {
    /// Measures the number in force, and tries another if that costs little.
    pub(super) fn settled(&mut self, look: &AdmissionSample, span: &Span, best: Option<ServedRate>) -> Option<String> {
        if span.us < self.window_us(look) {
            return None;
        }
        let now = ServedRate { tasks: self.n, rate: span.rate };
        match span.quiet(self.tuning.quiet) {
            None => return None,
            Some(true) => return self.grow(look, best),
            Some(false) => self.restart(look),
        }
        self.phase = SearchPhase::Settled { best: Some(now) };
        // The old rate is of another time: other users came, or the tasks that began first had the storage for
        // themselves.
        let strange = best.is_some_and(|best| now.rate < best.rate * self.tuning.plain);
        if strange {
            (self.direction, self.last_cost_us, self.spent_us) = (Direction::Down, 0.0, 0.0);
        }
        let elapsed_us = look.pulse.at_us.saturating_sub(self.began_us?) as f64;
        if look.load.waiting < self.n as usize || self.spent_us + self.last_cost_us > elapsed_us * self.tuning.price {
            return None;
        }
        let mut next = self.next(self.direction, self.n);
        if next == self.n {
            self.turn();
            next = self.next(self.direction, self.n);
        }
        if next == self.n {
            return None;
        }
        self.phase = SearchPhase::Trial { best: now, top: now };
        self.go(next, look);
        Some(format!("a limit of {next} is being tried; {} at once were served {}", now.tasks, mb(now.rate)))
    }

    /// No task waits for storage: more may run, at no price.
    fn grow(&mut self, look: &AdmissionSample, best: Option<ServedRate>) -> Option<String> {
        self.restart(look);
        self.direction = Direction::Up;
        let next = self.next(Direction::Up, self.n).min(self.cap(look)).max(self.n);
        if let Some(best) = best.filter(|_| next > self.n) {
            self.phase = SearchPhase::Trial { best, top: best };
        }
        self.go(next, look);
        Some(NO_WAIT.into())
    }

    /// Judges another number.
    pub(super) fn trial(
        &mut self,
        look: &AdmissionSample,
        span: &Span,
        best: ServedRate,
        top: ServedRate,
    ) -> Option<String> {
        if span.us < self.window_us(look) {
            return None;
        }
        if span.quiet(self.tuning.quiet) == Some(true) {
            self.phase = SearchPhase::Settled { best: None };
            return None;
        }
        let now = ServedRate { tasks: self.n, rate: span.rate };
        let top = if now.rate > top.rate { now } else { top };
        let next = self.next(Direction::Down, self.n);
        let goes_on = self.direction == Direction::Down && now.rate >= best.rate * self.tuning.plain && next < self.n;
        if goes_on {
            // With any number a disk that seeks serves the same, until one task is left.
            self.phase = SearchPhase::Trial { best, top };
            self.go(next, look);
        } else if top.rate >= best.rate * self.tuning.gain {
            self.phase = SearchPhase::Settled { best: Some(top) };
            self.go(top.tasks, look);
        } else {
            self.fail(now, best, look);
        }
        Some(rate_comparison(now, best))
    }

    /// Returns to the best known number after a failed trial.
    pub(super) fn fail(&mut self, now: ServedRate, best: ServedRate, look: &AdmissionSample) {
        self.failing = Some((self.changed_us, (1.0 - now.rate / best.rate.max(1.0)).max(0.0)));
        self.turn();
        self.phase = SearchPhase::Settled { best: Some(best) };
        self.go(best.tasks, look);
    }

    /// Adds the cost of a failed trial, once the tasks that began with it have ended.
    pub(super) fn charge(&mut self, look: &AdmissionSample) {
        let Some((since_us, lost)) = self.failing.take() else { return };
        self.last_cost_us = look.pulse.at_us.saturating_sub(since_us) as f64 * lost;
        self.spent_us += self.last_cost_us;
    }

    fn turn(&mut self) {
        self.direction = if self.direction == Direction::Up { Direction::Down } else { Direction::Up };
    }

    /// Returns the time over which the search measures, microseconds.
    fn window_us(&self, look: &AdmissionSample) -> u64 {
        look.load.task_us.max(self.tuning.measure_us)
    }

    fn next(&self, direction: Direction, n: u32) -> u32 {
        match direction {
            Direction::Up => (n + n.div_ceil(2)).min(self.settings.most),
            Direction::Down => (n / 2).max(1),
        }
    }
}
