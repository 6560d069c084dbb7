//! No limit: watching for evidence that fewer would serve more.

use super::{Controller, EARLY_US, MEASURE_US, PLAINLY_WORSE, PRESSED, PROBE_GAIN, Phase, SLOW, measured};
use crate::climb::{Climb, Step, mb};
use crate::seen::{Seen, Span};

/// Seeks begin a search when they last so long, where all have run for as long: a disk of a cloud or one that others use looks like it for moments.
const LATE_SEEK_US: u64 = 400_000;
/// Fewer are tried where at least so many run, for as long as a task takes, within these bounds.
const PROBE_LEAST: u32 = 4;
const PROBE_US: u64 = 250_000;
const PROBE_MOST_US: u64 = 1_000_000;

impl Controller {
    /// Looks for evidence: seeks, or a long time under pressure.
    pub(super) fn watch(&mut self, seen: &Seen, span: &Span) -> Option<String> {
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
    pub(super) fn probe(&mut self, seen: &Seen, span: &Span, rate: f64) -> Option<String> {
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

    /// All run again, and it takes longer until fewer are tried.
    pub(super) fn end_probe(&mut self) -> Option<String> {
        (self.phase, self.from, self.pressed_us) = (Phase::Open, None, 0);
        self.probe_after_us = self.probe_after_us.saturating_mul(2);
        Some("fewer at once did not serve more".into())
    }
}
