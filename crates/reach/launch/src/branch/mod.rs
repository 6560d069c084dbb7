//! Branches of hosts, for runs with many: a few hosts, the leaders, hold the channels to the rest over their own ssh.
//! This machine has only one channel to each leader.
//!
//! A leader is the worker's own program, and runs while its channel is open; its host has a worker like all others. A
//! leader passes on bytes and parses none: workers receive the coordinator's heartbeats, and end with their tasks
//! when those stop. A leader opens [`crate::FAN_OUT`] channels at a time. Its branch may have any length, so that no
//! branch has branches.

mod along;
mod hosts;
mod lead;
mod link;
mod members;
mod serve;
mod split;

pub use along::attend_all;
pub use hosts::{BranchMember, beside_the_tree, from_here};
pub use serve::serve;
pub use split::{WIDTH, branches};

/// The role of a leader.
pub const LEADER: &str = "lead";
