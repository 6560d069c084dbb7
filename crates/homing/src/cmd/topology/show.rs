//! The tree as text, and as JSON.

use super::Found;
use homing_network::files::above;
use homing_network::tree::{Leaf, Place, Source};
use serde_json::json;
use std::fmt::Write;

/// For people.
pub fn text(found: &Found) -> String {
    let mut text = String::new();
    let above = above(&found.tree);
    let indent = if above.is_some() { "  " } else { "" };
    if let Some((name, _)) = above {
        let _ = writeln!(text, "{name} (assumed: hosts hear nothing of what joins their switches)");
    }
    for leaf in &found.tree.leaves {
        let _ = writeln!(text, "{indent}{}", switch(leaf));
        let wide = leaf.hosts.iter().map(|place| place.host.len()).max().unwrap_or(0);
        leaf.hosts.iter().for_each(|place| text += &format!("{indent}  {:<wide$}{}\n", place.host, port(place)));
    }
    found.tree.alone.iter().for_each(|host| text += &format!("{host}: no switch is heard there\n"));
    found.silent.iter().for_each(|(host, why)| text += &format!("{host}: not known: {why}\n"));
    found.narrow.iter().chain(&found.moved).for_each(|line| text += &format!("{line}\n"));
    text
}

fn switch(leaf: &Leaf) -> String {
    let how = match leaf.source {
        Source::Lldp => return format!("{}  {}", leaf.name, leaf.chassis.as_deref().unwrap_or("")),
        Source::Heard => "its hosts hear each other, and no switch",
        Source::Inferred => "inferred by measuring",
    };
    format!("{} ({how})", leaf.name)
}

fn port(place: &Place) -> String {
    let interface = place.interface.as_deref().map_or(String::new(), |interface| format!("  {interface}"));
    place.port.as_deref().map_or(interface.clone(), |port| format!("{interface} on port {port}"))
}

/// For programs.
pub fn json(found: &Found, status: i32) -> String {
    let silent: Vec<_> = found.silent.iter().map(|(host, why)| json!({ "host": host, "why": why })).collect();
    let told = json!({
        "leaves": found.tree.leaves,
        "above": above(&found.tree).map(|(name, _)| name),
        "alone": found.tree.alone,
        "unknown": silent,
        "narrow": found.narrow,
        "moved": found.moved,
        "exit": status,
    });
    told.to_string() + "\n"
}
