//! The tree of switches, and the place of each host in it.

use crate::lldp::Neighbour;
use homing_model::links::Switch;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How homing knows that hosts share a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SwitchEvidence {
    /// The switch announces itself.
    Lldp,
    /// The hosts receive LLDP of each other: a switch is between them that does not announce itself.
    Heard,
    /// The host's address is behind a port of the switch, as the switch reports over SNMP.
    Behind,
    /// Flows within the group do not slow each other down, and flows that leave it do.
    Inferred,
}

/// The place of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostAttachment {
    /// The host.
    pub host: String,
    /// Its interface.
    pub interface: Option<String>,
    /// The port of the switch.
    pub port: Option<String>,
}

/// A switch with hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaf {
    /// A name that is valid in all formats, and that no other switch has.
    pub name: String,
    /// Its identifier, if it announces one.
    pub chassis: Option<String>,
    /// How homing knows it.
    pub source: SwitchEvidence,
    /// The hosts on it.
    pub hosts: Vec<HostAttachment>,
}

/// All known switches and hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchTree {
    /// Switches with hosts.
    pub leaves: Vec<Leaf>,
    /// Hosts that receive no announcement.
    pub alone: Vec<String>,
    /// Switches that join others, as they report over SNMP, lower ones first.
    #[serde(default)]
    pub joins: Vec<Join>,
}

/// A switch that joins others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// A name like those of leaves.
    pub name: String,
    /// Its identifier.
    pub chassis: Option<String>,
    /// The names of the switches below it.
    pub below: Vec<String>,
}

impl SwitchTree {
    /// Returns the switches as placement needs them. The capacities of links above are unknown.
    pub fn switches(&self) -> Vec<Switch> {
        let hosts = |leaf: &Leaf| leaf.hosts.iter().map(|place| place.host.clone()).collect();
        let above = |name: &str| self.joins.iter().find(|join| join.below.iter().any(|below| below == name));
        let above = |name: &str| above(name).map(|join| join.name.clone());
        let leaf = |leaf: &Leaf| Switch {
            name: leaf.name.clone(),
            hosts: hosts(leaf),
            uplink: None,
            above: above(&leaf.name),
        };
        let join = |join: &Join| Switch { name: join.name.clone(), above: above(&join.name), ..Switch::default() };
        self.leaves.iter().map(leaf).chain(self.joins.iter().map(join)).collect()
    }
}

/// The neighbours that a host receives announcements from.
#[derive(Clone, Debug, Default)]
pub struct HostNeighbours {
    /// Its name.
    pub host: String,
    /// The interface that has its address: neighbours on other interfaces count if this one has none.
    pub interface: Option<String>,
    /// All its neighbours.
    pub neighbours: Vec<Neighbour>,
}

impl HostNeighbours {
    /// Returns the neighbours on the interface that has the host's address.
    pub(crate) fn own(&self) -> impl Iterator<Item = &Neighbour> {
        self.neighbours.iter().filter(|one| self.interface.as_deref() == Some(&one.interface))
    }

    fn relevant(&self) -> Vec<&Neighbour> {
        let there: Vec<&Neighbour> = self.own().collect();
        if there.is_empty() { self.neighbours.iter().collect() } else { there }
    }

    /// Returns the switch at the other end. A network card may send announcements too, but is no switch. If several
    /// switches are neighbours of one port, there is another one between that passes frames on.
    pub(crate) fn switch(&self) -> Option<&Neighbour> {
        let bridges: Vec<&Neighbour> = self.relevant().into_iter().filter(|n| n.bridge).collect();
        let chassis: BTreeSet<&str> = bridges.iter().map(|n| n.chassis.as_str()).collect();
        bridges.first().copied().filter(|_| chassis.len() == 1)
    }
}

/// Builds the tree from the neighbours of hosts.
pub fn tree(heard: &[HostNeighbours]) -> SwitchTree {
    let mut named: BTreeMap<&str, Leaf> = BTreeMap::new();
    let mut names = NameRegistry::default();
    let mut others: Vec<&HostNeighbours> = Vec::new();
    for host in heard {
        let Some(switch) = host.switch() else {
            others.push(host);
            continue;
        };
        let leaf = named.entry(&switch.chassis).or_insert_with(|| Leaf {
            name: names.unlike(switch.name.as_deref().unwrap_or("")),
            chassis: Some(switch.chassis.clone()),
            source: SwitchEvidence::Lldp,
            hosts: Vec::new(),
        });
        leaf.hosts.push(HostAttachment {
            host: host.host.clone(),
            interface: Some(switch.interface.clone()),
            port: Some(switch.port.clone()),
        });
    }
    let mut tree = SwitchTree { leaves: named.into_values().collect(), ..SwitchTree::default() };
    tree.leaves.sort_by(|a, b| a.name.cmp(&b.name));
    for segment in segments(&others) {
        match segment[..] {
            [host] if host.neighbours.is_empty() => tree.alone.push(host.host.clone()),
            _ => tree.leaves.push(unnamed(
                names.unlike(""),
                SwitchEvidence::Heard,
                segment.iter().map(|h| (h.host.clone(), h.interface.clone())),
            )),
        }
    }
    tree
}

