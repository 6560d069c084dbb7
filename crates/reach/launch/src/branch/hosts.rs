//! Hosts that are to be connected to, and the lines about those that the tree does not reach.

use crate::{HostEvent, HostPlan};
use homing_model::alike::{folded, label};
use std::sync::Arc;

/// Receives a line for the user.
pub(super) type Note = Arc<dyn Fn(String) + Send + Sync>;

/// A host, and the receiver of its events.
pub struct BranchMember {
    /// The host.
    pub plan: HostPlan,
    /// Receives an event; returns whether a reader is left.
    pub on_event: Arc<dyn Fn(HostEvent) -> bool + Send + Sync>,
}

/// Returns a line on hosts that are served without a leader. `whys` has pairs of a host and its reason.
pub fn beside_the_tree(done: &str, hosts: impl IntoIterator<Item = String>, whys: &[(String, String)]) -> String {
    let whys = folded(whys.iter().map(|(host, why)| (host.as_str(), why.as_str())));
    from_here(done, hosts, &whys.join("; "))
}

/// Like [`beside_the_tree`], with one reason for all hosts.
pub fn from_here(done: &str, hosts: impl IntoIterator<Item = String>, why: &str) -> String {
    format!("{done} directly, not through the tree: {}: {why}", label(&hosts.into_iter().collect()))
}
