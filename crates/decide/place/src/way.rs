//! Knows how far a host is from the bytes that it would fetch, and how many fetches cross a link at once. Without a
//! topology all hosts are equally far, and every link is open.

use crate::HostIx;
use homing_model::ClusterLinks;
use homing_model::links::{Path, SwitchIx};

/// The load of a task that fetches all the time; one that also computes counts for less.
pub const WHOLE: u32 = 1000;

/// The links, and the fetches that cross them.
#[derive(Debug)]
pub struct LinkUsage {
    links: ClusterLinks,
    /// The switch of each host.
    leaf: Vec<Option<SwitchIx>>,
    /// By switch: the load on its uplink now, in parts of [`WHOLE`]. It is stored to avoid counting in each decision.
    crossing: Vec<u32>,
}

impl LinkUsage {
    pub fn new(links: ClusterLinks) -> LinkUsage {
        LinkUsage { leaf: Vec::new(), crossing: vec![0; links.len()], links }
    }

    /// Sets the switch of `host`; `None` if it is unknown.
    pub fn host_on(&mut self, host: HostIx, leaf: Option<SwitchIx>) {
        if self.links.is_empty() {
            return;
        }
        self.leaf.resize(self.leaf.len().max(host + 1), None);
        self.leaf[host] = leaf;
    }

    /// Returns the number of switches.
    pub fn switches(&self) -> usize {
        self.crossing.len()
    }

    /// Returns the switch of a host, if it is known.
    pub fn leaf(&self, host: HostIx) -> Option<SwitchIx> {
        self.leaf.get(host).copied().flatten()
    }

    /// Returns the switches whose uplinks are between two hosts, as far as they are known.
    fn crossed(&self, from: HostIx, to: HostIx) -> impl Iterator<Item = SwitchIx> + '_ {
        let ends = self.leaf(from).zip(self.leaf(to));
        ends.into_iter().flat_map(|(from, to)| self.links.crossed(from, to))
    }

    /// Returns the number of uplinks between two hosts; the maximum if it is unknown.
    pub fn distance(&self, from: HostIx, to: HostIx) -> usize {
        match self.leaf(from).zip(self.leaf(to)) {
            _ if self.links.is_empty() => 0,
            Some((from, to)) => self.links.crossed(from, to).count(),
            None => usize::MAX,
        }
    }

    /// Returns the rate of one more fetch between two hosts over the shared uplinks, bytes per second.
    pub fn shared_rate(&self, from: HostIx, to: HostIx) -> f64 {
        let crossing = |at: SwitchIx| f64::from(self.crossing[at] + WHOLE) / f64::from(WHOLE);
        self.slowest(from, to, |at, rate| rate / crossing(at))
    }

    /// Returns the rate of a fetch that has the uplinks to itself.
    pub fn rate(&self, from: HostIx, to: HostIx) -> f64 {
        self.slowest(from, to, |_, rate| rate)
    }

    fn slowest(&self, from: HostIx, to: HostIx, of: impl Fn(SwitchIx, f64) -> f64) -> f64 {
        let rates = self.crossed(from, to).filter_map(|at| Some(of(at, self.links.uplink(at)? as f64)));
        rates.fold(f64::INFINITY, f64::min)
    }

    /// Whether a further fetch with a load of `parts`, over host links of `link` bytes per second, overloads no
    /// uplink. An uplink takes as many fetches as it has room for, and one if it has room for none.
    pub fn has_room(&self, from: HostIx, to: HostIx, parts: u32, link: f64) -> bool {
        self.crossed(from, to).all(|at| {
            let Some(uplink) = self.links.uplink(at) else { return true };
            let most = (uplink as f64 / link).floor().clamp(1.0, f64::from(u32::MAX / WHOLE)) as u32;
            self.crossing[at] == 0 || self.crossing[at].saturating_add(parts) <= most.saturating_mul(WHOLE)
        })
    }

    /// Records that a fetch begins.
    pub fn begin(&mut self, from: HostIx, to: HostIx, parts: u32) {
        self.count(from, to, |crossing| crossing.saturating_add(parts));
    }

    /// Records that a fetch ended.
    pub fn end(&mut self, from: HostIx, to: HostIx, parts: u32) {
        self.count(from, to, |crossing| crossing.saturating_sub(parts));
    }

    fn count(&mut self, from: HostIx, to: HostIx, change: impl Fn(u32) -> u32) {
        let Some((from, to)) = self.leaf(from).zip(self.leaf(to)) else { return };
        for at in self.links.crossed(from, to) {
            self.crossing[at] = change(self.crossing[at]);
        }
    }

    /// Returns the path between two hosts for people.
    pub fn path(&self, from: HostIx, to: HostIx) -> Path {
        self.links.path(self.leaf(from), self.leaf(to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_model::links::Switch;

    fn way(uplink: Option<u64>) -> LinkUsage {
        let switch = |name: &str| Switch { name: name.into(), uplink, ..Switch::default() };
        let mut way = LinkUsage::new(ClusterLinks::new(vec![switch("a"), switch("b")]).unwrap());
        [(0, 0), (1, 0), (2, 1), (4, 1)].into_iter().for_each(|(host, leaf)| way.host_on(host, Some(leaf)));
        way
    }

    #[test]
    fn an_uplink_lets_as_many_across_as_it_carries_and_at_least_one() {
        let mut wide = way(Some(250));
        for (begun, more) in [(0, true), (1, true), (2, false)] {
            assert_eq!(wide.has_room(0, 2, WHOLE, 100.0), more, "{begun} cross");
            wide.begin(0, 2, WHOLE);
        }
        assert!(wide.has_room(0, 1, WHOLE, 100.0), "within a switch there is no gate");
        assert!(wide.has_room(3, 0, WHOLE, 100.0), "of which nothing is known");
        (0..3).for_each(|_| wide.end(0, 2, WHOLE));
        assert_eq!(wide.crossing, [0, 0]);
        let mut narrow = way(Some(10));
        assert!(narrow.has_room(0, 2, WHOLE, 100.0));
        narrow.begin(0, 2, WHOLE / 10);
        assert!(narrow.has_room(4, 1, WHOLE * 9 / 10, 100.0), "who computes most of the time leaves room");
        assert!(!narrow.has_room(4, 1, WHOLE, 100.0));
        let mut unknown = way(None);
        (0..9).for_each(|_| unknown.begin(0, 2, WHOLE));
        assert!(unknown.has_room(0, 2, WHOLE, 100.0));
    }
}
