//! The slow start: twice as many as long as storage is not waited for, or serves more.

use super::{Controller, Phase, Served, mb, told};
use crate::span::{Look, Span};

impl Controller {
    pub(super) fn slow_start(&mut self, look: &Look, span: &Span, before: Option<Served>) -> Option<String> {
        if span.pressure() <= self.tuning.quiet {
            return (span.us >= self.tuning.step_us).then(|| self.double(look, None)).flatten();
        }
        if span.got == 0 {
            // Programs are being loaded; what tasks get counts from their first bytes.
            self.from = Some(*look);
        }
        let young = look.pulse.at_us < self.changed_us + self.tuning.vain_us;
        if young && (span.got as f64) < self.tuning.step_bytes * f64::from(self.n) {
            return None;
        }
        let now = Served { tasks: look.load.in_flight, rate: span.rate };
        let plain =
            before.is_none_or(|b| now.rate < b.rate * self.tuning.plain || now.rate >= b.rate * self.tuning.gain);
        if young && !plain {
            return None;
        }
        match before {
            Some(before) if now.rate < before.rate => {
                let why = told(now, before);
                self.fail(now, before, look);
                Some(why)
            }
            Some(before) if now.rate < before.rate * self.tuning.gain => {
                self.phase = Phase::Settled { best: Some(now) };
                self.from = Some(*look);
                None
            }
            _ => self.double(look, Some(now)),
        }
    }

    fn double(&mut self, look: &Look, served: Option<Served>) -> Option<String> {
        self.from = Some(*look);
        if look.load.in_flight < self.n && look.load.waiting > 0 {
            return None;
        }
        let most = self.settings.open_at.min(self.settings.most);
        let next = (self.n * 2).min(self.cap(look));
        if self.n >= most {
            self.phase = Phase::Settled { best: served };
            self.go(self.settings.most, look);
        } else if next > self.n {
            self.phase = Phase::SlowStart { before: served };
            self.go(if next >= most { self.settings.most.min(next) } else { next }, look);
        }
        Some(match served {
            Some(served) => format!("{} at once were served {}", served.tasks, mb(served.rate)),
            None => "no task waited for storage".into(),
        })
    }
}
