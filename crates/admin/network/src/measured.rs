//! The measurements.

use serde::{Deserialize, Serialize};

/// A host, and its facts about the interface that has its address.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NetworkHost {
    /// Its name, as the user gave it.
    pub name: String,
    /// The interface.
    pub interface: Option<String>,
    /// The negotiated speed of the link, Mbit/s.
    pub speed: Option<u32>,
    /// The largest packet that the interface sends, bytes.
    pub mtu: Option<u32>,
    /// Whether the link takes one direction at a time.
    pub half_duplex: bool,
}

/// The bytes that one end received from the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct FlowRate {
    /// The rate of received payload, Mbit/s.
    pub mbit_per_s: f64,
    /// The share of sent bytes that had to be sent again.
    pub again: f64,
}

/// The time of a message one way, which is half of a round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Size of the message, bytes.
    pub bytes: u32,
    /// The median, microseconds.
    pub p50_us: f64,
    /// The 99th percentile, microseconds.
    pub p99_us: f64,
    /// The maximum, microseconds.
    pub max_us: f64,
}

/// Two hosts, by their index in [`NetworkMeasurements::hosts`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pair {
    /// The host that connected.
    pub a: usize,
    /// The host that listened.
    pub b: usize,
    /// The latencies by size.
    pub latency: Vec<Latency>,
    /// The flow from `a` to `b`, and nothing else between the two.
    pub there: Option<FlowRate>,
    /// The flow from `b` to `a`, and nothing else between the two.
    pub back: Option<FlowRate>,
    /// The flows from `a` to `b` and from `b` to `a`, at once.
    pub both: Option<(FlowRate, FlowRate)>,
    /// Whether single bytes passed, and messages larger than a packet did not.
    pub stalled: bool,
    /// The reason why nothing was measured.
    pub failed: Option<String>,
}

/// The other flows on the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BackgroundTraffic {
    /// All pairs of a matching.
    Crowd,
    /// This pair only.
    Alone,
    /// Only pairs that are on different sides of a link that was found.
    Across,
}

/// Pairs that were measured at the same time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Round {
    /// The other flows on the network.
    pub load: BackgroundTraffic,
    /// The pairs.
    pub pairs: Vec<Pair>,
}

/// All measurements.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NetworkMeasurements {
    /// The hosts.
    pub hosts: Vec<NetworkHost>,
    /// The rounds in the order of time.
    pub rounds: Vec<Round>,
}

impl NetworkMeasurements {
    /// Returns the pairs of all rounds.
    pub fn pairs(&self) -> impl Iterator<Item = &Pair> {
        self.rounds.iter().flat_map(|round| &round.pairs)
    }

    /// Returns the pairs of rounds with this load.
    pub fn under(&self, load: BackgroundTraffic) -> impl Iterator<Item = &Pair> {
        self.rounds.iter().filter(move |round| round.load == load).flat_map(|round| &round.pairs)
    }

    /// Returns the speed of the slower of the two links, Mbit/s.
    pub fn speed(&self, a: usize, b: usize) -> Option<u32> {
        Some(self.hosts[a].speed?.min(self.hosts[b].speed?))
    }
}

impl Pair {
    /// Whether it is between these two.
    pub fn is(&self, a: usize, b: usize) -> bool {
        (self.a, self.b) == (a, b) || (self.a, self.b) == (b, a)
    }

    /// Whether a host is part of it.
    pub fn has(&self, host: usize) -> bool {
        self.a == host || self.b == host
    }

    /// Returns the flows of one direction at a time: from, to, rate. A pair that stalled carried nothing.
    pub fn one_way(&self) -> impl Iterator<Item = (usize, usize, FlowRate)> {
        let stalled = self.stalled.then(FlowRate::default);
        let there = self.there.or(stalled).map(|flow| (self.a, self.b, flow));
        let back = self.back.or(stalled).map(|flow| (self.b, self.a, flow));
        there.into_iter().chain(back)
    }

    /// Returns the flows of both directions at once: from, to, rate.
    pub fn at_once(&self) -> impl Iterator<Item = (usize, usize, FlowRate)> {
        let both = self.both.or(self.stalled.then(Default::default));
        both.into_iter().flat_map(|(there, back)| [(self.a, self.b, there), (self.b, self.a, back)])
    }
}
