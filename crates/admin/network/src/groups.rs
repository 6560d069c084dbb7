//! Finds the hosts that share a link: flows that cross it slow each other down, and other flows keep their rate.

use crate::judge::{Judge, NOISE, SLOW};
use crate::measured::{BackgroundTraffic, NetworkMeasurements, Pair, Round};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The share of flows that cross no full link and are slow all the same.
const STRAYS: f64 = 0.02;
/// The certainty that is required: odds of a thousand to one, in hundredths of a natural logarithm.
const SURE: i32 = 691;

/// Hosts on the same side of every full link.
pub struct LinkGroups {
    /// The group of each host.
    of: Vec<usize>,
    /// The partners of each host while a link was full, each with a weight. The weight is a logarithm, in hundredths:
    /// how much likelier the result is with both on one side than with the link between them.
    seen: Vec<Vec<(usize, i32)>>,
    /// Whether any round showed a full link.
    shown: bool,
}

impl LinkGroups {
    /// Derives groups from the rounds in which more than one pair was slow though its hosts are not. In the other
    /// rounds no link was full. A pair that was fast there is on one side only if both hosts are apart from the same
    /// third host.
    pub fn new(judge: &Judge) -> LinkGroups {
        let hosts = judge.of.hosts.len();
        let mut groups = LinkGroups { of: (0..hosts).collect(), seen: vec![Vec::new(); hosts], shown: false };
        let rounds = judge.of.rounds.iter().filter(|round| round.load != BackgroundTraffic::Alone);
        let (full, free): (Vec<&Round>, Vec<&Round>) = rounds.partition(|round| contended(judge, round));
        groups.shown = !full.is_empty();
        for pair in full.iter().flat_map(|round| &round.pairs) {
            let likelier = judge.each_way(pair).map(likelier).sum();
            groups.seen[pair.a].push((pair.b, likelier));
            groups.seen[pair.b].push((pair.a, likelier));
        }
        groups.settle();
        while groups.merged() {}
        // A pair that failed has no result.
        let fast = |pair: &&Pair| judge.each_way(pair).reduce(f64::min).is_some_and(|share| share >= SLOW);
        for pair in free.iter().flat_map(|round| &round.pairs).filter(fast) {
            let third = |host| groups.apart(host, pair.a) && groups.apart(host, pair.b);
            if !groups.apart(pair.a, pair.b) && (0..hosts).any(third) {
                groups.join(pair.a, pair.b);
            }
        }
        groups
    }

    /// Groups hosts in the likeliest way: one host at a time moves where it fits better, until none does. That is
    /// correlation clustering (Bansal, Blum, Chawla 2004) by local moves.
    fn settle(&mut self) {
        while (0..self.of.len()).any(|host| self.moved(host)) {}
    }

    fn moved(&mut self, host: usize) -> bool {
        let free = (0..).find(|group| !self.of.contains(group)).map(|group| (group, 0));
        let best = self.others(host).into_iter().chain(free).max_by_key(|(group, fit)| (*fit, Reverse(*group)));
        let Some((group, _)) = best.filter(|(_, fit)| *fit > self.fits(host)) else { return false };
        self.of[host] = group;
        true
    }

    /// Returns the groups that a host was measured with, besides its own, and how likely it is in each.
    fn others(&self, host: usize) -> BTreeMap<usize, i32> {
        let mut fits = BTreeMap::new();
        self.seen[host].iter().for_each(|(other, weight)| *fits.entry(self.of[*other]).or_default() += weight);
        fits.remove(&self.of[host]);
        fits
    }

    /// Returns how much likelier a host is in its group than in any other.
    pub fn certain(&self, host: usize) -> i32 {
        self.fits(host) - self.others(host).into_values().max().unwrap_or(0)
    }

