//! What was measured.

use serde::Serialize;

/// A host, and what it says of the interface that its address is on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Host {
    /// As it was named.
    pub name: String,
    /// The interface.
    pub interface: Option<String>,
    /// What the link negotiated, Mbit/s.
    pub speed: Option<u32>,
    /// The largest packet that the interface sends, bytes.
    pub mtu: Option<u32>,
    /// The link takes one direction at a time.
    pub half_duplex: bool,
}

/// What one end received from the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Flow {
    /// Received, Mbit/s of payload.
    pub mbit_per_s: f64,
    /// The share of what was sent that had to be sent again.
    pub again: f64,
}

/// One way, which is half of a round trip: how long a message took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Size of the message, bytes.
    pub bytes: u32,
    /// Half of all took no longer, microseconds.
    pub p50_us: f64,
    /// 99 of 100 took no longer, microseconds.
    pub p99_us: f64,
    /// The longest, microseconds.
    pub max_us: f64,
}

/// Two hosts, by their place in [`Measured::hosts`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pair {
    /// The one that connected.
    pub a: usize,
    /// The one that listened.
    pub b: usize,
    /// By size.
    pub latency: Vec<Latency>,
    /// From `a` to `b`, and nothing else between the two.
    pub there: Option<Flow>,
    /// From `b` to `a`, and nothing else between the two.
    pub back: Option<Flow>,
    /// `a` to `b` and `b` to `a`, at once.
    pub both: Option<(Flow, Flow)>,
    /// Single bytes passed, and what is larger than a packet did not.
    pub stalled: bool,
    /// Why nothing was measured.
    pub failed: Option<String>,
}

/// What else was on the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// All pairs of a matching.
    Crowd,
    /// This pair and no other of ours.
    Alone,
    /// Only pairs that are on different sides of a link that was found.
    Across,
}

/// Pairs that were measured at the same time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Round {
    /// What else was on the network.
    pub load: Load,
    /// The pairs.
    pub pairs: Vec<Pair>,
}

/// All that is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measured {
    /// The hosts.
    pub hosts: Vec<Host>,
    /// In the order of time.
    pub rounds: Vec<Round>,
}

impl Measured {
    /// Pairs of all rounds.
    pub fn pairs(&self) -> impl Iterator<Item = &Pair> {
        self.rounds.iter().flat_map(|round| &round.pairs)
    }

    /// Pairs of rounds with this load.
    pub fn under(&self, load: Load) -> impl Iterator<Item = &Pair> {
        self.rounds.iter().filter(move |round| round.load == load).flat_map(|round| &round.pairs)
    }

    /// The slower of the two links, Mbit/s.
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

    /// One direction at a time: from, to, what arrived. A pair that stalled carried nothing.
    pub fn one_way(&self) -> impl Iterator<Item = (usize, usize, Flow)> {
        let stalled = self.stalled.then(Flow::default);
        let there = self.there.or(stalled).map(|flow| (self.a, self.b, flow));
        let back = self.back.or(stalled).map(|flow| (self.b, self.a, flow));
        there.into_iter().chain(back)
    }

    /// Both directions at once: from, to, what arrived.
    pub fn at_once(&self) -> impl Iterator<Item = (usize, usize, Flow)> {
        let both = self.both.or(self.stalled.then(Default::default));
        both.into_iter().flat_map(|(there, back)| [(self.a, self.b, there), (self.b, self.a, back)])
    }
}
