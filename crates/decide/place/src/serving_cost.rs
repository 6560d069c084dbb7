//! Measures how much a host's own tasks lose while other hosts fetch from it, and whether fetching is still worth it.
//! The rate of a link does not show this cost. A server that is also a compute host may lose more tasks of its own
//! than others gain.

use crate::mean::Mean;

/// Samples of each kind that are needed for a conclusion.
const ENOUGH: u32 = 2;
/// The most time that a test may cost, as a share of the remaining time.
const WORTH_KNOWING: f64 = 0.06;
/// A task must take this many times as long elsewhere to burden the host that it reads from.
const FAR: f64 = 2.0;
/// After this many times the length of a fetch, another fetch shows whether the cost is still the same.
const LOOK_AGAIN: f64 = 20.0;

/// Measurements of one host that others fetch from.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServingCost {
    /// Wall time of its own tasks while no task fetched from it, microseconds.
    alone_us: Mean,
    /// Wall time of its own tasks while a task fetched all the time, microseconds.
    beside_us: Mean,
    /// Number of tasks that fetched then.
    fetching: Mean,
    /// Wall time of tasks that fetched from it, microseconds.
    fetched_us: Mean,
    /// The time since which it is left alone for a test.
    held_since_us: Option<u64>,
    /// The time when a task that fetches from it was last picked.
    last_us: u64,
}

/// The numbers of tasks elsewhere that read from a host while one of its own ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    pub fewest: u32,
    pub most: u32,
}

impl Overlap {
    pub fn new(now: u32) -> Overlap {
        Overlap { fewest: now, most: now }
    }

    pub fn see(&mut self, now: u32) {
        (self.fewest, self.most) = (self.fewest.min(now), self.most.max(now));
    }
}

/// Whether one more task may fetch from a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchVerdict {
    Yes,
    /// Its own tasks would lose more than others gain.
    No,
    /// It is left alone for a moment, to measure the cost of fetches.
    Wait,
}

impl ServingCost {
    /// Records that one of the host's own tasks ended.
    pub fn own_ended(&mut self, wall_us: f64, overlap: Overlap) {
        if overlap.most == 0 {
            self.alone_us.learn(wall_us);
        } else if overlap.fewest > 0 {
            self.beside_us.learn(wall_us);
            self.fetching.learn(f64::from(overlap.fewest + overlap.most) / 2.0);
        }
    }

    /// Records that a task which fetched from the host ended.
    pub fn fetch_ended(&mut self, wall_us: f64) {
        self.fetched_us.learn(wall_us);
    }

    /// Records that a task which fetches from the host begins.
    pub fn fetch_begins(&mut self, now_us: u64) {
        self.last_us = now_us;
    }

    /// Decides whether a task that would take `fetched_us` elsewhere may fetch from this host. `backlog` tasks wait
    /// for its `slots`; `reading` tasks read from it now.
    pub fn verdict(&self, slots: f64, backlog: f64, reading: u32, fetched_us: f64, now_us: u64) -> FetchVerdict {
        let fetched_us = self.fetched_us.get().unwrap_or(fetched_us).max(1.0);
        let (Some(beside), Some(fetching)) = (self.beside_us.enough(ENOUGH), self.fetching.get()) else {
            return FetchVerdict::Yes;
        };
        let (own, gained) = (slots / beside, fetching / fetched_us);
        let Some(alone) = self.alone_us.enough(ENOUGH) else {
            // The present fetches end one after the other; then its own tasks must begin and end.
            let takes_us = fetched_us / 2.0 + 2.0 * beside;
            let far = fetched_us > FAR * beside;
            return if far { self.find_out(own, gained, backlog, (takes_us, now_us)) } else { FetchVerdict::Yes };
        };
        let again = reading == 0 && now_us.saturating_sub(self.last_us) as f64 > LOOK_AGAIN * fetched_us;
        if slots / alone - own > gained && !again { FetchVerdict::No } else { FetchVerdict::Yes }
    }

    /// Decides whether to leave the host alone for a test. It is worth it if the host does most of the work, tasks
    /// elsewhere take far longer than its own, and enough work is left.
    fn find_out(&self, own: f64, gained: f64, backlog: f64, (takes_us, now_us): (f64, u64)) -> FetchVerdict {
        if let Some(since) = self.held_since_us {
            let over = now_us.saturating_sub(since) as f64 > 2.0 * takes_us;
            return if over { FetchVerdict::Yes } else { FetchVerdict::Wait };
        }
        let all = own + gained;
        if own < gained || gained / all * takes_us > WORTH_KNOWING * backlog / all {
            return FetchVerdict::Yes;
        }
        FetchVerdict::Wait
    }

    /// Leaves it alone from now on, if it is not already.
    pub fn hold(&mut self, now_us: u64) {
        self.held_since_us.get_or_insert(now_us);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learnt(alone: f64, beside: f64, fetched: f64) -> ServingCost {
        let mut burden = ServingCost::default();
        for _ in 0..4 {
            burden.own_ended(beside, Overlap::new(3));
            burden.fetch_ended(fetched);
            if alone > 0.0 {
                burden.own_ended(alone, Overlap::new(0));
            }
        }
        burden
    }

    #[test]
    fn a_fetch_that_costs_more_than_it_brings_is_not_made() {
        // An emulated NFS server: 2 slots, 0.4 s for a task, 0.7 s while three others fetch for 3.5 s each.
        let mut server = learnt(4e5, 7e5, 3.5e6);
        assert_eq!(server.verdict(2.0, 80.0, 3, 3.5e6, 1_000), FetchVerdict::No);
        // After a long time one may fetch, to see whether that still holds.
        assert_eq!(server.verdict(2.0, 80.0, 0, 3.5e6, 71_000_000), FetchVerdict::Yes);
        server.fetch_begins(71_000_000);
        assert_eq!(server.verdict(2.0, 80.0, 1, 3.5e6, 71_000_001), FetchVerdict::No);
        // It becomes slower, but others gain more.
        assert_eq!(learnt(6e5, 7e5, 3.5e6).verdict(2.0, 80.0, 3, 3.5e6, 1_000), FetchVerdict::Yes);
        assert_eq!(learnt(4e5, 4e5, 3.5e6).verdict(2.0, 80.0, 3, 3.5e6, 1_000), FetchVerdict::Yes);
    }

    #[test]
    fn finding_out_is_worth_a_little_only() {
        assert_eq!(learnt(0.0, 7e5, 3.5e6).verdict(2.0, 10.0, 3, 3.5e6, 0), FetchVerdict::Yes, "soon over");
        assert_eq!(learnt(0.0, 6e8, 6.1e8).verdict(2.0, 80.0, 3, 6.1e8, 0), FetchVerdict::Yes, "others do most");
        let mut server = learnt(0.0, 7e5, 3.5e6);
        assert_eq!(server.verdict(2.0, 90.0, 3, 3.5e6, 1_000), FetchVerdict::Wait);
        server.hold(1_000);
        assert_eq!(server.verdict(2.0, 70.0, 0, 3.5e6, 5_000_000), FetchVerdict::Wait);
        assert_eq!(server.verdict(2.0, 50.0, 0, 3.5e6, 20_000_000), FetchVerdict::Yes, "not for ever");
    }

    #[test]
    fn what_was_neither_alone_nor_beside_teaches_nothing() {
        let mut burden = learnt(4e5, 7e5, 3.5e6);
        let mut mixed = Overlap::new(0);
        mixed.see(2);
        burden.own_ended(1e9, mixed);
        assert_eq!(burden.verdict(2.0, 80.0, 3, 3.5e6, 1_000), FetchVerdict::No);
    }
}
