//! Changes to a cluster, and the time that each saves.

use serde_json::{Value, json};
use std::fmt::{self, Display};

/// The rates of Ethernet, Mbit/s (IEEE 802.3).
const ETHERNET: [u64; 7] = [100, 1_000, 2_500, 10_000, 25_000, 100_000, 400_000];
/// The bytes per second of 1 Mbit/s.
const MBIT: u64 = 125_000;

/// A change of one part of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClusterChange {
    /// Links of another rate, bytes per second.
    Link { from: u64, to: u64 },
    /// The same bytes on one more host. The host is named if it is known.
    Copy(Option<String>),
    /// One more host.
    Host,
}

impl ClusterChange {
    /// Returns a link of the next higher rate of Ethernet.
    pub(crate) fn wider(from: u64) -> Option<ClusterChange> {
        let to = ETHERNET.into_iter().map(|mbit| mbit * MBIT).find(|to| *to > from)?;
        Some(ClusterChange::Link { from, to })
    }
}

impl Display for ClusterChange {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ClusterChange::Link { to, .. } => match to / MBIT {
                mbit if mbit < 1000 => write!(f, "a link of {mbit} Mbit/s"),
                mbit => write!(f, "a link of {} Gbit/s", mbit as f64 / 1000.0),
            },
            ClusterChange::Copy(Some(host)) => write!(f, "a copy on {host}"),
            ClusterChange::Copy(None) => write!(f, "the same bytes on one more host"),
            ClusterChange::Host => write!(f, "one more host"),
        }
    }
}

/// The part of a run's time that a change saves, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Saves {
    /// An upper bound: the saving if no other part of the cluster limits the run.
    AtMost(f64),
    /// A prediction from a replay of the run. Below 0 the run takes longer.
    About(f64),
}

impl Saves {
    /// Returns the saving as JSON.
    pub(crate) fn json(self, change: &ClusterChange) -> Value {
        let (part, is_bound) = match self {
            Saves::AtMost(part) => (part, true),
            Saves::About(part) => (part, false),
        };
        json!({"change": change.to_string(), "saves": part, "at_most": is_bound})
    }
}

impl Display for Saves {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            // Without a sign if it rounds to zero, and half of a percent rounds to the even number.
            Saves::AtMost(part) if part.abs() <= 0.005 => write!(f, "at most 0 %"),
            Saves::AtMost(part) => write!(f, "at most -{:.0} %", part * 100.0),
            Saves::About(part) if part.abs() <= 0.005 => write!(f, "about 0 %"),
            Saves::About(part) => write!(f, "about {:+.0} %", -part * 100.0),
        }
    }
}
