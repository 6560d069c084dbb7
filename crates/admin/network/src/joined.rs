//! Builds the tree above the switches of hosts, from the neighbours that switches report.

use crate::snmp::SwitchReport;
use crate::tree::{HostAttachment, Join, Leaf, NameRegistry, SwitchEvidence, SwitchTree};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Adds the reports of switches to a tree: hosts whose address is behind a port, and switches that join the leaves.
///
/// `addresses`: host, interface and hardware address.
pub fn joined(
    mut tree: SwitchTree,
    switches: &[SwitchReport],
    addresses: &[(String, Option<String>, String)],
) -> SwitchTree {
    for (host, interface, address) in
        addresses.iter().filter(|(host, ..)| tree.alone.contains(host)).cloned().collect::<Vec<_>>()
    {
        let others = addresses.iter().map(|(.., other)| other.as_str()).filter(|other| *other != address);
        if let Some((switch, port)) = behind(switches, &address, &others.collect::<Vec<_>>()) {
            tree.alone.retain(|alone| *alone != host);
            let place = HostAttachment { host, interface, port: Some(port) };
            match tree.leaves.iter_mut().find(|leaf| leaf.chassis.as_deref() == Some(&switch.chassis)) {
                Some(leaf) => leaf.hosts.push(place),
                None => {
                    let name = names(&tree).unlike(switch.name.as_deref().unwrap_or(""));
                    let chassis = Some(switch.chassis.clone());
                    tree.leaves.push(Leaf { name, chassis, source: SwitchEvidence::Behind, hosts: vec![place] });
                }
            }
        }
    }
    tree.joins = joins(&tree, switches);
    tree
}

fn names(tree: &SwitchTree) -> NameRegistry {
    let mut names = NameRegistry::default();
    tree.leaves.iter().for_each(|leaf| drop(names.unlike(&leaf.name)));
    names
}

/// Returns the switch that has an address on a port which leads to no other switch, and to none of the other hosts.
/// If several hosts are behind one port, a switch is in between that did not answer. Of several switches, it is the
/// one with the fewest addresses on that port.
fn behind<'s>(switches: &'s [SwitchReport], address: &str, others: &[&str]) -> Option<(&'s SwitchReport, String)> {
    let of = |switch: &'s SwitchReport| {
        let at = |address: &str| switch.behind.get(&address.to_lowercase());
        let port = at(address)?;
        let leads_on = switch.links.iter().any(|link| link.bridge && link.port == *port);
        let is_shared = others.iter().any(|other| at(other) == Some(port));
        let many = switch.behind.values().filter(|other| *other == port).count();
        (!leads_on && !is_shared).then(|| (many, switch, port.clone()))
    };
    let best = switches.iter().filter_map(of).min_by_key(|(many, ..)| *many);
    best.map(|(_, switch, port)| (switch, port))
}

/// Returns the joining switches from the root downwards. The root is the switch without hosts that is nearest to the
/// farthest leaf. In Slurm's trees, hosts are on leaves alone: a switch with hosts joins no others, and the switches
/// attached to it go below its parent.
fn joins(tree: &SwitchTree, switches: &[SwitchReport]) -> Vec<Join> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut called: BTreeMap<&str, &str> = BTreeMap::new();
    for switch in switches {
        called.insert(&switch.chassis, switch.name.as_deref().unwrap_or(""));
        for link in switch.links.iter().filter(|link| link.bridge) {
            called.entry(&link.chassis).or_insert(link.name.as_deref().unwrap_or(""));
            next.entry(&switch.chassis).or_default().insert(&link.chassis);
            next.entry(&link.chassis).or_default().insert(&switch.chassis);
        }
    }
    let leaf = |chassis: &str| tree.leaves.iter().find(|leaf| leaf.chassis.as_deref() == Some(chassis));
    let inner = next.keys().copied().filter(|chassis| leaf(chassis).is_none());
    let far = |chassis: &str| {
        let steps = steps(chassis, &next);
        let far = steps.iter().filter(|(other, _)| leaf(other).is_some()).map(|(_, steps)| *steps).max();
        (far.unwrap_or(usize::MAX), std::cmp::Reverse(next[chassis].len()))
    };
    let Some(root) = inner.min_by_key(|chassis| far(chassis)) else { return Vec::new() };
    let mut given = names(tree);
    let mut own: BTreeMap<&str, String> = BTreeMap::new();
    own.insert(root, given.unlike(called[root]));
    let mut all: Vec<Join> = vec![Join { name: own[root].clone(), chassis: Some(root.into()), below: Vec::new() }];
    let (mut seen, mut queue) = (BTreeSet::from([root]), VecDeque::from([(root, 0)]));
    while let Some((at, join)) = queue.pop_front() {
        for other in next[at].iter().filter(|other| seen.insert(**other)).copied().collect::<Vec<_>>() {
            match leaf(other) {
                Some(leaf) => {
                    all[join].below.push(leaf.name.clone());
                    queue.push_back((other, join));
                }
                None => {
                    let name = given.unlike(called[other]);
                    all[join].below.push(name.clone());
                    all.push(Join { name, chassis: Some(other.into()), below: Vec::new() });
                    queue.push_back((other, all.len() - 1));
                }
            }
        }
    }
    pruned(all)
}