    /// Joins two groups if that is likelier once hosts that fit neither have moved: a host in the wrong group keeps
    /// others apart. Returns whether it did.
    fn merged(&mut self) -> bool {
        let (before, now) = (self.of.clone(), self.agrees());
        let all = self.all();
        for (at, one) in all.iter().enumerate() {
            for other in &all[..at] {
                self.join(one[0], other[0]);
                self.settle();
                if self.agrees() > now {
                    return true;
                }
                self.of.clone_from(&before);
            }
        }
        false
    }

    /// Returns how likely a host's group is, from its results with the members of that group.
    fn fits(&self, host: usize) -> i32 {
        let own = self.seen[host].iter().filter(|(other, _)| self.of[*other] == self.of[host]);
        own.map(|(_, weight)| weight).sum()
    }

    /// Returns the same for all hosts together; each pair counts twice.
    fn agrees(&self) -> i32 {
        (0..self.of.len()).map(|host| self.fits(host)).sum()
    }

    fn join(&mut self, a: usize, b: usize) {
        let (into, from) = (self.of[a], self.of[b]);
        self.of.iter_mut().filter(|group| **group == from).for_each(|group| *group = into);
    }

    /// Whether any round showed a full link.
    pub fn shown(&self) -> bool {
        self.shown
    }

    /// Returns the groups of more than one host, in the order of hosts. A host that is slow with all others is in
    /// none.
    pub fn all(&self) -> Vec<Vec<usize>> {
        let members = |group| (0..self.of.len()).filter(move |h| self.of[*h] == group).collect::<Vec<_>>();
        let mut all: Vec<Vec<usize>> = (0..self.of.len()).map(members).filter(|hosts| hosts.len() > 1).collect();
        all.sort();
        all
    }

    /// Whether two hosts are known to be on different sides.
    pub fn apart(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.of[a], self.of[b]);
        let between = |host: &usize| self.of[*host] == a;
        let seen = (0..self.of.len()).filter(between).flat_map(|host| &self.seen[host]);
        a != b && seen.filter(|(other, _)| self.of[*other] == b).map(|(_, weight)| weight).sum::<i32>() <= -SURE
    }

    /// Whether every host is known to be in its group, and every two groups are known to be apart.
    pub fn settled(&self) -> bool {
        let all = self.all();
        let parts = all.iter().enumerate().all(|(i, one)| all[..i].iter().all(|other| self.apart(one[0], other[0])));
        let certain = |host: &usize| self.certain(*host) >= SURE;
        parts && all.iter().map(Vec::len).sum::<usize>() == self.of.len() && all.iter().flatten().all(certain)
    }
}

/// Returns the hosts on the same side of every full link, as indexes into the list of hosts. If no link was full, all
/// are in one group.
pub fn sides(measured: &NetworkMeasurements) -> Vec<Vec<usize>> {
    let groups = LinkGroups::new(&Judge::new(measured)).all();
    if groups.is_empty() { vec![(0..measured.hosts.len()).collect()] } else { groups }
}

/// Whether a link was full: one slow pair may be slow by chance, or by its own path.
fn contended(judge: &Judge, round: &Round) -> bool {
    let well = |host| judge.at_once(host).is_some_and(|best| best >= SLOW);
    let slow = |pair: &&Pair| judge.both(pair).is_some_and(|share| share < SLOW) && well(pair.a) && well(pair.b);
    round.pairs.iter().filter(slow).count() > 1
}

/// Returns how much likelier a flow's share of the usual rate is if it crosses no full link, as a logarithm in
/// hundredths. Without a full link the share is usual but for noise, on the lower side of a normal distribution, or a
/// stray. Across a full link all shares are equally likely, because TCP shares a link unevenly within less than a
/// second.
fn likelier(share: f64) -> i32 {
    let below = (1.0 - share.min(1.0)) / NOISE;
    let density = (-below * below / 2.0).exp() / NOISE * std::f64::consts::FRAC_2_SQRT_PI / std::f64::consts::SQRT_2;
    (((1.0 - STRAYS) * density + STRAYS).ln() * 100.0).round() as i32
}
