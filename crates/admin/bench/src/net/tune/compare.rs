//! Compares measurements before and after a change.

use homing_network::{FlowRate, Pair, Round};
use serde::Serialize;

/// A quantity that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Mbit/s of all pairs together, one direction at a time: the mean of both.
    OneWay,
    /// Mbit/s of all pairs together, both directions at once.
    AtOnce,
    /// Half of the round trip of one byte, microseconds: the median of all pairs.
    Latency,
    /// Mbit/s that all hosts together write through a mount.
    Written,
    /// Mbit/s that all hosts together read through a mount.
    Read,
}

/// The values of one round with all pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    one_way: f64,
    at_once: f64,
    latency: f64,
}

/// One quantity before and after.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The quantity.
    pub quantity: Quantity,
    /// The median before.
    pub before: f64,
    /// The median after.
    pub after: f64,
    /// The improvement as a share of the value before: negative where it is worse.
    pub gain: f64,
    /// The largest difference between samples of one side, as a share of the value before.
    pub noise: f64,
}

/// A smaller change counts as none, however quiet the network is: rates are counted in a part of a second.
const LEAST: f64 = 0.02;

impl Sample {
    /// Returns `None` if a pair was not measured to its end.
    pub fn of(round: &Round) -> Option<Sample> {
        let rate = |(from, to): (FlowRate, FlowRate)| from.mbit_per_s + to.mbit_per_s;
        let both = |of: &dyn Fn(&Pair) -> Option<f64>| round.pairs.iter().map(of).sum::<Option<f64>>();
        let one_way = both(&|pair| Some(rate((pair.there?, pair.back?)) / 2.0))?;
        let at_once = both(&|pair| pair.both.map(rate))?;
        let bytes = |pair: &Pair| pair.latency.iter().find(|took| took.bytes == 1).map(|took| took.p50_us);
        let latency = median(round.pairs.iter().map(bytes).collect::<Option<Vec<_>>>()?)?;
        Some(Sample { one_way, at_once, latency })
    }

    fn of_quantity(&self, quantity: Quantity) -> f64 {
        match quantity {
            Quantity::OneWay => self.one_way,
            Quantity::AtOnce => self.at_once,
            Quantity::Latency => self.latency,
            // Values of a mount, which no round measures.
            Quantity::Written | Quantity::Read => 0.0,
        }
    }
}

impl Compared {
    /// Compares all quantities of two series of samples.
    pub fn all(before: &[Sample], after: &[Sample]) -> Vec<Compared> {
        let quantities = [Quantity::OneWay, Quantity::AtOnce, Quantity::Latency];
        quantities.into_iter().filter_map(|quantity| Compared::of(quantity, before, after)).collect()
    }

    fn of(quantity: Quantity, before: &[Sample], after: &[Sample]) -> Option<Compared> {
        let values = |samples: &[Sample]| samples.iter().map(|s| s.of_quantity(quantity)).collect::<Vec<f64>>();
        Compared::rates(quantity, values(before), values(after))
    }

    /// Compares values of one quantity before and after.
    pub fn rates(quantity: Quantity, old: Vec<f64>, new: Vec<f64>) -> Option<Compared> {
        let noise = range(&old).max(range(&new));
        let (before, after) = (median(old)?, median(new)?);
        if before <= 0.0 {
            return None;
        }
        let gain = (after - before) / before;
        let gain = if quantity == Quantity::Latency { -gain } else { gain };
        Some(Compared { quantity, before, after, gain, noise: noise / before })
    }

    fn bound(&self) -> f64 {
        self.noise.max(LEAST)
    }

    /// Whether it is better by more than the noise.
    pub fn is_better(&self) -> bool {
        self.gain > self.bound()
    }

    /// Whether it is worse by more than the noise.
    pub fn is_worse(&self) -> bool {
        -self.gain > self.bound()
    }
}

fn range(values: &[f64]) -> f64 {
    let (least, most) = values.iter().fold((f64::INFINITY, 0.0), |(l, m): (f64, f64), v| (l.min(*v), m.max(*v)));
    (most - least).max(0.0)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len().is_multiple_of(2) { (values[middle - 1] + upper) / 2.0 } else { upper })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(rates: [f64; 4], latency: f64) -> Vec<Sample> {
        rates.iter().map(|rate| Sample { one_way: *rate, at_once: 100.0, latency }).collect()
    }

    #[test]
    fn better_is_what_exceeds_the_noise() {
        let judged = |after: &[Sample]| {
            let all = Compared::all(&samples([90.0, 100.0, 100.0, 104.0], 10.0), after);
            let of = |test: fn(&Compared) -> bool| all.iter().filter(|c| test(c)).map(|c| c.quantity).collect();
            let (better, worse): (Vec<Quantity>, Vec<Quantity>) = (of(Compared::is_better), of(Compared::is_worse));
            (better, worse)
        };
        // 110 is within the 14 by which the samples before differ; 130 is not.
        assert_eq!(judged(&samples([110.0; 4], 10.0)), (vec![], vec![]));
        assert_eq!(judged(&samples([130.0; 4], 10.0)), (vec![Quantity::OneWay], vec![]));
        assert_eq!(judged(&samples([130.0; 4], 12.0)), (vec![Quantity::OneWay], vec![Quantity::Latency]));
        assert_eq!(judged(&samples([100.0; 4], 9.9)), (vec![], vec![]), "a hundredth is none");
        assert_eq!(judged(&samples([100.0; 4], 8.0)), (vec![Quantity::Latency], vec![]));
    }

    #[test]
    fn a_pair_that_stalled_leaves_no_sample() {
        let flow = FlowRate { mbit_per_s: 10.0, again: 0.0 };
        let whole = Pair { there: Some(flow), back: Some(flow), both: Some((flow, flow)), ..Pair::default() };
        let took = homing_network::Latency { bytes: 1, p50_us: 5.0, ..Default::default() };
        let whole = Pair { latency: vec![took], ..whole };
        let round = |pairs| Round { load: homing_network::BackgroundTraffic::Crowd, pairs };
        assert_eq!(
            Sample::of(&round(vec![whole.clone(), whole.clone()])),
            Some(Sample { one_way: 20.0, at_once: 40.0, latency: 5.0 })
        );
        assert_eq!(Sample::of(&round(vec![whole, Pair { stalled: true, ..Pair::default() }])), None);
    }
}
