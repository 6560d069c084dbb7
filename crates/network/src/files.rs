//! The tree as other programs read it.

use crate::tree::{Leaf, Names, Tree};
use homing_model::NodeSet;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::Ipv4Addr;

/// Slurm's topology.conf. Hosts that are on no switch are left out, and Slurm would lose them: who writes it says so.
pub fn slurm_conf(tree: &Tree) -> String {
    let leaf = |leaf: &Leaf| format!("SwitchName={} Nodes={}\n", leaf.name, nodes(leaf));
    let above = above(tree).map(|(name, below)| format!("SwitchName={name} Switches={below}\n"));
    tree.leaves.iter().map(leaf).chain(above).collect()
}

/// Slurm's topology.yaml (25.05 and newer).
pub fn slurm_yaml(tree: &Tree) -> String {
    let mut text = "- topology: tree\n  cluster_default: true\n  tree:\n    switches:\n".to_string();
    for leaf in &tree.leaves {
        let _ = writeln!(text, "      - switch: {}\n        nodes: {}", leaf.name, nodes(leaf));
    }
    if let Some((name, below)) = above(tree) {
        let _ = writeln!(text, "      - switch: {name}\n        children: {below}");
    }
    text
}

/// MooseFS's mfstopology.cfg: the address of each host, and the switch as the last part of a path.
pub fn moosefs(tree: &Tree, addresses: &BTreeMap<String, Ipv4Addr>) -> String {
    let above = above(tree).map_or(String::new(), |(name, _)| format!("{name}|"));
    let mut text = String::new();
    for leaf in &tree.leaves {
        for (place, address) in leaf.hosts.iter().filter_map(|place| Some((place, addresses.get(&place.host)?))) {
            let _ = writeln!(text, "{address} {above}{} # {}", leaf.name, place.host);
        }
    }
    text
}

fn nodes(leaf: &Leaf) -> String {
    leaf.hosts.iter().map(|place| place.host.clone()).collect::<NodeSet>().to_string()
}

/// Hosts hear their own switch alone. Of what is above nothing is known but that it joins them.
pub fn above(tree: &Tree) -> Option<(String, String)> {
    let mut names = Names::default();
    let below: Vec<String> = tree.leaves.iter().map(|leaf| names.unlike(&leaf.name)).collect();
    (below.len() > 1).then(|| (names.unlike("core"), below.join(",")))
}
