//! Draws the tree.

use super::Found;
use homing_network::files::above;
use homing_network::tree::{Leaf, Source};
use homing_report::picture::{Node, tree};

/// Returns a whole SVG file.
pub fn svg(found: &Found) -> String {
    let bad = |host: &str| found.ports.iter().any(|port| port.hosts.iter().any(|other| other == host));
    let leaf = |leaf: &Leaf| Node {
        name: leaf.name.clone(),
        assumed: leaf.source == Source::Inferred,
        below: (leaf.hosts.iter())
            .map(|place| Node {
                name: place.host.clone(),
                note: place.port.clone().unwrap_or_default(),
                bad: bad(&place.host),
                ..Node::default()
            })
            .collect(),
        ..Node::default()
    };
    let mut nodes: Vec<Node> = found.tree.leaves.iter().map(leaf).collect();
    // A switch that joins others comes after them.
    for join in above(&found.tree) {
        let (below, rest): (Vec<Node>, Vec<Node>) = nodes.into_iter().partition(|node| join.below.contains(&node.name));
        nodes = rest;
        nodes.push(Node { name: join.name, assumed: join.chassis.is_none(), below, ..Node::default() });
    }
    nodes.extend(found.tree.alone.iter().map(|host| Node { name: host.clone(), bad: true, ..Node::default() }));
    tree(&nodes)
}
