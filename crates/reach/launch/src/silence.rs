//! Finds workers that have been silent for too long. The limit is [`HOST_LOST_S`] of `wire`, beside the lease of a
//! worker. A worker without messages ends itself before the coordinator counts it as lost.

use crate::wire::HOST_LOST_S;
use std::time::{Duration, Instant};

/// Longest pause between two looks. After a longer one the coordinator itself was stopped, or the machine was.
const PAUSE: Duration = Duration::from_secs(5);

/// The times of the regular looks for silent workers.
#[derive(Debug)]
pub struct Silence {
    looked: Instant,
    /// The time at which the last pause of the coordinator was found.
    paused: Option<Instant>,
}

impl Silence {
    /// Starts the clock; the first look follows soon.
    pub fn new(now: Instant) -> Silence {
        Silence { looked: now, paused: None }
    }

    /// Whether all connected workers count as alive `now`: after a pause of the coordinator, their silence proves
    /// nothing.
    pub fn is_own(&mut self, now: Instant) -> bool {
        let is_own = now.saturating_duration_since(self.looked) > PAUSE;
        (self.looked, self.paused) = (now, self.paused.max(is_own.then_some(now)));
        is_own
    }

    /// Whether a worker that is gone `now` may have ended itself because of a pause of the coordinator.
    pub fn explains(&self, now: Instant) -> bool {
        let since = |at: Instant| now.saturating_duration_since(at);
        since(self.looked) > PAUSE
            || self.paused.is_some_and(|at| since(at) <= Duration::from_secs(HOST_LOST_S) + PAUSE)
    }

    /// Whether a worker counts as lost, given the time of its last message.
    pub fn is_too_long(heard: Instant, now: Instant) -> bool {
        now.saturating_duration_since(heard) > Duration::from_secs(HOST_LOST_S)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_pause_of_ones_own_nobody_is_lost() {
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        let mut silence = Silence::new(start);
        assert!((1..=31).all(|s| !silence.is_own(at(s))));
        assert!(Silence::is_too_long(start, at(31)) && !Silence::is_too_long(start, at(30)));
        assert!(!silence.explains(at(32)) && silence.explains(at(71)), "also before the look");
        assert!(silence.is_own(at(71)) && !silence.is_own(at(72)));
        assert!(silence.explains(at(73)));
        assert!((73..=110).all(|s| !silence.is_own(at(s))) && !silence.explains(at(110)));
    }
}