/// Builds the tree from groups of hosts that were found by measuring.
pub fn inferred(groups: &[Vec<(String, Option<String>)>]) -> SwitchTree {
    let mut names = NameRegistry::default();
    let leaf = |group: &Vec<_>| unnamed(names.unlike(""), SwitchEvidence::Inferred, group.iter().cloned());
    SwitchTree { leaves: groups.iter().map(leaf).collect(), ..SwitchTree::default() }
}

fn unnamed(name: String, source: SwitchEvidence, hosts: impl Iterator<Item = (String, Option<String>)>) -> Leaf {
    let place = |(host, interface)| HostAttachment { host, interface, port: None };
    Leaf { name, chassis: None, source, hosts: hosts.map(place).collect() }
}

/// Groups hosts that have the same neighbour, or are neighbours of each other.
fn segments<'a>(hosts: &[&'a HostNeighbours]) -> Vec<Vec<&'a HostNeighbours>> {
    let short = |name: &str| homing_model::hostname::short(name).to_string();
    let mut segments: Vec<(BTreeSet<String>, Vec<&HostNeighbours>)> = Vec::new();
    for host in hosts {
        let heard = host.relevant();
        let ids =
            heard.iter().map(|n| n.chassis.clone()).chain(heard.iter().filter_map(|n| n.name.as_deref().map(short)));
        let mut own: (BTreeSet<String>, Vec<&HostNeighbours>) = (ids.chain([short(&host.host)]).collect(), vec![host]);
        let (with, without): (Vec<_>, Vec<_>) = segments.into_iter().partition(|(ids, _)| !ids.is_disjoint(&own.0));
        for (ids, hosts) in with.into_iter().rev() {
            own.0.extend(ids);
            own.1.splice(0..0, hosts);
        }
        segments = without;
        segments.push(own);
    }
    segments.into_iter().map(|(_, hosts)| hosts).collect()
}

/// Names that are taken.
#[derive(Default)]
pub(crate) struct NameRegistry(BTreeSet<String>);

/// Characters of a name; Slurm allows 64, and a number may follow.
const LONGEST: usize = 58;

impl NameRegistry {
    /// Returns a new name that is valid in all formats. Two switches with the same name stay two.
    pub(crate) fn unlike(&mut self, told: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let base: String = told.trim().chars().take(LONGEST).map(plain).collect();
        let base = base.trim_start_matches(['-', '.']).to_string();
        let numbered = (1..).map(|n| match (base.is_empty(), n) {
            (true, n) => format!("sw-{n}"),
            (false, 1) => base.clone(),
            (false, n) => format!("{base}-{n}"),
        });
        let name = numbered.into_iter().find(|name| !self.0.contains(name)).unwrap_or_default();
        self.0.insert(name.clone());
        name
    }
}

/// Returns the differences: hosts that were moved, new hosts, and hosts that are gone.
pub fn moved(before: &SwitchTree, now: &SwitchTree) -> Vec<String> {
    let (before, now) = (places(before), places(now));
    let hosts: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let told = |host: &String| match (before.get(host), now.get(host)) {
        (Some(was), Some(is)) if was.0 == is.0 && was.2 == is.2 => None,
        (Some(was), Some(is)) => Some(format!("{host}: was on {}, is on {}", at(was), at(is))),
        (Some(was), None) => Some(format!("{host}: was on {}, is on no known switch", at(was))),
        (None, is) => is.map(|is| format!("{host}: is on {}, is new", at(is))),
    };
    hosts.into_iter().filter_map(told).collect()
}

/// The identifier of the switch, its name, and the port.
type SwitchPort<'a> = (&'a str, &'a str, Option<&'a str>);

fn places(tree: &SwitchTree) -> BTreeMap<String, SwitchPort<'_>> {
    let mut all = BTreeMap::new();
    for leaf in &tree.leaves {
        let id = leaf.chassis.as_deref().unwrap_or(&leaf.name);
        all.extend(leaf.hosts.iter().map(|p| (p.host.clone(), (id, leaf.name.as_str(), p.port.as_deref()))));
    }
    all
}

fn at((_, name, port): &SwitchPort) -> String {
    port.map_or(name.to_string(), |port| format!("{name} port {port}"))
}
