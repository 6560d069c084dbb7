//! Hosts that are to be connected to, and what is told of those that do not come along the tree.

use crate::{Heard, HostPlan};
use homing_model::alike::{folded, label};
use std::sync::Arc;

/// Takes a line for the user.
pub(super) type Note = Arc<dyn Fn(String) + Send + Sync>;

/// A host, and who is told what is heard of it.
pub struct Member {
    /// The host.
    pub plan: HostPlan,
    /// Says whether anybody still listens.
    pub tell: Arc<dyn Fn(Heard) -> bool + Send + Sync>,
}

/// A line on hosts with which this is done without a leader, and why: who says so, and what.
pub fn beside_the_tree(done: &str, hosts: impl IntoIterator<Item = String>, whys: &[(String, String)]) -> String {
    let whys = folded(whys.iter().map(|(host, why)| (host.as_str(), why.as_str())));
    from_here(done, hosts, &whys.join("; "))
}

/// The same, where one reason is that of all.
pub fn from_here(done: &str, hosts: impl IntoIterator<Item = String>, why: &str) -> String {
    format!("{done} from here and not along the tree: {}: {why}", label(&hosts.into_iter().collect()))
}
