//! Decides which of many idle hosts search for a task to fetch. This limits the cost of one moment, even with ten
//! thousand hosts.

use crate::HostIx;

/// The most hosts that search in vain at one moment. A task that is not worth fetching for one host is hardly worth
/// it for the next.
const IN_VAIN: u32 = 4;

/// The turns of idle hosts that search for a task to fetch: each searches in vain once before any does so twice.
#[derive(Debug, Default)]
pub struct Searches {
    at_us: u64,
    in_vain: u32,
    /// Whether a host has searched at this moment.
    any: bool,
    turn: u64,
    /// By host: the turn up to which it has searched in vain.
    had: Vec<u64>,
}

impl Searches {
    /// Whether `host` may search now.
    pub fn may(&mut self, host: HostIx, now_us: u64) -> bool {
        if self.at_us != now_us {
            self.turn += u64::from(!self.any);
            (self.at_us, self.in_vain, self.any) = (now_us, 0, false);
        }
        self.had.resize(self.had.len().max(host + 1), 0);
        self.in_vain < IN_VAIN && self.had[host] <= self.turn
    }

    /// Records that it has searched.
    pub fn ended(&mut self, host: HostIx, found: bool) {
        self.any = true;
        if !found {
            self.in_vain += 1;
            self.had[host] = self.turn + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_idle_hosts_each_has_its_turn() {
        let (mut searches, mut looked) = (Searches::default(), vec![0; 100]);
        for now in 1..=60 {
            let mut at_once = 0;
            // Any host may be first.
            for host in (0..100).map(|nth| (nth + 37) % 100) {
                if searches.may(host, now) {
                    searches.ended(host, false);
                    (looked[host], at_once) = (looked[host] + 1, at_once + 1);
                }
            }
            assert!(at_once <= IN_VAIN);
        }
        assert!(looked.iter().all(|times| (2..=3).contains(times)), "{looked:?}");
    }

    #[test]
    fn who_finds_something_looks_again_at_once() {
        let mut searches = Searches::default();
        for host in [7, 7, 3, 3, 3, 5] {
            assert!(searches.may(host, 1));
            searches.ended(host, true);
        }
    }
}
