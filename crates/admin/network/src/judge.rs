//! Judges flows by comparison with the others, and hosts by their best flows.

use crate::measured::{BackgroundTraffic, FlowRate, NetworkMeasurements, Pair};

/// The standard deviation of a flow's rate on an idle network, as a share of the usual rate.
pub const NOISE: f64 = 0.05;
/// Below this share of the usual rate a flow is slow: three standard deviations.
pub const SLOW: f64 = 1.0 - 3.0 * NOISE;
/// Below this share of the usual rate, both directions at once are slower than one is.
pub const HALF: f64 = 0.7;
/// If both directions at once are usually slower than this, processors limit them, not links.
const LINKS: f64 = 0.8;
/// Number of hosts with links of one speed that show the usual rate for it; with fewer, the others are used.
const PEERS: usize = 3;

/// The number of quarters that do not exceed the usual value: the last quarter has the best values.
const BEST: usize = 3;

/// The usual values of a network, and the best values of each host.
pub struct Judge<'a> {
    /// The measurements.
    pub of: &'a NetworkMeasurements,
    /// Speeds of links, Mbit/s, each with the rate of a flow between such links.
    usual: Vec<(Option<u32>, f64)>,
    /// The share of the negotiated speed that flows carry.
    efficiency: f64,
    /// The share of a flow's rate that remains if both directions are used at once.
    both: f64,
    /// The best values of each host.
    best: Vec<RateShares>,
}

/// The best values of a host, as shares of the usual ones.
#[derive(Clone, Copy, Default)]
struct RateShares {
    sends: Option<f64>,
    receives: Option<f64>,
    at_once: Option<f64>,
}

fn better(best: &mut Option<f64>, share: f64) {
    *best = Some(best.map_or(share, |best| best.max(share)));
}

