//! Shows the tree as text and as JSON.

use super::TopologyReport;
use homing_model::document;
use homing_network::files::above;
use homing_network::tree::{HostAttachment, Join, Leaf, SwitchEvidence};
use serde_json::json;
use std::fmt::Write;

/// Returns the tree as text for people.
pub fn text(found: &TopologyReport) -> String {
    let mut text = String::new();
    let joins = above(&found.tree);
    let is_below = |name: &str| joins.iter().any(|join| join.below.iter().any(|below| below == name));
    let leaves = found.tree.leaves.iter().map(|leaf| leaf.name.as_str());
    let tops: Vec<&str> =
        joins.iter().rev().map(|join| join.name.as_str()).chain(leaves).filter(|name| !is_below(name)).collect();
    tops.into_iter().for_each(|top| branch(top, "", &joins, found, &mut text));
    found.tree.alone.iter().for_each(|host| text += &format!("{host}: LLDP shows no switch\n"));
    found.silent.iter().for_each(|(host, why)| text += &format!("{host}: its switch is unknown: {why}\n"));
    found.deaf.iter().for_each(|(switch, why)| text += &format!("switch {switch}: no answer: {why}\n"));
    let ports = found.ports.iter().map(|port| &port.sentence);
    ports.chain(&found.moved).for_each(|line| text += &format!("{line}\n"));
    text
}

/// Adds a switch and all that is below it to `text`.
fn branch(name: &str, indent: &str, joins: &[Join], found: &TopologyReport, text: &mut String) {
    let deeper = format!("{indent}  ");
    if let Some(join) = joins.iter().find(|join| join.name == name) {
        let how = join.chassis.as_deref().unwrap_or("(assumed: LLDP does not show hosts what joins their switches)");
        let gap = if join.chassis.is_some() { "  " } else { " " };
        let _ = writeln!(text, "{indent}{name}{gap}{how}");
        join.below.iter().for_each(|below| branch(below, &deeper, joins, found, text));
    }
    if let Some(leaf) = found.tree.leaves.iter().find(|leaf| leaf.name == name) {
        let _ = writeln!(text, "{indent}{}", switch(leaf));
        let wide = leaf.hosts.iter().map(|place| place.host.len()).max().unwrap_or(0);
        leaf.hosts.iter().for_each(|place| *text += &format!("{deeper}{:<wide$}{}\n", place.host, port(place)));
    }
}

fn switch(leaf: &Leaf) -> String {
    let how = match leaf.source {
        SwitchEvidence::Lldp | SwitchEvidence::Behind => {
            return format!("{}  {}", leaf.name, leaf.chassis.as_deref().unwrap_or(""));
        }
        SwitchEvidence::Heard => "its hosts see each other by LLDP, but no switch",
        SwitchEvidence::Inferred => "inferred by measuring",
    };
    format!("{} ({how})", leaf.name)
}

fn port(place: &HostAttachment) -> String {
    let interface = place.interface.as_deref().map_or(String::new(), |interface| format!("  {interface}"));
    place.port.as_deref().map_or(interface.clone(), |port| format!("{interface} on port {port}"))
}

/// Returns the tree as JSON.
pub fn json(found: &TopologyReport, status: i32) -> String {
    let silent: Vec<_> = found.silent.iter().map(|(host, why)| json!({ "host": host, "why": why })).collect();
    let tree = json!({
        "leaves": found.tree.leaves,
        "above": above(&found.tree).last().map(|join| &join.name),
        "joins": found.tree.joins,
        "alone": found.tree.alone,
        "unknown": silent,
        "deaf": found.deaf.iter().map(|(switch, why)| json!({ "switch": switch, "why": why })).collect::<Vec<_>>(),
        "ports": found.ports,
        "moved": found.moved,
        "exit": status,
    });
    document::line(tree)
}
