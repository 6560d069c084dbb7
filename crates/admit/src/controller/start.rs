//! The start: twice as many as long as storage is not waited for, or stands it.

use super::{Controller, FIRST, MEASURE_MOST_US, MEASURE_US, PRESSED, Phase, QUIET, SLOW, measured};
use crate::climb::{Climb, mb};
use crate::seen::{Seen, Span};

/// Shortest time between two steps of a start without pressure. A disk's first
/// seek takes 8 ms and shows in the pressure while it lasts.
const STEP_US: u64 = 4_000;
/// The same while tasks wait for processors: more at once gains nothing soon.
const BUSY_STEP_US: u64 = 100_000;
const CPU_BUSY: f64 = 0.85;
/// Under pressure a start goes on when the tasks have got so many bytes since
/// the last step: on a disk that stands it, some milliseconds.
const STEP_BYTES: f64 = 1e6;
/// Less than this since the last look: they do not read their data yet.
const FIRST_BYTES: f64 = 65_536.0;
/// Both are waited for so long: those that read from other hosts are not seen here.
const PATIENT_US: u64 = 100_000;
/// A program has been loaded and begins to read after some milliseconds; those that read nothing wait no longer than this.
const UNREAD_US: u64 = 20_000;
/// Heads seek for so long, and tasks together get less than this share of what they got before.
const SEEK_US: u64 = 20_000;
/// A shorter time will do where tasks get less than so many bytes per microsecond: two readers of one head get 20 to 30.
const SOON_US: u64 = 10_000;
const CRAWL: f64 = 40.0;
const LESS: f64 = 0.95;
/// Twice as many get this much more where storage still has something to give: the first ones' rate has their late beginning in it.
const WORTH: f64 = 1.5;
/// A start waits so long at a number that got little more than half as many did. That is no evidence of harm.
const VAIN_US: u64 = 1_000_000;

impl Controller {
    /// Doubles until the host's slots are the limit, unless that is seen to do harm.
    pub(super) fn rise(&mut self, seen: &Seen, span: &Span, full: bool) -> Option<String> {
        if self.n < FIRST && !self.wary {
            return self.begin(seen, span, full);
        }
        if self.is_starved(seen) {
            return Some(self.doubt(seen, &self.since_stage(seen).unwrap_or(*span)));
        }
        if span.pressure() > QUIET {
            return self.rise_pressed(seen, span, full);
        }
        let busy = self.is_busy(span);
        let step = match (self.wary, busy) {
            (true, _) => MEASURE_US,
            (_, true) => BUSY_STEP_US,
            _ => STEP_US,
        };
        if span.us < step {
            return None;
        }
        let unread = span.got < FIRST_BYTES;
        if unread && span.stands() && self.is_young(seen, PATIENT_US) {
            // The kernel tells late that somebody waits: all stand still, and none gets anything.
            return None;
        }
        if unread && self.loads() && self.is_young(seen, UNREAD_US) {
            self.from = Some(*seen);
            return None;
        }
        // Not all that storage could do, but more at once must not do less.
        self.known = (!unread && !self.loads()).then(|| (self.n, span.pace()));
        self.grow(seen, span, full).then(|| "no task waited for storage".into())
    }

    fn rise_pressed(&mut self, seen: &Seen, span: &Span, full: bool) -> Option<String> {
        if let Some(climb) = self.interrupted.take() {
            self.from = Some(*seen);
            self.phase = Phase::Climbing(climb.taken_up(seen.at_us));
            return None;
        }
        // From the beginning: a head's first bytes come late, and what is begun anew for them would be late as well.
        let stage = self.since_stage(seen).filter(|stage| stage.us < MEASURE_US);
        if let Some(why) = self.retreat(seen, &stage.unwrap_or(*span)) {
            return Some(why);
        }
        let patient = self.is_young(seen, PATIENT_US);
        let unread = span.got < FIRST_BYTES;
        if patient && (unread || self.loads()) {
            // Programs are being read, not their data: the disk of the data is not known yet. What
            // the first tasks get from when they have begun to read is what more are compared with.
            self.reads |= !unread;
            self.from = Some(*seen);
            return None;
        }
        if span.got < STEP_BYTES && patient {
            return None;
        }
        if self.is_busy(span) {
            self.linger(seen);
            return None;
        }
        if self.is_in_vain(span) && self.is_young(seen, VAIN_US) {
            self.wary = true;
            self.linger(seen);
            return None;
        }
        self.known = Some((self.n, span.pace()));
        let n = self.n;
        self.grow(seen, span, full).then(|| format!("the start was not over: {n} at once were served"))
    }