impl Judge<'_> {
    /// Derives the usual values. The best quarter counts, because half of all flows may cross a link that is too
    /// narrow.
    pub fn new(of: &NetworkMeasurements) -> Judge<'_> {
        let rate = |(from, to, flow): (usize, usize, FlowRate)| (of.speed(from, to), flow.mbit_per_s);
        let one: Vec<_> = of.pairs().flat_map(Pair::one_way).map(rate).collect();
        let both: Vec<_> = of.pairs().flat_map(Pair::at_once).map(rate).collect();
        let mut speeds: Vec<Option<u32>> = one.iter().map(|(speed, _)| *speed).collect();
        speeds.sort();
        speeds.dedup();
        let shown =
            |speed: &&Option<u32>| speed.is_none() || of.hosts.iter().filter(|h| h.speed == **speed).count() >= PEERS;
        let of_speed = |speed: &Option<u32>| {
            let rates = |flows: &[(Option<u32>, f64)]| {
                quartile(flows.iter().filter(|(s, _)| s == speed).map(|(_, rate)| *rate), BEST).unwrap_or(0.0)
            };
            (*speed, rates(&one).max(rates(&both)))
        };
        let usual = speeds.iter().filter(shown).map(of_speed).collect();
        let shares = one.iter().filter_map(|(speed, rate)| Some(rate / f64::from((*speed)?)));
        let efficiency = quartile(shares, BEST).unwrap_or(1.0);
        let mut judge = Judge { of, usual, efficiency, both: 1.0, best: Vec::new() };
        judge.both = quartile(of.pairs().filter_map(|pair| judge.both(pair)), BEST).unwrap_or(1.0);
        judge.best = judge.bests();
        judge
    }

    fn bests(&self) -> Vec<RateShares> {
        let mut best = vec![RateShares::default(); self.of.hosts.len()];
        for (from, to, share) in self.of.pairs().flat_map(|pair| self.shares(pair)) {
            better(&mut best[from].sends, share);
            better(&mut best[to].receives, share);
        }
        for (pair, share) in self.of.pairs().filter_map(|pair| Some((pair, self.both(pair)?))) {
            better(&mut best[pair.a].at_once, share);
            better(&mut best[pair.b].at_once, share);
        }
        best
    }

    /// Returns the expected rate of a flow between the two, Mbit/s.
    pub fn expected(&self, from: usize, to: usize) -> f64 {
        let speed = self.of.speed(from, to);
        let usual = self.usual.iter().find(|(of, _)| *of == speed).map(|(_, usual)| *usual);
        usual
            .or(speed.map(|speed| f64::from(speed) * self.efficiency))
            .filter(|most| *most > 0.0)
            .unwrap_or(f64::INFINITY)
    }

    /// Returns the mean rate of both directions at once, as a share of the usual one.
    pub fn both(&self, pair: &Pair) -> Option<f64> {
        let shares: Vec<f64> = self.each_way(pair).collect();
        (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
    }

    /// Returns the rate of each direction while both are used, as a share of the usual one.
    pub fn each_way<'p>(&'p self, pair: &'p Pair) -> impl Iterator<Item = f64> + 'p {
        pair.at_once().map(|(from, to, flow)| flow.mbit_per_s / self.expected(from, to) / self.both)
    }

    /// Returns the rates of a pair's flows as shares of the usual rate: from, to, share.
    fn shares(&self, pair: &Pair) -> Vec<(usize, usize, f64)> {
        let one = pair.one_way().map(|flow| (flow, 1.0));
        let both = pair.at_once().map(|flow| (flow, self.both)).filter(|_| !self.crowded());
        one.chain(both)
            .map(|((from, to, flow), left)| (from, to, flow.mbit_per_s / self.expected(from, to) / left))
            .collect()
    }

    /// Whether both directions at once are usually slow: either processors limit them, or a link that most flows
    /// cross.
    pub fn crowded(&self) -> bool {
        self.both < LINKS
    }

    /// Whether the usual rate may be that of a link which most flows cross. Then too many flows are slow at once, or
    /// some flow was much faster.
    pub fn doubtful(&self) -> bool {
        let much = |host: usize| self.sends(host).is_some_and(|share| share * LINKS > 1.0);
        self.crowded() || (0..self.of.hosts.len()).any(much)
    }

    /// Returns the best rate at which a host sent, as a share of the usual one.
    pub fn sends(&self, host: usize) -> Option<f64> {
        self.best[host].sends
    }

    /// Returns the best rate at which a host received, as a share of the usual one.
    pub fn receives(&self, host: usize) -> Option<f64> {
        self.best[host].receives
    }

    /// Returns the best rate of a host in both directions at once.
    pub fn at_once(&self, host: usize) -> Option<f64> {
        self.best[host].at_once
    }

    /// Returns the best rate of a flow, as a share of the usual one.
    pub fn path(&self, from: usize, to: usize) -> Option<f64> {
        let own = self.of.pairs().filter(|pair| pair.is(from, to)).flat_map(|pair| self.shares(pair));
        own.filter(|(f, t, _)| (*f, *t) == (from, to)).map(|(_, _, share)| share).reduce(f64::max)
    }

    /// Returns the least share of retransmissions among these flows.
    pub fn again(&self, wanted: impl Fn(usize, usize) -> bool) -> Option<f64> {
        let flows = self.of.pairs().flat_map(Pair::one_way).filter(|(from, to, _)| wanted(*from, *to));
        flows.map(|(_, _, flow)| flow.again).reduce(f64::min)
    }

    /// Whether one of a host's values was never as it should be.
    pub fn suspect(&self, host: usize) -> bool {
        let below = |share: Option<f64>, least: f64| share.is_some_and(|share| share < least);
        below(self.sends(host), SLOW) || below(self.receives(host), SLOW) || below(self.at_once(host), HALF)
    }

    /// Returns how good a host was: the worse of its directions.
    pub fn worth(&self, host: usize) -> f64 {
        self.sends(host).unwrap_or(0.0).min(self.receives(host).unwrap_or(0.0))
    }

    /// Returns the hosts without any suspicion, best first.
    pub fn good(&self) -> Vec<usize> {
        let all = 0..self.of.hosts.len();
        let mut good: Vec<usize> = all.filter(|h| self.sends(*h).is_some() && !self.suspect(*h)).collect();
        good.sort_by(|a, b| self.worth(*b).total_cmp(&self.worth(*a)));
        good
    }

    /// Returns how often a host was measured while no other pair was.
    pub fn times_alone(&self, host: usize) -> usize {
        self.of.under(BackgroundTraffic::Alone).filter(|pair| pair.has(host)).count()
    }
}

/// Returns the value that this many quarters of the values do not exceed; two quarters give the median.
pub(crate) fn quartile(values: impl Iterator<Item = f64>, quarters: usize) -> Option<f64> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() * quarters / 4).copied()
}
