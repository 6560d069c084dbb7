//! The guard of the page cache: when tasks read again what others drove out,
//! fewer at once are better whatever the disk's rate says.

use crate::seen::{Seen, Span};

/// Bytes that were read again, as a share of all that moved: above this the cache is overrun.
const OVERRUN: f64 = 0.3;
/// Less than this, bytes per second, is nothing.
const SLIGHT: f64 = 4e6;
/// One task alone must bring the share below this part of what it was, or memory is not the reason.
const HELPED: f64 = 0.8;
/// At least so many times fewer are tried, and at most.
const STEP: (u32, u32) = (2, 8);

/// A start waits so long to learn whether tasks read their data again, and so long when they do.
const UNKNOWN_US: u64 = 10_000_000;
const KNOWN_US: u64 = 60_000_000;
/// What is tried beyond what fits: a part of it.
const MORE: u32 = 4;

/// What the guard says.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    Calm,
    /// No more than so many at once.
    Fewer(u32),
    /// Fewer did not help: so many ran before.
    Vain(u32),
}

#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The least number that overran the cache.
    too_many: Option<u32>,
    /// Share and number before the first step down.
    before: Option<(f64, u32)>,
    gave_up: bool,
    /// From when on a start was held at the number that fits, microseconds.
    capped_us: Option<u64>,
}

impl Memory {
    /// The greatest number that is not known to overrun it.
    pub fn ceiling(&self) -> u32 {
        self.too_many.map_or(u32::MAX, |n| n - 1).max(1)
    }

    /// A trial of `n` at once served less than `best`. When that was the cache's doing, `best` is the most for now.
    pub fn failed(&mut self, span: &Span, n: u32, best: u32) {
        if !self.gave_up && span.again >= SLIGHT && span.again_share >= OVERRUN && n > best {
            self.too_many = Some(best + 1);
        }
    }

    /// The greatest number that a start may go to from `n`. Whoever reads its data more than
    /// once needs it to stay in the page cache, which shows only when the cache is full and
    /// nothing of it is of use any more. So as long as storage is waited for, where more at
    /// once gain least, no more run than fit, until it is known whether data is read again.
    pub fn cap(&mut self, seen: &Seen, n: u32, pressed: bool) -> u32 {
        let Some(fit) = seen.fit().filter(|_| !self.gave_up) else { return u32::MAX };
        if seen.again == Some(false) || 2 * n <= fit {
            return u32::MAX;
        }
        let held_us = seen.at_us.saturating_sub(*self.capped_us.get_or_insert(seen.at_us));
        match seen.again {
            Some(_) if pressed && held_us < KNOWN_US => fit,
            // The fit is a guess, so that idle processors may have more, bit by bit.
            Some(_) => fit.max(n + (n / MORE).max(1)),
            None if pressed && held_us < UNKNOWN_US => fit,
            None => u32::MAX,
        }
    }

    pub fn judge(&mut self, span: &Span, n: u32, fit: Option<u32>) -> Verdict {
        if self.gave_up || span.again < SLIGHT || span.again_share < OVERRUN {
            self.before = None;
            return Verdict::Calm;
        }
        // All of a cache is lost or none of it: halfway down nothing has become better yet.
        let (share, began_at) = *self.before.get_or_insert((span.again_share, n));
        if n > 1 {
            self.too_many = Some(n);
            if let Some(fit) = fit.filter(|fit| *fit < n) {
                return Verdict::Fewer(fit.max(n / STEP.1));
            }
            // Each step costs the time in which a cache is filled. Of pages that are read
            // anew and anew in any order, the share that is found is the share that fits.
            let fit = (f64::from(n) * (1.0 - span.missed)).round() as u32;
            return Verdict::Fewer(fit.clamp(n / STEP.1, n / STEP.0).max(1));
        }
        if span.again_share <= share * HELPED || began_at < 2 {
            return Verdict::Calm;
        }
        (self.gave_up, self.too_many) = (true, None);
        Verdict::Vain(began_at)
    }

    /// Time has passed: more may fit now.
    pub fn forgive(&mut self) {
        self.too_many = None;
    }
}
