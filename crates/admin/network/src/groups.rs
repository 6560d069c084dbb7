//! Which hosts share a link: flows that cross it slow each other down, and those that do not cross it are as ever.

use crate::judge::{Judge, NOISE, SLOW};
use crate::measured::{Load, Measured, Pair, Round};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The share of flows that cross no full link and are slow all the same.
const STRAYS: f64 = 0.02;
/// What is known well enough: odds of a thousand to one, in hundredths of a natural logarithm.
const SURE: i32 = 691;

/// Hosts on the same side of every link that was seen to be full.
pub struct Groups {
    /// The group of each host.
    of: Vec<usize>,
    /// Who each host was measured with while a link was full, and how much more likely that is if both are on one side than
    /// if the link is between them: a logarithm, in hundredths.
    seen: Vec<Vec<(usize, i32)>>,
    /// Rounds that showed it.
    shown: bool,
}

impl Groups {
    /// From the rounds in which more than one pair was slow though its hosts are not. In the others nothing was full: a
    /// pair that was fast there is on one side only if both are apart from the same third.
    pub fn new(judge: &Judge) -> Groups {
        let hosts = judge.of.hosts.len();
        let mut groups = Groups { of: (0..hosts).collect(), seen: vec![Vec::new(); hosts], shown: false };
        let rounds = judge.of.rounds.iter().filter(|round| round.load != Load::Alone);
        let (full, free): (Vec<&Round>, Vec<&Round>) = rounds.partition(|round| contended(judge, round));
        groups.shown = !full.is_empty();
        for pair in full.iter().flat_map(|round| &round.pairs) {
            let likelier = judge.each_way(pair).map(likelier).sum();
            groups.seen[pair.a].push((pair.b, likelier));
            groups.seen[pair.b].push((pair.a, likelier));
        }
        groups.settle();
        while groups.merged() {}
        // Of a pair that failed nothing is known.
        let fast = |pair: &&Pair| judge.each_way(pair).reduce(f64::min).is_some_and(|share| share >= SLOW);
        for pair in free.iter().flat_map(|round| &round.pairs).filter(fast) {
            let third = |host| groups.apart(host, pair.a) && groups.apart(host, pair.b);
            if !groups.apart(pair.a, pair.b) && (0..hosts).any(third) {
                groups.join(pair.a, pair.b);
            }
        }
        groups
    }

    /// Puts hosts together as it is likeliest: a host at a time goes where it fits better, until none does (correlation
    /// clustering, Bansal, Blum, Chawla 2004, by local moves).
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

    /// The groups that a host was measured with, besides its own, and how likely it is in each.
    fn others(&self, host: usize) -> BTreeMap<usize, i32> {
        let mut fits = BTreeMap::new();
        self.seen[host].iter().for_each(|(other, weight)| *fits.entry(self.of[*other]).or_default() += weight);
        fits.remove(&self.of[host]);
        fits
    }

    /// How much likelier a host is in its group than in any other.
    pub fn certain(&self, host: usize) -> i32 {
        self.fits(host) - self.others(host).into_values().max().unwrap_or(0)
    }

    /// Joins two groups where that is likelier once hosts that fit neither have gone: a host that is in the wrong one keeps
    /// others apart.
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

    /// How likely a host's group is by what it did with those who are in it.
    fn fits(&self, host: usize) -> i32 {
        let own = self.seen[host].iter().filter(|(other, _)| self.of[*other] == self.of[host]);
        own.map(|(_, weight)| weight).sum()
    }

    /// The same of all hosts, so that each pair counts twice.
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

    /// Groups of more than one host, in the order of hosts. A host that is slow with everybody is in none.
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

    /// Every host is known to be in its group, and every two groups to be apart.
    pub fn settled(&self) -> bool {
        let all = self.all();
        let parts = all.iter().enumerate().all(|(i, one)| all[..i].iter().all(|other| self.apart(one[0], other[0])));
        let certain = |host: &usize| self.certain(*host) >= SURE;
        parts && all.iter().map(Vec::len).sum::<usize>() == self.of.len() && all.iter().flatten().all(certain)
    }
}

/// Hosts on the same side of every link that was seen to be full, as places in the list of hosts; all of them in one
/// where none was.
pub fn sides(measured: &Measured) -> Vec<Vec<usize>> {
    let groups = Groups::new(&Judge::new(measured)).all();
    if groups.is_empty() { vec![(0..measured.hosts.len()).collect()] } else { groups }
}

/// One slow pair may be slow by chance, or by its own path.
fn contended(judge: &Judge, round: &Round) -> bool {
    let well = |host| judge.at_once(host).is_some_and(|best| best >= SLOW);
    let slow = |pair: &&Pair| judge.both(pair).is_some_and(|share| share < SLOW) && well(pair.a) && well(pair.b);
    round.pairs.iter().filter(slow).count() > 1
}

/// How much likelier a flow's share of what is usual is where it crosses no full link, as a logarithm in hundredths. There
/// it is usual but for noise, on the lower side of a normal distribution, or a stray; across a full link one share is as
/// likely as another, since TCP shares a link unevenly within less than a second.
fn likelier(share: f64) -> i32 {
    let below = (1.0 - share.min(1.0)) / NOISE;
    let density = (-below * below / 2.0).exp() / NOISE * std::f64::consts::FRAC_2_SQRT_PI / std::f64::consts::SQRT_2;
    (((1.0 - STRAYS) * density + STRAYS).ln() * 100.0).round() as i32
}
