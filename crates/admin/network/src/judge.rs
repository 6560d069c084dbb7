//! What a flow is worth beside the others, and how good a host was at its best.

use crate::measured::{Flow, Load, Measured, Pair};

/// The standard deviation of what a flow carries on an idle network, as a share of what is usual.
pub const NOISE: f64 = 0.05;
/// Below this share of what is usual a flow is slow: three standard deviations.
pub const SLOW: f64 = 1.0 - 3.0 * NOISE;
/// Below this share of what is usual, both directions at once are slower than one is.
pub const HALF: f64 = 0.7;
/// Where both directions at once are usually slower than this, something else than links holds them back: processors.
const LINKS: f64 = 0.8;
/// So many hosts with links of one speed show what is usual for it; of fewer the others have to tell.
const PEERS: usize = 3;

/// What this many quarters do not exceed is usual: the other one is the best.
const BEST: usize = 3;

/// What is usual in a network, and what each host did at its best.
pub struct Judge<'a> {
    /// What was measured.
    pub of: &'a Measured,
    /// Links' speeds, Mbit/s, with what a flow between such links carries.
    usual: Vec<(Option<u32>, f64)>,
    /// The share of the negotiated speed that flows carry.
    efficiency: f64,
    /// What is left of a flow's share where both directions are used at once.
    both: f64,
    /// Each host at its best.
    best: Vec<Best>,
}

/// What a host did at its best, as shares of what is usual.
#[derive(Clone, Copy, Default)]
struct Best {
    sends: Option<f64>,
    receives: Option<f64>,
    at_once: Option<f64>,
}

fn better(best: &mut Option<f64>, share: f64) {
    *best = Some(best.map_or(share, |best| best.max(share)));
}

impl Judge<'_> {
    /// Learns what is usual. What is best in a quarter counts, as half of all may cross a link that is too narrow.
    pub fn new(of: &Measured) -> Judge<'_> {
        let rate = |(from, to, flow): (usize, usize, Flow)| (of.speed(from, to), flow.mbit_per_s);
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

    fn bests(&self) -> Vec<Best> {
        let mut best = vec![Best::default(); self.of.hosts.len()];
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

    /// What a flow between the two should carry, Mbit/s.
    pub fn expected(&self, from: usize, to: usize) -> f64 {
        let speed = self.of.speed(from, to);
        let usual = self.usual.iter().find(|(of, _)| *of == speed).map(|(_, usual)| *usual);
        usual
            .or(speed.map(|speed| f64::from(speed) * self.efficiency))
            .filter(|most| *most > 0.0)
            .unwrap_or(f64::INFINITY)
    }

    /// What both directions at once carry, as a share of what is usual for that.
    pub fn both(&self, pair: &Pair) -> Option<f64> {
        let shares: Vec<f64> = self.each_way(pair).collect();
        (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
    }

    /// What each direction carries while both are used, as a share of what is usual for that.
    pub fn each_way<'p>(&'p self, pair: &'p Pair) -> impl Iterator<Item = f64> + 'p {
        pair.at_once().map(|(from, to, flow)| flow.mbit_per_s / self.expected(from, to) / self.both)
    }

    /// The shares of what is usual that a pair's flows carried: from, to, share.
    fn shares(&self, pair: &Pair) -> Vec<(usize, usize, f64)> {
        let one = pair.one_way().map(|flow| (flow, 1.0));
        let both = pair.at_once().map(|flow| (flow, self.both)).filter(|_| !self.crowded());
        one.chain(both)
            .map(|((from, to, flow), left)| (from, to, flow.mbit_per_s / self.expected(from, to) / left))
            .collect()
    }

    /// Both directions at once are usually so slow that either processors hold them back, or a link that most cross.
    pub fn crowded(&self) -> bool {
        self.both < LINKS
    }

    /// What is called usual may be what a link leaves that most cross: too many are slow at once, or some flow was much
    /// faster.
    pub fn doubtful(&self) -> bool {
        let much = |host: usize| self.sends(host).is_some_and(|share| share * LINKS > 1.0);
        self.crowded() || (0..self.of.hosts.len()).any(much)
    }

    /// What a host sent at its best, as a share of what is usual.
    pub fn sends(&self, host: usize) -> Option<f64> {
        self.best[host].sends
    }

    /// What a host received at its best, as a share of what is usual.
    pub fn receives(&self, host: usize) -> Option<f64> {
        self.best[host].receives
    }

    /// What a host did in both directions at once, at its best.
    pub fn at_once(&self, host: usize) -> Option<f64> {
        self.best[host].at_once
    }

    /// What a flow carried at its best, as a share of what is usual.
    pub fn path(&self, from: usize, to: usize) -> Option<f64> {
        let own = self.of.pairs().filter(|pair| pair.is(from, to)).flat_map(|pair| self.shares(pair));
        own.filter(|(f, t, _)| (*f, *t) == (from, to)).map(|(_, _, share)| share).reduce(f64::max)
    }

    /// The least share of any of these flows that had to be sent again.
    pub fn again(&self, wanted: impl Fn(usize, usize) -> bool) -> Option<f64> {
        let flows = self.of.pairs().flat_map(Pair::one_way).filter(|(from, to, _)| wanted(*from, *to));
        flows.map(|(_, _, flow)| flow.again).reduce(f64::min)
    }

    /// Whether something about a host was never as it should be.
    pub fn suspect(&self, host: usize) -> bool {
        let below = |share: Option<f64>, least: f64| share.is_some_and(|share| share < least);
        below(self.sends(host), SLOW) || below(self.receives(host), SLOW) || below(self.at_once(host), HALF)
    }

    /// How good a host was: the worse of its directions.
    pub fn worth(&self, host: usize) -> f64 {
        self.sends(host).unwrap_or(0.0).min(self.receives(host).unwrap_or(0.0))
    }

    /// Hosts about which nothing is to be said, best first.
    pub fn good(&self) -> Vec<usize> {
        let all = 0..self.of.hosts.len();
        let mut good: Vec<usize> = all.filter(|h| self.sends(*h).is_some() && !self.suspect(*h)).collect();
        good.sort_by(|a, b| self.worth(*b).total_cmp(&self.worth(*a)));
        good
    }

    /// How often a host was measured with nobody else on the network.
    pub fn times_alone(&self, host: usize) -> usize {
        self.of.under(Load::Alone).filter(|pair| pair.has(host)).count()
    }
}

/// What so many quarters of the values do not exceed; the middle is that of two.
pub(crate) fn quartile(values: impl Iterator<Item = f64>, quarters: usize) -> Option<f64> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() * quarters / 4).copied()
}
