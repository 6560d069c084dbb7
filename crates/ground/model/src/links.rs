//! Which host is on which switch, and the rates of the links above the switches. Switches form a tree, or several
//! trees whose tops are joined in an unknown way. "Unknown" is a value.

use crate::NodeSet;
use std::collections::HashMap;
use std::fmt::{self, Display};

/// A switch, in the order of [`ClusterLinks::new`].
pub type SwitchIx = usize;

/// A switch as it is declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switch {
    /// Its name; no other has it.
    pub name: String,
    /// Hosts that are on it.
    pub hosts: Vec<String>,
    /// Rate of its link to the switch above, bytes per second.
    pub uplink: Option<u64>,
    /// The switch above.
    pub above: Option<String>,
}

/// Why the switches form no tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinksError {
    /// The switch that is wrong.
    pub switch: String,
    /// The reason.
    pub why: String,
}

impl Display for LinksError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "switch {}: {}", self.switch, self.why)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SwitchNode {
    name: String,
    uplink: Option<u64>,
    above: Option<SwitchIx>,
    /// Switches from here to the top, this one included.
    depth: usize,
}

/// All that is known of the links of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterLinks {
    nodes: Vec<SwitchNode>,
    leaves: HashMap<String, SwitchIx>,
    /// Rates of hosts' own links, bytes per second.
    rates: HashMap<String, u64>,
}

/// The path of bytes from one host to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Path {
    /// The switch of one of the hosts is unknown.
    #[default]
    Unknown,
    /// Both hosts are on this switch.
    Leaf(String),
    /// Over the links above these switches.
    Across(Vec<String>),
}

impl Display for Path {
    /// Formats the path to follow "fetching takes 3 s"; empty if it is unknown.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Path::Unknown => Ok(()),
            Path::Leaf(switch) => write!(f, " on the same switch {switch}"),
            Path::Across(switches) => write!(f, " across the uplinks of {}", switches.join(", ")),
        }
    }
}

impl ClusterLinks {
    /// Builds the tree of these switches.
    ///
    /// # Errors
    /// Two switches have one name, a host is on two of them, a switch above does not exist, or switches form a
    /// circle.
    pub fn new(switches: Vec<Switch>) -> Result<ClusterLinks, LinksError> {
        let wrong = |switch: &Switch, why: String| LinksError { switch: switch.name.clone(), why };
        let mut known = HashMap::new();
        let mut leaves: HashMap<String, SwitchIx> = HashMap::new();
        for (ix, switch) in switches.iter().enumerate() {
            if known.insert(switch.name.as_str(), ix).is_some() {
                return Err(wrong(switch, "another switch has the same name".into()));
            }
            for host in &switch.hosts {
                if let Some(other) = leaves.insert(host.clone(), ix).filter(|other| *other != ix) {
                    let other = &switches[other].name;
                    return Err(wrong(switch, format!("host {host} is on {other} already; a host is on one switch")));
                }
            }
        }
        let mut nodes = Vec::with_capacity(switches.len());
        for switch in &switches {
            let above = switch.above.as_ref().map(|name| {
                let below = match switch.hosts.as_slice() {
                    [] => String::new(),
                    hosts => format!(", where {} are below", hosts.iter().cloned().collect::<NodeSet>()),
                };
                let none = || wrong(switch, format!("there is no switch {name:?} above it{below}"));
                known.get(name.as_str()).copied().ok_or_else(none)
            });
            nodes.push(SwitchNode {
                name: switch.name.clone(),
                uplink: switch.uplink,
                above: above.transpose()?,
                depth: 0,
            });
        }
        for ix in 0..nodes.len() {
            let depth = std::iter::successors(Some(ix), |ix| nodes[*ix].above).take(nodes.len() + 1).count();
            if depth > nodes.len() {
                return Err(wrong(&switches[ix], "the switches above it form a loop".into()));
            }
            nodes[ix].depth = depth;
        }
        Ok(ClusterLinks { nodes, leaves, rates: HashMap::new() })
    }

    /// Adds the declared rates of hosts' own links, bytes per second.
    pub fn with_rates(self, rates: HashMap<String, u64>) -> ClusterLinks {
        ClusterLinks { rates, ..self }
    }

    /// Returns the rate of a host's own link, bytes per second. The declared rate comes first, by the host's full or
    /// short name, then the rate of its interface. A virtual machine's interface reports no rate or a wrong one.
    pub fn rate(&self, host: &str, of_interface: Option<u64>) -> Option<u64> {
        by_name(&self.rates, host).or(of_interface)
    }

