//! The guard of the page cache: when tasks read again what others drove out,
//! fewer at once are better whatever the disk's rate says.

use crate::seen::Span;

/// Bytes that were read again, as a share of all that moved: above this the cache is overrun.
const OVERRUN: f64 = 0.3;
/// Less than this, bytes per second, is nothing.
const SLIGHT: f64 = 4e6;
/// Fewer at once must bring the share below this part of what it was, or memory is not the reason.
const HELPED: f64 = 0.8;
/// Fewer at once that did not help, until the guard gives up.
const VAIN: u32 = 2;

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
    /// Share and number at the last step down.
    before: Option<(f64, u32)>,
    vain: u32,
    began_at: u32,
}

impl Memory {
    /// The greatest number that is not known to overrun it.
    pub fn ceiling(&self) -> u32 {
        self.too_many.map_or(u32::MAX, |n| n - 1).max(1)
    }

    /// A trial of `n` at once served less than `best`. When that was the cache's doing, `best` is the most for now.
    pub fn failed(&mut self, span: &Span, n: u32, best: u32) {
        if self.vain < VAIN && span.again >= SLIGHT && span.again_share >= OVERRUN && n > best {
            self.too_many = Some(best + 1);
        }
    }

    pub fn judge(&mut self, span: &Span, n: u32) -> Verdict {
        if self.vain >= VAIN || span.again < SLIGHT || span.again_share < OVERRUN || n < 2 {
            self.before = None;
            return Verdict::Calm;
        }
        match self.before {
            Some((share, _)) if span.again_share > share * HELPED => self.vain += 1,
            Some(_) => self.vain = 0,
            None => (self.vain, self.began_at) = (0, n),
        }
        if self.vain >= VAIN {
            self.too_many = None;
            return Verdict::Vain(self.began_at);
        }
        self.before = Some((span.again_share, n));
        self.too_many = Some(n);
        Verdict::Fewer((n / 2).max(1))
    }

    /// Time has passed: more may fit now.
    pub fn forgive(&mut self) {
        self.too_many = None;
    }
}
