//! What of a cluster might be changed, and what a change saves.

use serde_json::{Value, json};
use std::fmt::{self, Display};

/// Rates of Ethernet, Mbit/s (IEEE 802.3).
const ETHERNET: [u64; 7] = [100, 1_000, 2_500, 10_000, 25_000, 100_000, 400_000];
/// Bytes per second of a Mbit/s.
const MBIT: u64 = 125_000;

/// A change of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Links of another rate, bytes per second.
    Link { from: u64, to: u64 },
    /// The same bytes on one more host; on which, where that is known.
    Copy(Option<String>),
    /// One more host.
    Host,
}

impl Change {
    /// A link of the next rate that there is.
    pub(crate) fn wider(from: u64) -> Option<Change> {
        let to = ETHERNET.into_iter().map(|mbit| mbit * MBIT).find(|to| *to > from)?;
        Some(Change::Link { from, to })
    }
}

impl Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Change::Link { to, .. } => match to / MBIT {
                mbit if mbit < 1000 => write!(f, "a link of {mbit} Mbit/s"),
                mbit => write!(f, "a link of {} Gbit/s", mbit as f64 / 1000.0),
            },
            Change::Copy(Some(host)) => write!(f, "a copy on {host}"),
            Change::Copy(None) => write!(f, "the same bytes on one more host"),
            Change::Host => write!(f, "one more host"),
        }
    }
}

/// Which part of a run's time a change saves, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Saves {
    /// No more than that: if nothing else were in its way.
    AtMost(f64),
    /// By the run played again; below 0 it takes longer.
    About(f64),
}

impl Saves {
    /// For programs.
    pub(crate) fn json(self, change: &Change) -> Value {
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
            Saves::AtMost(part) => write!(f, "at most -{:.0} %", part * 100.0),
            // Without a sign where it rounds to nothing.
            Saves::About(part) if part.abs() < 0.005 => write!(f, "about 0 %"),
            Saves::About(part) => write!(f, "about {:+.0} %", -part * 100.0),
        }
    }
}
