//! What can be set of a network: tried on all hosts, measured before and after, kept when it is better.

mod apply;
mod compare;
mod hosts;
mod lasting;
mod mounts;
mod nfs;
mod show;
mod trials;
mod up;

pub use apply::{Fate, Tried, Tuner};
pub use compare::{Compared, Quantity, Sample};
pub use hosts::{alone, facts, look, take_back};
pub use lasting::{question, to_take_back};
pub use nfs::Mounted;
pub use show::{json, planned, planned_json, text};
pub use trials::{Facts, Kind, Through, Trial, Wish, trials};
