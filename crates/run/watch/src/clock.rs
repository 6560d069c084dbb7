//! The time that is shown: the present, or a moment of a run that is replayed.

use std::time::{Duration, Instant};

/// The highest speed of a replay.
const FASTEST: u32 = 100_000;

/// The source of the time that is shown.
pub struct Clock {
    /// The speed of the replay, as a multiple of the original. `None` shows the present.
    times: Option<u32>,
    /// A moment of the run, ns since 1970, and the instant at which it was shown.
    at: Option<(i64, Instant)>,
    held: bool,
}

impl Clock {
    /// Makes the clock of a replay at `times` the original speed, or of the present.
    pub fn new(times: Option<u32>) -> Clock {
        Clock { times, at: None, held: false }
    }

    /// Whether a run is replayed.
    pub fn replays(&self) -> bool {
        self.times.is_some()
    }

    /// Whether the begin of the replayed run is still unknown.
    pub fn wants_begin(&self) -> bool {
        self.replays() && self.at.is_none()
    }

    /// Sets the moment at which the replay begins.
    pub fn begin(&mut self, ns: i64, now: Instant) {
        self.at = Some((ns, now));
    }

    /// Returns the moment of the replay that is shown at `now`, ns since 1970. `None` means the present.
    pub fn shown_ns(&self, now: Instant) -> Option<i64> {
        let ((ns, since), times) = self.at.zip(self.times)?;
        let passed = now.saturating_duration_since(since).saturating_mul(times);
        let passed = if self.held { Duration::ZERO } else { passed };
        Some(ns.saturating_add(i64::try_from(passed.as_nanos()).unwrap_or(i64::MAX)))
    }

    fn settle(&mut self, now: Instant) {
        self.at = self.shown_ns(now).map(|ns| (ns, now)).or(self.at);
    }

    /// Pauses or continues a replay. The present cannot be paused.
    pub fn pause(&mut self, now: Instant) {
        self.settle(now);
        self.held = !self.held && self.replays();
    }

    /// Doubles or halves the speed.
    pub fn change(&mut self, faster: bool, now: Instant) {
        self.settle(now);
        self.times =
            self.times.map(|times| if faster { times.saturating_mul(2).min(FASTEST) } else { (times / 2).max(1) });
    }

    /// Returns the text for the last line.
    pub fn hint(&self) -> String {
        match self.times {
            None => String::new(),
            Some(_) if self.held => "paused; the space bar continues".into(),
            Some(times) => format!("{times} times as fast"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_stands_still_and_goes_on_from_there() {
        let begun = Instant::now();
        let after = |ms| begun + Duration::from_millis(ms);
        let mut clock = Clock::new(Some(1000));
        assert!(clock.wants_begin());
        clock.begin(5, begun);
        assert_eq!(clock.shown_ns(after(1)), Some(1_000_000_005));
        clock.pause(after(2));
        assert_eq!((clock.shown_ns(after(9)), clock.hint().starts_with("paused")), (Some(2_000_000_005), true));
        clock.pause(after(9));
        clock.change(true, after(10));
        assert_eq!((clock.shown_ns(after(11)), clock.hint()), (Some(5_000_000_005), "2000 times as fast".into()));
        (0..30).for_each(|_| clock.change(false, after(11)));
        assert_eq!(clock.hint(), "1 times as fast");
        // The present can be neither paused nor accelerated.
        let mut now = Clock::new(None);
        now.pause(begun);
        assert!(!now.replays() && !now.wants_begin() && now.hint().is_empty() && now.shown_ns(begun).is_none());
    }
}
