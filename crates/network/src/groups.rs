//! Which hosts share a link: flows that cross it slow each other down, and those that do not cross it are as ever.

use crate::judge::{Judge, SLOW};
use crate::measured::{Load, Measured, Pair, Round};

/// Hosts on the same side of every link that was seen to be full.
pub struct Groups {
    /// The group of each host.
    of: Vec<usize>,
    /// Pairs of hosts that a full link is between.
    apart: Vec<(usize, usize)>,
    /// Rounds that showed it.
    shown: bool,
}

impl Groups {
    /// From the rounds in which more than one pair was slow though its hosts are not. In the others nothing was full: a
    /// pair that was fast there is on one side only if both were seen apart from the same third.
    pub fn new(judge: &Judge) -> Groups {
        let crowds = judge.of.rounds.iter().filter(|round| round.load == Load::Crowd);
        let (full, free): (Vec<&Round>, Vec<&Round>) = crowds.partition(|round| contended(judge, round));
        let of = (0..judge.of.hosts.len()).collect();
        let mut groups = Groups { of, apart: Vec::new(), shown: !full.is_empty() };
        for pair in full.iter().flat_map(|round| &round.pairs) {
            match judge.both(pair) {
                Some(share) if share >= SLOW => groups.join(pair.a, pair.b),
                Some(_) => groups.apart.push((pair.a, pair.b)),
                None => {}
            }
        }
        let fast = |pair: &&Pair| judge.both(pair).is_some_and(|share| share >= SLOW);
        for pair in free.iter().flat_map(|round| &round.pairs).filter(fast) {
            let third = |host| groups.apart(host, pair.a) && groups.apart(host, pair.b);
            if !groups.apart(pair.a, pair.b) && (0..groups.of.len()).any(third) {
                groups.join(pair.a, pair.b);
            }
        }
        groups
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
        self.apart.iter().any(|&(x, y)| (self.of[x], self.of[y]) == (a, b) || (self.of[x], self.of[y]) == (b, a))
    }

    /// Every host is in a group, and every two groups were seen to be apart.
    pub fn settled(&self) -> bool {
        let all = self.all();
        let parts = all.iter().enumerate().all(|(i, one)| all[..i].iter().all(|other| self.apart(one[0], other[0])));
        parts && all.iter().map(Vec::len).sum::<usize>() == self.of.len()
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
