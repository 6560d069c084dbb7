//! The slow start: the number doubles as long as no task waits for storage, or storage serves more.

use super::{Controller, SearchPhase, ServedRate, mb, rate_comparison};
use crate::span::{AdmissionSample, Span};
use homing_model::event::NO_WAIT;

impl Controller {
    pub(super) fn slow_start(
        &mut self,
        look: &AdmissionSample,
        span: &Span,
        before: Option<ServedRate>,
    ) -> Option<String> {
        self.note_start(look, span);
        let (quiet, starts) = (span.pressure() <= self.tuning.quiet, self.only_starts(look, span));
        if look.pulse.at_us < self.changed_us + self.starts_us {
            // The added tasks are still beginning, as the first one did; until then the others are served alone.
            self.restart(look);
            return None;
        }
        if span.got == 0 && (starts || !quiet) {
            // Programs are being loaded; the measurement counts from the first bytes of tasks.
            self.restart(look);
        }
        if quiet {
            let told = span.us >= self.tuning.step_us && !starts;
            return told.then(|| self.double(look, None)).flatten();
        }
        let young = look.pulse.at_us < self.changed_us + self.tuning.vain_us;
        let few = (span.got as f64) < self.tuning.step_bytes * f64::from(self.n);
        if young && (few || self.looks < self.tuning.looks) {
            return None;
        }
        let now = ServedRate { tasks: look.load.in_flight, rate: span.rate };
        let plain =
            before.is_none_or(|b| now.rate < b.rate * self.tuning.plain || now.rate >= b.rate * self.tuning.gain);
        if young && !plain {
            return None;
        }
        match before {
            Some(before) if now.rate < before.rate => {
                let why = rate_comparison(now, before);
                self.fail(now, before, look);
                Some(why)
            }
            Some(before) if now.rate < before.rate * self.tuning.gain => {
                self.phase = SearchPhase::Settled { best: Some(now) };
                self.restart(look);
                None
            }
            _ => self.double(look, Some(now)),
        }
    }

    /// Learns from the first task how long programs take to begin.
    fn note_start(&mut self, look: &AdmissionSample, span: &Span) {
        if self.n == 1 && self.starts_us == 0 && span.got as f64 >= self.enough(look) / 8.0 {
            let since = look.pulse.at_us - self.began_us.unwrap_or(look.pulse.at_us);
            self.starts_us = since.min(self.tuning.starts_us);
        }
    }

    /// Returns the bytes after which a task reads its inputs, no longer its program.
    fn enough(&self, look: &AdmissionSample) -> f64 {
        let half = look.load.inputs as f64 / f64::from(look.load.in_flight.max(1)) / 2.0;
        half.min(self.tuning.step_bytes)
    }

    /// Whether tasks with inputs may not have begun to read them: such tasks do not wait for storage either.
    fn only_starts(&self, look: &AdmissionSample, span: &Span) -> bool {
        let few = (span.got as f64) < self.enough(look) * f64::from(look.load.in_flight);
        few && look.pulse.at_us < self.changed_us.max(self.began_us.unwrap_or(0)) + self.tuning.starts_us
    }

    fn double(&mut self, look: &AdmissionSample, served: Option<ServedRate>) -> Option<String> {
        self.restart(look);
        if look.load.in_flight < self.n && look.load.waiting > 0 {
            return None;
        }
        let most = self.settings.open_at.min(self.settings.most);
        let next = (self.n * 2).min(self.cap(look));
        if self.n >= most {
            self.phase = SearchPhase::Settled { best: served };
            self.go(self.settings.most, look);
        } else if next > self.n {
            self.phase = SearchPhase::SlowStart { before: served };
            self.go(if next >= most { self.settings.most.min(next) } else { next }, look);
        }
        Some(match served {
            Some(served) => format!("{} at once were served {}", served.tasks, mb(served.rate)),
            None => NO_WAIT.into(),
        })
    }
}
