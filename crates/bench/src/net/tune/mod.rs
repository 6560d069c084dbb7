//! What can be set of a network: tried on all hosts, measured before and after, kept when it is better.

mod apply;
mod compare;
mod lasting;
mod show;
mod trials;

pub use apply::{Fate, Tried, Tuner};
pub use compare::{Compared, Quantity, Sample};
pub use lasting::{is_own, question};
pub use show::{json, planned, planned_json, text};
pub use trials::{Facts, Kind, Trial, Wish, trials};
