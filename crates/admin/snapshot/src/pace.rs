//! When a copy may read while others use the same disk or file server: it goes on in short bursts, so that they lose
//! next to nothing.

use std::time::{Duration, Instant};

/// Of what others use, a copy may cost them this share at the most; what they use less of than this they cannot lose
/// more of.
const SHARE: f64 = 0.05;
/// A copy runs for so long beside others, and then rests for [`REST`]: 2.5 % of the time, and up to as much again until
/// all of it stands still, so that others lose less than [`SHARE`] even where nothing of theirs gets on meanwhile.
const BURST: Duration = Duration::from_millis(250);
/// Between two bursts. The disk's own queue empties in it, and others read ahead again.
const REST: Duration = Duration::from_millis(9750);
/// What a paused copy has asked for already is answered within this time: measuring begins after it.
const SETTLE: Duration = Duration::from_millis(200);
/// How long a copy that runs freely pauses to see what the disk does without it.
const PEEK: Duration = Duration::from_millis(600);
/// Between two such looks: 6 % of a copy's own time.
const FREE: Duration = Duration::from_secs(10);
/// The same where others seem to read, or have leases of the file server, and the disk was idle: they may begin to at any
/// time.
const WARY: Duration = Duration::from_secs(2);
/// The first look comes soon; most copies have ended by then.
const FIRST: Duration = Duration::from_secs(1);

/// Whether a copy may run, over time.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    phase: Phase,
    since: Instant,
    /// Until the next look of a copy that runs freely.
    free: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Free,
    Peek,
    Rest,
    Burst,
}

impl Pace {
    /// It may run at first.
    pub fn new(now: Instant) -> Pace {
        Pace { phase: Phase::Free, since: now, free: FIRST }
    }

    /// Whether the copy may run now. `others`: somebody else has leases of the file server. `of_others`: the part of what
    /// the disk has read since a moment that was not for the copy, where that is known. `busy`: the part of the time since
    /// a moment in which the disk worked; `None` where that is unknown: then leases alone tell.
    pub fn may_run(
        &mut self,
        others: bool,
        of_others: impl Fn(Instant) -> Option<f64>,
        busy: impl Fn(Instant) -> Option<f64>,
        now: Instant,
    ) -> bool {
        let passed = now.duration_since(self.since);
        let used = || busy(self.since + SETTLE).map_or(others, |part| part > SHARE);
        let known = || busy(self.since).is_some();
        let wary = || others || of_others(self.since).is_some_and(|part| part > SHARE);
        let next = match self.phase {
            Phase::Free if others && !known() => Phase::Rest,
            Phase::Free if passed >= self.free && known() => Phase::Peek,
            Phase::Free if passed >= self.free.min(WARY) && wary() && known() => Phase::Peek,
            Phase::Peek if passed >= PEEK => {
                if used() {
                    Phase::Rest
                } else {
                    Phase::Free
                }
            }
            Phase::Rest if passed >= REST => {
                if used() {
                    Phase::Burst
                } else {
                    Phase::Free
                }
            }
            Phase::Burst if passed >= BURST => Phase::Rest,
            same => return self.runs(same),
        };
        // A look that becomes a rest is the first part of it.
        if (self.phase, next) != (Phase::Peek, Phase::Rest) {
            self.since = now;
        }
        self.phase = next;
        self.free = FREE;
        self.runs(next)
    }

    fn runs(&self, phase: Phase) -> bool {
        matches!(phase, Phase::Free | Phase::Burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of a time in which a copy runs, and the longest that it runs at once, seconds.
    fn part(seconds: u64, mut seen: impl FnMut(Duration) -> (bool, Option<f64>)) -> (f64, f64) {
        let begun = Instant::now();
        let mut pace = Pace::new(begun);
        let (mut ran, mut longest, mut at_once) = (0.0, 0.0_f64, 0.0);
        for tick in 0..seconds * 10 {
            let passed = Duration::from_millis(tick * 100);
            let (others, busy) = seen(passed);
            at_once = if pace.may_run(others, |_| None, |_| busy, begun + passed) { at_once + 0.1 } else { 0.0 };
            ran += if at_once > 0.0 { 0.1 } else { 0.0 };
            longest = longest.max(at_once);
        }
        (ran / seconds as f64, longest)
    }

    #[test]
    fn alone_it_runs_nearly_always_and_beside_others_for_three_parts_of_a_hundred() {
        assert!(part(600, |_| (false, Some(0.01))).0 > 0.93);
        assert_eq!(part(600, |_| (false, None)).0.round(), 1.0);
        for (others, busy) in [(false, Some(0.9)), (true, Some(0.9)), (true, None)] {
            let (ran, longest) = part(600, |at| if at.as_secs() < 1 { (false, Some(0.0)) } else { (others, busy) });
            assert!(ran < 0.035 && longest < 1.3, "{others} {busy:?}: {ran} {longest}");
        }
    }

    #[test]
    fn others_that_begin_to_read_are_seen_while_it_runs() {
        let begun = Instant::now();
        let at = |tenths: u64| begun + Duration::from_millis(tenths * 100);
        // The first look finds nobody; the next one is two seconds later, or ten.
        for (part, next) in [(Some(0.5), 37), (Some(0.01), 117), (None, 117)] {
            let mut pace = Pace::new(begun);
            let mut runs = |tenths, part| pace.may_run(false, |_| part, |_| Some(0.0), at(tenths));
            assert!(!runs(10, Some(0.0)) && runs(17, Some(0.0)));
            assert_eq!((18..200).find(|tenths| !runs(*tenths, part)), Some(next), "{part:?}");
        }
    }

    #[test]
    fn others_that_do_not_read_cost_it_little_and_those_that_end_nothing() {
        assert!(part(600, |_| (true, Some(0.0))).0 > 0.7);
        let (ran, _) = part(600, |at| (at.as_secs() < 60, if at.as_secs() < 60 { Some(0.9) } else { Some(0.0) }));
        assert!(ran > 0.8, "{ran}");
    }
}
