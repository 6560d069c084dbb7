//! Which host, direction or link of a network is slow, and which host is on which switch.
//!
//! Who measures asks [`next`] for a round of pairs, carries it out, adds it to
//! [`Measured`], and asks again until there is nothing left to find out. Then
//! [`findings`] says what is wrong. Both are functions of what was measured, so
//! that networks can be made up and judged without any.
//!
//! Few rounds are enough: in three random perfect matchings a good host has at
//! least one good partner, and looks good there. Only those that never did are
//! tried again, alone, beside hosts that did.
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

pub use finding::{Finding, Kind, findings};
pub use groups::sides;
pub use joined::joined;
pub use judge::Judge;
pub use measured::{Flow, Host, Latency, Load, Measured, Pair, Round};
pub use next::{Order, next};
pub use pairs::{circle, mixed};
pub use ports::{Differs, PortFinding, differing};
pub use served::{Served, Way};
