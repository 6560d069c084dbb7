//! The time that is shown: now, or a moment of a run that is played again.

use std::time::{Duration, Instant};

/// The fastest that a run is played.
const FASTEST: u32 = 100_000;

/// See above.
pub struct Clock {
    /// So many times as fast as it was.
    times: Option<u32>,
    /// A moment of the run, ns since the epoch, and when it was shown.
    at: Option<(i64, Instant)>,
    held: bool,
}

impl Clock {
    /// Of what happens now, or of what is played again.
    pub fn new(times: Option<u32>) -> Clock {
        Clock { times, at: None, held: false }
    }

    /// Something is played again.
    pub fn replays(&self) -> bool {
        self.times.is_some()
    }

    /// It is not known yet when that began.
    pub fn wants_begin(&self) -> bool {
        self.replays() && self.at.is_none()
    }

    /// It began then.
    pub fn begin(&mut self, ns: i64) {
        self.at = Some((ns, Instant::now()));
    }

    /// ns since the epoch.
    pub fn now_ns(&self) -> i64 {
        match (self.times, self.at) {
            (Some(times), Some((ns, since))) => {
                let passed = if self.held { Duration::ZERO } else { since.elapsed().saturating_mul(times) };
                ns.saturating_add(i64::try_from(passed.as_nanos()).unwrap_or(i64::MAX))
            }
            _ => homing_clock::wall_ns(),
        }
    }

    fn settle(&mut self) {
        let now = self.now_ns();
        if self.at.is_some() {
            self.begin(now);
        }
    }

    /// What is played again stands still, or goes on. A run that goes on does not wait.
    pub fn pause(&mut self) {
        self.settle();
        self.held = !self.held && self.replays();
    }

    /// Twice as fast, or half.
    pub fn change(&mut self, faster: bool) {
        self.settle();
        self.times =
            self.times.map(|times| if faster { times.saturating_mul(2).min(FASTEST) } else { (times / 2).max(1) });
    }

    /// For the last line.
    pub fn hint(&self) -> String {
        match self.times {
            None => String::new(),
            Some(_) if self.held => "held; the space bar goes on".into(),
            Some(times) => format!("{times} times as fast"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_stands_still_and_goes_on_from_there() {
        let mut clock = Clock::new(Some(1000));
        assert!(clock.wants_begin());
        clock.begin(5);
        clock.pause();
        let held = clock.now_ns();
        assert!(held >= 5 && clock.now_ns() == held && clock.hint().starts_with("held"));
        clock.pause();
        clock.change(true);
        assert!(clock.now_ns() >= held && clock.hint() == "2000 times as fast");
        (0..30).for_each(|_| clock.change(false));
        assert_eq!(clock.hint(), "1 times as fast");
        // What goes on now neither waits nor hastens.
        let mut now = Clock::new(None);
        now.pause();
        assert!(!now.replays() && !now.wants_begin() && now.hint().is_empty());
    }
}