/// Returns the distance of each switch, in links.
fn steps<'a>(from: &'a str, next: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeMap<&'a str, usize> {
    let (mut steps, mut queue) = (BTreeMap::from([(from, 0)]), VecDeque::from([from]));
    while let Some(at) = queue.pop_front() {
        let far = steps[at] + 1;
        for other in next.get(at).into_iter().flatten() {
            if !steps.contains_key(other) {
                steps.insert(other, far);
                queue.push_back(other);
            }
        }
    }
    steps
}

/// Removes switches that no host is below; the top comes last.
fn pruned(mut all: Vec<Join>) -> Vec<Join> {
    while let Some(at) = all.iter().position(|join| join.below.is_empty()) {
        let gone = all.remove(at).name;
        all.iter_mut().for_each(|join| join.below.retain(|below| *below != gone));
    }
    all.reverse();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snmp::SwitchNeighbour;

    fn switch(name: &str, next: &[&str]) -> SwitchReport {
        let link = |other: &&str| SwitchNeighbour {
            port: format!("to-{other}"),
            chassis: format!("c-{other}"),
            name: Some(other.to_string()),
            bridge: true,
            management: None,
        };
        SwitchReport {
            chassis: format!("c-{name}"),
            name: Some(name.into()),
            links: next.iter().map(link).collect(),
            ..SwitchReport::default()
        }
    }

    fn leaf(name: &str, hosts: &[&str]) -> Leaf {
        let place = |host: &&str| HostAttachment { host: host.to_string(), interface: None, port: None };
        Leaf {
            name: name.into(),
            chassis: Some(format!("c-{name}")),
            source: SwitchEvidence::Lldp,
            hosts: hosts.iter().map(place).collect(),
        }
    }

    fn describe_joins(tree: &SwitchTree) -> Vec<String> {
        tree.joins.iter().map(|join| format!("{}: {}", join.name, join.below.join(","))).collect()
    }

    #[test]
    fn what_joins_the_leaves_is_what_they_hear() {
        let tree = SwitchTree {
            leaves: vec![leaf("s1", &["n1"]), leaf("s2", &["n2"]), leaf("s3", &["n3"])],
            ..SwitchTree::default()
        };
        let all = [
            switch("s1", &["a1"]),
            switch("s2", &["a1"]),
            switch("s3", &["a2"]),
            switch("a1", &["core"]),
            switch("core", &["a2", "spare"]),
        ];
        assert_eq!(describe_joins(&joined(tree.clone(), &all, &[])), ["a2: s3", "a1: s1,s2", "core: a1,a2"]);
        // Two switches with only each other as neighbours are joined by no third one.
        assert_eq!(describe_joins(&joined(tree, &[switch("s1", &["s2"])], &[])), [""; 0]);
    }

    #[test]
    fn a_host_that_hears_nobody_is_where_its_address_is() {
        let mut s1 = switch("s1", &["core"]);
        s1.behind =
            [("02:00:00:00:00:0a".to_string(), "p3".to_string()), ("02:00:00:00:00:0b".into(), "to-core".into())]
                .into();
        // Two hosts are behind one port: another switch is in between.
        let mut s2 = switch("s2", &[]);
        s2.behind = ["0c", "0d"].map(|last| (format!("02:00:00:00:00:{last}"), "p1".to_string())).into();
        let mut core = switch("core", &["s1"]);
        core.behind = [("02:00:00:00:00:0a".to_string(), "to-s1".to_string())].into();
        let tree = SwitchTree { alone: ["n1", "n2", "n3", "n4"].map(String::from).into(), ..SwitchTree::default() };
        let address = |host: &str, last: &str| (host.to_string(), None, format!("02:00:00:00:00:{last}"));
        let tree = joined(
            tree,
            &[core, s1, s2],
            &[address("n1", "0A"), address("n2", "0b"), address("n3", "0c"), address("n4", "0d")],
        );
        assert_eq!(
            (tree.alone, &tree.leaves[0].hosts[0].port),
            (["n2", "n3", "n4"].map(String::from).into(), &Some("p3".to_string()))
        );
        assert_eq!((tree.leaves[0].name.as_str(), tree.leaves[0].source), ("s1", SwitchEvidence::Behind));
    }
}