    /// One task alone until it gets bytes: its first seek then tells nothing of what a second one does.
    fn begin(&mut self, seen: &Seen, span: &Span, full: bool) -> Option<String> {
        let unread = span.got < FIRST_BYTES;
        // Its program is read first, which takes 5 ms, or 30 where that disk is busy.
        if unread && (span.us < STEP_US || span.stands()) && self.is_young(seen, PATIENT_US) {
            return None;
        }
        self.reads = !unread;
        self.begun = Some(*seen);
        self.grow(seen, span, full).then(|| "the first task has begun".into())
    }

    /// One was read for until the second came, and now both stand still: a head is on its way from
    /// one to the other. What serves several at once goes on for the first. Those that wait for what
    /// they wrote had read it from no disk.
    fn is_starved(&self, seen: &Seen) -> bool {
        let Some((last, begun)) = self.last.zip(self.begun).filter(|_| self.n == FIRST) else { return false };
        let (now, before) = (seen.since(&last), last.since(&begun));
        let streamed = before.got >= FIRST_BYTES && before.rate >= before.pace() * 1e6 / 2.0;
        streamed && now.us >= STEP_US && now.got < FIRST_BYTES && now.all_stand()
    }

    fn since_stage(&self, seen: &Seen) -> Option<Span> {
        self.stage.map(|stage| seen.since(&stage))
    }

    /// The first tasks have not been seen to get anything: they load their programs.
    fn loads(&self) -> bool {
        !self.reads && self.n <= FIRST
    }

    /// The number has not been the same for so long yet.
    fn is_young(&self, seen: &Seen, us: u64) -> bool {
        seen.at_us < self.changed_us + us
    }

    /// Storage is what all wait for, and twice as many get little more of it: among more still, all would
    /// read for longer before the first computes. What is read again is for the guard of the page cache.
    fn is_in_vain(&self, span: &Span) -> bool {
        let before = self.known.filter(|(fewer, _)| *fewer < self.n && span.again == 0.0);
        span.pressure() >= PRESSED && before.is_some_and(|(_, rate)| span.pace() < rate * WORTH)
    }

    /// Twice as many made a head seek, and less came: so many it was before.
    fn retreat(&mut self, seen: &Seen, span: &Span) -> Option<String> {
        let enough = if span.pace() < CRAWL { SOON_US } else { SEEK_US };
        if span.us < enough || span.got < FIRST_BYTES || span.slow < SLOW || self.n < 2 {
            return None;
        }
        let Some((fewer, rate)) = self.known else { return Some(self.doubt(seen, span)) };
        if span.pace() >= rate * LESS {
            return None;
        }
        let now = span.pace() * 1e6;
        let why = format!("{} at once make the disk seek: {} instead of {}", self.n, mb(now), mb(rate * 1e6));
        self.from = Some(*seen);
        self.phase = Phase::Climbing(Climb::left(fewer, self.most(), now / (rate * 1e6)));
        self.hold = true;
        self.go(fewer);
        Some(why)
    }

    /// So many make a head seek, and what fewer do is not known yet.
    fn doubt(&mut self, seen: &Seen, span: &Span) -> String {
        let n = self.n;
        self.from = Some(*seen);
        self.hold = true;
        if n == 2 {
            self.phase = Phase::Climbing(Climb::doubtful(measured(seen, span, n), self.most()));
            self.go(1);
        } else {
            self.search(span.rate);
        }
        format!("{n} at once make the disk seek")
    }

    fn grow(&mut self, seen: &Seen, span: &Span, full: bool) -> bool {
        if self.n < self.settings.open_at.min(self.most()) {
            if !full && seen.waiting > 0 {
                self.from = Some(*seen);
                return false;
            }
            let cap = self.memory.cap(seen, self.n, span.pressure() > QUIET);
            // Beyond what the page cache holds, the last step has to show what it does.
            let beyond = seen.again == Some(true) && seen.fit().is_some_and(|fit| self.n >= fit);
            let shown_us = self.changed_us + seen.task_us.clamp(MEASURE_US, MEASURE_MOST_US);
            if cap <= self.n || (beyond && (self.is_busy(span) || seen.at_us < shown_us)) {
                self.linger(seen);
                return false;
            }
            self.go((self.n * 2).min(cap));
        } else {
            self.from = Some(*seen);
        }
        if self.n >= self.settings.open_at || !full {
            (self.phase, self.pressed_us) = (Phase::Open, 0);
        }
        true
    }

    /// Processors are the bottleneck: more at once gains nothing.
    fn is_busy(&self, span: &Span) -> bool {
        span.cpu.is_some_and(|c| c > CPU_BUSY) && self.n >= 2 * self.settings.cores
    }

    /// Goes on measuring, long enough for the guard of the page cache.
    fn linger(&mut self, seen: &Seen) {
        self.from = self.from.filter(|from| seen.at_us < from.at_us + 2 * MEASURE_US).or(Some(*seen));
    }
}
