//! Finds slow hosts, directions and links of a network, and the switch of each host.
//!
//! The caller takes a round of pairs from [`next`], carries it out, and adds it to [`NetworkMeasurements`], until
//! there is nothing left to find out. A pair that could not be measured is added with its reason. Then [`findings`]
//! returns the faults. Both are functions of the measurements: tests can judge invented networks without a real one.
//!
//! Few rounds are enough: in three random perfect matchings a good host has at least one good partner, and looks good
//! there. Only hosts that never look good are tried again, alone, beside hosts that do.
//!
//! It does not: send a byte (`bench`), or change a switch.

pub mod files;
mod finding;
mod groups;
mod joined;
mod judge;
pub mod lldp;
mod measured;
mod next;
mod pairs;
mod ports;
mod served;
pub mod snmp;
pub mod tree;

pub use finding::{FaultKind, NetworkFinding, findings};
pub use groups::sides;
pub use joined::joined;
pub use judge::Judge;
pub use measured::{BackgroundTraffic, FlowRate, Latency, NetworkHost, NetworkMeasurements, Pair, Round};
pub use next::{RoundOrder, next};
pub use pairs::{circle, mixed};
pub use ports::{Differs, PortFinding, differing};
pub use served::{DirectionRates, ServerRates};
