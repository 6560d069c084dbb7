//! A GlusterFS volume's own definition, as the client uses it.
//!
//! Every mount shows it at `.meta/graphs/active/volfile`, also to ordinary users, and it needs no glusterd on this
//! host. `gluster volume info` would need root and a server.

use std::collections::HashMap;

/// A brick, in the terms of the volume's definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Brick {
    /// The server's name in the definition.
    pub host: String,
    /// Directory there.
    pub dir: String,
    /// Whether it holds names only.
    pub arbiter: bool,
    /// Its client's name in the graph, e.g. `data-client-0`.
    pub client: String,
    /// A volfile with its client alone, for a connection to this brick only.
    pub volfile: String,
}

/// How the bricks of a subvolume share a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// One brick.
    Alone,
    /// Each brick has a copy.
    Replicate,
    /// Each brick has a fragment; `redundancy` bricks may be lost.
    Disperse { redundancy: usize },
}

/// A set of bricks that holds whole files (or whole shards).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BrickSet {
    /// E.g. `data-replicate-0`.
    pub name: String,
    pub sharing: Sharing,
    pub bricks: Vec<Brick>,
}

/// The definition of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Definition {
    pub groups: Vec<BrickSet>,
    /// Shard size in bytes, when files are cut into shards.
    pub shard: Option<u64>,
}

#[derive(Default)]
struct VolfileNode<'a> {
    name: &'a str,
    kind: &'a str,
    options: HashMap<&'a str, &'a str>,
    children: Vec<&'a str>,
}

/// Reads a client volfile. Returns `None` if it is none.
pub(crate) fn parse(text: &str) -> Option<Definition> {
    let (order, nodes) = nodes(text);
    let mut definition = Definition::default();
    let mut taken: Vec<&str> = Vec::new();
    for name in &order {
        let node = &nodes[name];
        let sharing = match node.kind {
            "cluster/replicate" => Sharing::Replicate,
            "cluster/disperse" => Sharing::Disperse { redundancy: number(node, "redundancy")? as usize },
            "features/shard" => {
                definition.shard = Some(number(node, "shard-block-size").unwrap_or(64 << 20));
                continue;
            }
            _ => continue,
        };
        let arbiters = number(node, "arbiter-count").unwrap_or(0) as usize;
        let count = node.children.len();
        let bricks = node.children.iter().enumerate().filter_map(|(i, child)| {
            let arbiter = sharing == Sharing::Replicate && i + arbiters >= count;
            brick(nodes.get(child)?, arbiter)
        });
        definition.groups.push(BrickSet { name: name.to_string(), sharing: sharing.clone(), bricks: bricks.collect() });
        taken.extend(&node.children);
    }
    for name in order.iter().filter(|n| !taken.contains(n)) {
        if let Some(brick) = brick(&nodes[name], false) {
            definition.groups.push(BrickSet { name: name.to_string(), sharing: Sharing::Alone, bricks: vec![brick] });
        }
    }
    (!definition.groups.is_empty()).then_some(definition)
}

fn nodes(text: &str) -> (Vec<&str>, HashMap<&str, VolfileNode<'_>>) {
    let (mut order, mut nodes, mut current) = (Vec::new(), HashMap::<&str, VolfileNode>::new(), "");
    for line in text.lines().map(str::trim) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "volume" => {
                current = rest.trim();
                order.push(current);
                nodes.insert(current, VolfileNode { name: current, ..VolfileNode::default() });
            }
            "end-volume" => current = "",
            _ => {
                let Some(node) = nodes.get_mut(current) else { continue };
                match word {
                    "type" => node.kind = rest.trim(),
                    "option" => drop(rest.split_once(' ').map(|(k, v)| node.options.insert(k, v.trim()))),
                    "subvolumes" => node.children = rest.split_ascii_whitespace().collect(),
                    _ => {}
                }
            }
        }
    }
    (order, nodes)
}

fn brick(node: &VolfileNode, arbiter: bool) -> Option<Brick> {
    if node.kind != "protocol/client" {
        return None;
    }
    let dir = node.options.get("remote-subvolume")?.to_string();
    // The snapshot daemon and similar programs are clients too, but serve no directory.
    dir.starts_with('/').then_some(())?;
    let host = node.options.get("remote-host")?.to_string();
    Some(Brick { host, dir, arbiter, client: node.name.into(), volfile: alone(node) })
}

fn alone(node: &VolfileNode) -> String {
    // A brick's server identifies a client by this option, and would confuse the mount with homing.
    let mut options: Vec<_> = node.options.iter().filter(|(key, _)| **key != "process-uuid").collect();
    options.sort_unstable();
    let options: String = options.iter().map(|(key, value)| format!("    option {key} {value}\n")).collect();
    format!("volume {}\n    type {}\n{options}end-volume\n", node.name, node.kind)
}

fn number(node: &VolfileNode, option: &str) -> Option<u64> {
    let text = node.options.get(option)?;
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 1,
        "KB" | "K" => 1 << 10,
        "MB" | "M" => 1 << 20,
        "GB" | "G" => 1 << 30,
        "TB" | "T" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok().map(|n| n * unit)
}
