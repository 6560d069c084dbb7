//! Decides when a copy may read while others use the same disk or file server. It then runs in short bursts, which
//! cost others next to nothing.

use std::time::{Duration, Instant};

/// The share of the others' use that a copy may cost them at the most. If others use less than this, they cannot lose
/// more.
const SHARE: f64 = 0.05;
/// A copy runs for this time beside others, and then rests for [`REST`]: 2.5 % of the time. Until all of it stops, it
/// may run as long again. Others lose less than [`SHARE`] even if none of their requests is served meanwhile.
const BURST: Duration = Duration::from_millis(250);
/// The time between two bursts. The disk's own queue empties in it, and others read ahead again.
const REST: Duration = Duration::from_millis(9750);
/// Open requests of a paused copy are answered within this time: measuring begins after it.
const SETTLE: Duration = Duration::from_millis(200);
/// How long a copy that runs freely pauses to measure the disk without it.
const PEEK: Duration = Duration::from_millis(600);
/// The time between two such looks: 6 % of a copy's own time.
const FREE: Duration = Duration::from_secs(10);
/// The same if the disk was idle, but others seem to read or have leases of the file server. They may begin to read
/// at any time.
const WARY: Duration = Duration::from_secs(2);
/// The first look comes soon; most copies have ended by then.
const FIRST: Duration = Duration::from_secs(1);

/// The state that decides whether a copy may run.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    phase: PacePhase,
    since: Instant,
    /// The time until the next look of a copy that runs freely.
    free: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacePhase {
    Free,
    Peek,
    Rest,
    Burst,
}

impl Pace {
    /// Returns a pace that lets the copy run at first.
    pub fn new(now: Instant) -> Pace {
        Pace { phase: PacePhase::Free, since: now, free: FIRST }
    }

    /// Returns whether the copy may run now.
    /// `others`: others have leases of the file server.
    /// `of_others`: the part of the bytes read since a moment that was not for the copy, where that is known.
    /// `busy`: the part of the time since a moment in which the disk worked. `None`: unknown; then leases alone
    /// decide.
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
            PacePhase::Free if others && !known() => PacePhase::Rest,
            PacePhase::Free if passed >= self.free && known() => PacePhase::Peek,
            PacePhase::Free if passed >= self.free.min(WARY) && wary() && known() => PacePhase::Peek,
            PacePhase::Peek if passed >= PEEK => {
                if used() {
                    PacePhase::Rest
                } else {
                    PacePhase::Free
                }
            }
            PacePhase::Rest if passed >= REST => {
                if used() {
                    PacePhase::Burst
                } else {
                    PacePhase::Free
                }
            }
            PacePhase::Burst if passed >= BURST => PacePhase::Rest,
            same => return self.runs(same),
        };
        // A look that becomes a rest is the first part of the rest.
        if (self.phase, next) != (PacePhase::Peek, PacePhase::Rest) {
            self.since = now;
        }
        self.phase = next;
        self.free = FREE;
        self.runs(next)
    }

    fn runs(&self, phase: PacePhase) -> bool {
        matches!(phase, PacePhase::Free | PacePhase::Burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the part of a time in which a copy runs, and the longest time that it runs at once, seconds.
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
        // The first look finds no other reader; the next one is two seconds later, or ten.
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
