//! Writes the tree in the formats of other programs.

use crate::tree::{Join, Leaf, NameRegistry, SwitchTree};
use homing_model::NodeSet;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::Ipv4Addr;

/// Returns Slurm's topology.conf. It omits hosts that are on no switch, and Slurm would lose them: the caller must
/// report that.
pub fn slurm_conf(tree: &SwitchTree) -> String {
    let leaf = |leaf: &Leaf| format!("SwitchName={} Nodes={}\n", leaf.name, nodes(leaf));
    let above =
        above(tree).into_iter().map(|join| format!("SwitchName={} Switches={}\n", join.name, join.below.join(",")));
    tree.leaves.iter().map(leaf).chain(above).collect()
}

/// Returns Slurm's topology.yaml (25.05 and newer).
pub fn slurm_yaml(tree: &SwitchTree) -> String {
    let mut text = "- topology: tree\n  cluster_default: true\n  tree:\n    switches:\n".to_string();
    for leaf in &tree.leaves {
        let _ = writeln!(text, "      - switch: {}\n        nodes: {}", leaf.name, nodes(leaf));
    }
    for join in above(tree) {
        let _ = writeln!(text, "      - switch: {}\n        children: {}", join.name, join.below.join(","));
    }
    text
}

/// Returns MooseFS's mfstopology.cfg: the address of each host, and the switch as the last part of a path.
pub fn moosefs(tree: &SwitchTree, addresses: &BTreeMap<String, Ipv4Addr>) -> String {
    let mut text = String::new();
    for leaf in &tree.leaves {
        let path = path(tree, &leaf.name).join("|");
        for (place, address) in leaf.hosts.iter().filter_map(|place| Some((place, addresses.get(&place.host)?))) {
            let _ = writeln!(text, "{address} {path} # {}", place.host);
        }
    }
    text
}

/// Returns the names from the top to a switch.
fn path(tree: &SwitchTree, leaf: &str) -> Vec<String> {
    let (joins, mut path) = (above(tree), vec![leaf.to_string()]);
    // No path is longer than the number of switches: each switch is joined once.
    while let Some(join) = joins.iter().find(|join| join.below.contains(&path[0])).filter(|_| path.len() <= joins.len())
    {
        path.insert(0, join.name.clone());
    }
    path
}

fn nodes(leaf: &Leaf) -> String {
    leaf.hosts.iter().map(|place| place.host.clone()).collect::<NodeSet>().to_string()
}

/// Returns the switches that join the leaves, lower ones first. Hosts receive LLDP of their own switch alone. If
/// switches did not report more, it is only known that something joins them: an assumed switch without chassis.
pub fn above(tree: &SwitchTree) -> Vec<Join> {
    let mut joins = tree.joins.clone();
    let is_below = |name: &str| joins.iter().any(|join| join.below.iter().any(|below| below == name));
    let all = tree.leaves.iter().map(|leaf| &leaf.name).chain(joins.iter().map(|join| &join.name));
    let tops: Vec<String> = all.filter(|name| !is_below(name)).cloned().collect();
    if tops.len() > 1 {
        let mut names = NameRegistry::default();
        tree.leaves
            .iter()
            .map(|leaf| &leaf.name)
            .chain(joins.iter().map(|join| &join.name))
            .for_each(|name| drop(names.unlike(name)));
        joins.push(Join { name: names.unlike("core"), chassis: None, below: tops });
    }
    joins
}
