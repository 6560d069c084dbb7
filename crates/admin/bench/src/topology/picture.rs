//! Draws the tree.

use super::TopologyReport;
use homing_network::files::above;
use homing_network::tree::{Leaf, SwitchEvidence};
use homing_report::picture::{TreeBox, tree};

/// Returns a whole SVG file.
pub fn svg(found: &TopologyReport) -> String {
    let bad = |host: &str| found.ports.iter().any(|port| port.hosts.iter().any(|other| other == host));
    let leaf = |leaf: &Leaf| TreeBox {
        name: leaf.name.clone(),
        assumed: leaf.source == SwitchEvidence::Inferred,
        below: (leaf.hosts.iter())
            .map(|place| TreeBox {
                name: place.host.clone(),
                note: place.port.clone().unwrap_or_default(),
                bad: bad(&place.host),
                ..TreeBox::default()
            })
            .collect(),
        ..TreeBox::default()
    };
    let mut nodes: Vec<TreeBox> = found.tree.leaves.iter().map(leaf).collect();
    // A switch that joins others comes after them.
    for join in above(&found.tree) {
        let (below, rest): (Vec<TreeBox>, Vec<TreeBox>) =
            nodes.into_iter().partition(|node| join.below.contains(&node.name));
        nodes = rest;
        nodes.push(TreeBox { name: join.name, assumed: join.chassis.is_none(), below, ..TreeBox::default() });
    }
    nodes.extend(found.tree.alone.iter().map(|host| TreeBox { name: host.clone(), bad: true, ..TreeBox::default() }));
    tree(&nodes)
}
