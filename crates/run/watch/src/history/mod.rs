//! Samples of a host by the minute, in a file that never grows beyond its bound.
//!
//! A record has counters, not rates. A reader takes the rate between any two records. Therefore a step of an hour is
//! as exact as one of a minute, and a missing minute affects only itself.

pub mod columns;
mod exchange;
mod hours;
mod moment;
mod place;
mod record;
mod ring;
mod table;
mod thin;

pub use exchange::{HostHistory, HostRecords, lines, read, step};
pub use hours::text as hours;
pub use moment::{Moment, at};
pub use place::{file, folder};
pub use record::SampleRecord;
pub use ring::{Ring, RingError, SLOTS};
pub use table::{json, text as table};
pub use thin::thin;
