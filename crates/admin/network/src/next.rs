//! Decides which pairs to measure next.

use crate::groups::LinkGroups;
use crate::judge::{Judge, SLOW};
use crate::measured::{BackgroundTraffic, NetworkMeasurements, Pair, Round};
use crate::pairs::circle;

/// In three random matchings, 98.7 % of slow hosts among 8 never look good, and all of them among 16 and more. No
/// good host looks slow in all three.
const MATCHINGS: usize = 3;
/// Further matchings, to find the hosts that share a link.
const MORE: usize = 16;
/// The number of further matchings if the usual rate is in doubt: by then enough pairs met on one side.
const DOUBTS: usize = 3;
/// How often each pair meets at most.
const TURNS: usize = 3;
/// Known-good hosts that a suspect is measured with.
const WITNESSES: usize = 2;
/// Single pairs that are measured again. If more are slow, the cause is no single path.
const PATHS: usize = 4;
/// Suspects that are measured again. If more are slow, the usual rate is not known.
const SUSPECTS: usize = 8;

/// Pairs to be measured at the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundOrder {
    /// The other flows on the network.
    pub load: BackgroundTraffic,
    /// Whether only both directions at once are measured.
    pub brief: bool,
    /// The pairs: the host that connects, and the one that listens.
    pub pairs: Vec<(usize, usize)>,
}

impl RoundOrder {
    fn whole(load: BackgroundTraffic, pairs: Vec<(usize, usize)>) -> RoundOrder {
        RoundOrder { load, brief: false, pairs }
    }

    fn brief(load: BackgroundTraffic, pairs: Vec<(usize, usize)>) -> RoundOrder {
        RoundOrder { load, brief: true, pairs }
    }
}

/// Returns the most informative round, or `None` if all is known. `order` is the order in which hosts meet; with
/// `all` each meets each.
pub fn next(measured: &NetworkMeasurements, order: &[usize], all: bool) -> Option<RoundOrder> {
    let matchings = circle(order);
    let done = measured.rounds.iter().filter(|round| round.load == BackgroundTraffic::Crowd).count();
    let matching = matchings.get(done).cloned();
    if let Some(pairs) = matching.clone().filter(|_| all || done < MATCHINGS) {
        return Some(RoundOrder::whole(BackgroundTraffic::Crowd, pairs));
    }
    let judge = Judge::new(measured);
    let groups = LinkGroups::new(&judge);
    let doubt = judge.doubtful() && done < MATCHINGS + DOUBTS;
    let unclear = doubt || (groups.shown() || many(&judge)) && !groups.settled() && done < MATCHINGS + MORE;
    // A few hosts have soon all met each other. A repeated matching sees other loads on the network.
    let again = matchings.get(done % matchings.len().max(1)).filter(|_| done < matchings.len() * TURNS).cloned();
    matching
        .or(again)
        .filter(|_| unclear)
        .map(|pairs| RoundOrder::brief(BackgroundTraffic::Crowd, pairs))
        .or_else(|| suspect(&judge))
        .or_else(|| path(&judge, &groups))
        .or_else(|| across(&judge, &groups))
}

/// Whether so many hosts are slow that a shared link is more likely than as many faults.
fn many(judge: &Judge) -> bool {
    let hosts = judge.of.hosts.len();
    (0..hosts).filter(|host| judge.suspect(*host)).count() > (hosts / 4).max(2)
}

/// Returns a suspect beside a good host.
fn suspect(judge: &Judge) -> Option<RoundOrder> {
    let mut suspects: Vec<usize> = (0..judge.of.hosts.len()).filter(|host| judge.suspect(*host)).collect();
    suspects.sort_by(|a, b| judge.worth(*a).total_cmp(&judge.worth(*b)));
    let met = |a, b| judge.of.under(BackgroundTraffic::Alone).any(|pair| pair.is(a, b));
    let good = judge.good();
    let waits = |host: &usize| {
        let witness = good.iter().copied().find(|witness| !met(*host, *witness))?;
        (judge.times_alone(*host) < WITNESSES).then_some((*host, witness))
    };
    let pair = suspects.iter().take(SUSPECTS).find_map(waits)?;
    Some(RoundOrder::whole(BackgroundTraffic::Alone, vec![pair]))
}

/// Returns the pairs of good hosts that are slow with each other.
pub fn slow_paths(judge: &Judge, groups: &LinkGroups) -> Vec<(usize, usize)> {
    let slow = |a, b| judge.path(a, b).is_some_and(|share| share < SLOW);
    let good = |pair: &&Pair| !judge.suspect(pair.a) && !judge.suspect(pair.b) && !groups.apart(pair.a, pair.b);
    let pairs = judge.of.pairs().filter(good).map(|pair| (pair.a.min(pair.b), pair.a.max(pair.b)));
    let mut pairs: Vec<(usize, usize)> = pairs.filter(|&(a, b)| slow(a, b) || slow(b, a)).collect();
    pairs.sort();
    pairs.dedup();
    pairs
}

fn path(judge: &Judge, groups: &LinkGroups) -> Option<RoundOrder> {
    let alone = |&(a, b): &(usize, usize)| judge.of.under(BackgroundTraffic::Alone).any(|pair| pair.is(a, b));
    let pair = slow_paths(judge, groups).into_iter().take(PATHS).find(|pair| !alone(pair))?;
    Some(RoundOrder::whole(BackgroundTraffic::Alone, vec![pair]))
}

/// Measures each group against the others, to find the rate of the link between them, and whether all of them cross
/// it. Hosts whose group is least certain come first. If a host turns out to be on another side, the measurement is
/// repeated.
fn across(judge: &Judge, groups: &LinkGroups) -> Option<RoundOrder> {
    let sides = sides(&groups.all());
    let done = judge.of.rounds.iter().filter(|round| round.load == BackgroundTraffic::Across).count();
    if done >= sides.len() + TURNS - 1 {
        return None;
    }
    let (one, other) = sides.iter().find(|side| crossed(judge.of, side).is_none())?;
    let unsure = |hosts: &[usize]| {
        let mut hosts = hosts.to_vec();
        hosts.sort_by_key(|host| groups.certain(*host));
        hosts
    };
    Some(RoundOrder::brief(BackgroundTraffic::Across, unsure(one).into_iter().zip(unsure(other)).collect()))
}

/// A group, and the hosts that it was measured against.
pub type Side = (Vec<usize>, Vec<usize>);

/// Returns the last round in which all pairs were between a group and others.
pub fn crossed<'r>(measured: &'r NetworkMeasurements, (one, other): &Side) -> Option<&'r Round> {
    let crosses = |pair: &Pair| one.contains(&pair.a) && other.contains(&pair.b);
    let mut across = measured.rounds.iter().rev().filter(|round| round.load == BackgroundTraffic::Across);
    across.find(|round| round.pairs.iter().all(crosses))
}

/// Returns the groups to measure against each other: two groups once, and of more each against all others.
pub fn sides(groups: &[Vec<usize>]) -> Vec<Side> {
    let others = |i: usize| {
        let others = groups.iter().enumerate().filter(|(at, _)| *at != i);
        others.flat_map(|(_, hosts)| hosts.iter().copied()).collect()
    };
    let all = groups.iter().enumerate().map(|(i, hosts)| (hosts.clone(), others(i)));
    match groups.len() {
        0 | 1 => Vec::new(),
        2 => all.take(1).collect(),
        _ => all.collect(),
    }
}
