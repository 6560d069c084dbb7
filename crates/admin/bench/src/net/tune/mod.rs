//! Tunes the network: tries settings on all hosts, measures before and after, and keeps a setting that is better.

mod apply;
mod compare;
mod hosts;
mod lasting;
mod mounts;
mod nfs;
mod show;
mod trials;
mod up;

pub use apply::{TrialResult, Tried, Tuner};
pub use compare::{Compared, Quantity, Sample};
pub use hosts::{alone, facts, look, take_back};
pub use lasting::{question, to_take_back};
pub use nfs::Mounted;
pub use show::{json, planned, planned_json, text};
pub use trials::{Facts, Through, Trial, TunableKind, TuningOptions, trials};