    /// Whether no switch is known.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the number of switches.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the switch of a host, which is looked up by its full, then its short name.
    pub fn leaf(&self, host: &str) -> Option<SwitchIx> {
        by_name(&self.leaves, host)
    }

    /// Returns the name of a switch.
    pub fn name(&self, switch: SwitchIx) -> &str {
        &self.nodes[switch].name
    }

    /// Returns the rate of the link above a switch, bytes per second.
    pub fn uplink(&self, switch: SwitchIx) -> Option<u64> {
        self.nodes[switch].uplink
    }

    /// Returns the switches whose uplinks a path between hosts of these two crosses, from below. There are none
    /// within one switch.
    pub fn crossed(&self, from: SwitchIx, to: SwitchIx) -> impl Iterator<Item = SwitchIx> + '_ {
        let depth = |at: Option<SwitchIx>| at.map_or(0, |at| self.nodes[at].depth);
        let (mut from, mut to) = (Some(from), Some(to));
        std::iter::from_fn(move || {
            if from == to {
                return None;
            }
            let deeper = if depth(from) >= depth(to) { &mut from } else { &mut to };
            let crossed = *deeper;
            *deeper = crossed.and_then(|at| self.nodes[at].above);
            crossed
        })
    }

    /// Returns the path between hosts of these two switches.
    pub fn path(&self, from: Option<SwitchIx>, to: Option<SwitchIx>) -> Path {
        match (from, to) {
            (Some(from), Some(to)) if from == to => Path::Leaf(self.name(to).into()),
            (Some(from), Some(to)) => Path::Across(self.crossed(from, to).map(|at| self.name(at).into()).collect()),
            _ => Path::Unknown,
        }
    }
}

fn by_name<T: Copy>(all: &HashMap<String, T>, host: &str) -> Option<T> {
    let short = || all.get(crate::hostname::short(host));
    all.get(host).or_else(short).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(name: &str, hosts: &[&str], uplink: Option<u64>, above: &str) -> Switch {
        let above = Some(above.to_string()).filter(|name| !name.is_empty());
        Switch { name: name.into(), hosts: hosts.iter().map(|h| h.to_string()).collect(), uplink, above }
    }

    #[test]
    fn the_way_goes_up_to_the_switch_that_both_are_below() {
        let links = ClusterLinks::new(vec![
            switch("a", &["n1", "n2"], Some(10), "left"),
            switch("b", &["n3"], None, "left"),
            switch("c", &["n4"], Some(30), ""),
            switch("left", &[], Some(5), ""),
        ])
        .unwrap();
        let way = |x: &str, y: &str| links.path(links.leaf(x), links.leaf(y));
        let across = |names: &[&str]| Path::Across(names.iter().map(|n| n.to_string()).collect());
        assert_eq!(way("n1", "n2.example.org"), Path::Leaf("a".into()));
        assert_eq!(way("n1", "n3"), across(&["a", "b"]));
        assert_eq!(way("n1", "n4"), across(&["a", "left", "c"]));
        assert_eq!(way("n4", "n1"), across(&["a", "c", "left"]));
        assert_eq!(way("n1", "n9"), Path::Unknown);
        assert_eq!(links.uplink(0), Some(10));
        let rated = links.clone().with_rates(HashMap::from([("n1".into(), 7)]));
        assert_eq!(
            (rated.rate("n1.example.org", Some(9)), rated.rate("n2", Some(9)), rated.rate("n2", None)),
            (Some(7), Some(9), None)
        );
        assert_eq!(way("n4", "n3").to_string(), " across the uplinks of b, c, left");
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let why = |switches| ClusterLinks::new(switches).unwrap_err().to_string();
        assert_eq!(
            why(vec![switch("a", &["n1"], None, ""), switch("b", &["n1"], None, "")]),
            "switch b: host n1 is on a already; a host is on one switch"
        );
        assert!(why(vec![switch("a", &[], None, ""), switch("a", &[], None, "")]).contains("same name"));
        assert_eq!(
            why(vec![switch("a", &["n1", "n2"], None, "x")]),
            "switch a: there is no switch \"x\" above it, where n[1-2] are below"
        );
        assert!(why(vec![switch("a", &[], None, "b"), switch("b", &[], None, "a")]).contains("form a loop"));
    }
}
