//! Hosts in branches, where there are many: a few of them, the leaders, hold the channels to the rest over their own ssh,
//! and this machine has one to each leader. A leader is the worker's own program, at work as long as its channel is open;
//! its host has a worker as any other. It passes on bytes and understands none: a worker hears the coordinator's heartbeats,
//! and ends with its tasks when they stop. A leader opens [`crate::FAN_OUT`] channels at a time however long its branch is,
//! so that no branch needs branches in turn.

mod along;
mod hosts;
mod lead;
mod link;
mod members;
mod serve;
mod split;

pub use along::attend_all;
pub use hosts::{Member, beside_the_tree, from_here};
pub use serve::serve;
pub use split::{WIDTH, branches};

/// The role of a leader.
pub const LEADER: &str = "lead";
