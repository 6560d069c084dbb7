//! Finds settings of switch ports that do not fit the hosts on them.

use crate::measured::NetworkHost;
use crate::tree::HostNeighbours;
use serde::Serialize;
use std::collections::BTreeMap;

/// The kind of a misfit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Differs {
    /// The port takes smaller frames than the host sends.
    Frame,
    /// One end is half duplex, and the other full.
    Duplex,
    /// Its VLAN is not that of most others.
    Vlan,
    /// Several hosts are on it.
    Shared,
}

/// One or several ports, with their fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PortFinding {
    /// The kind of the misfit.
    pub kind: Differs,
    /// The hosts.
    pub hosts: Vec<String>,
    /// The observation.
    pub sentence: String,
}

/// Returns all misfits, by comparison with the hosts' facts about their own ends.
pub fn differing(hosts: &[NetworkHost], heard: &[HostNeighbours]) -> Vec<PortFinding> {
    let of = |heard: &HostNeighbours| {
        let host = hosts.iter().find(|host| host.name == heard.host)?;
        Some([frame(host, heard), duplex(host, heard)].into_iter().flatten().collect::<Vec<_>>())
    };
    let each = heard.iter().filter_map(of).flatten();
    each.chain(vlans(heard)).chain(shared(heard)).collect()
}

fn one(kind: Differs, host: &str, sentence: String) -> PortFinding {
    PortFinding { kind, hosts: vec![host.into()], sentence }
}

fn frame(host: &NetworkHost, heard: &HostNeighbours) -> Option<PortFinding> {
    let (mtu, frame) = (host.mtu?, heard.own().find_map(|port| port.frame)?);
    let sentence = format!("{}: its switch port takes frames of {frame} bytes, its MTU is {mtu}", host.name);
    (frame < mtu).then(|| one(Differs::Frame, &host.name, sentence))
}

fn duplex(host: &NetworkHost, heard: &HostNeighbours) -> Option<PortFinding> {
    let word = |half: bool| if half { "half" } else { "full" };
    let (own, port) = (host.half_duplex, heard.own().find_map(|port| port.half_duplex)?);
    let sentence = format!("{}: it is {} duplex, its switch port {} duplex", host.name, word(own), word(port));
    (own != port).then(|| one(Differs::Duplex, &host.name, sentence))
}

/// Returns the hosts whose VLAN is not that of most, if any two have the same.
fn vlans(heard: &[HostNeighbours]) -> Vec<PortFinding> {
    let of = |heard: &HostNeighbours| Some((heard.host.clone(), heard.own().find_map(|port| port.vlan)?));
    let mut by: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    heard.iter().filter_map(of).for_each(|(host, vlan)| by.entry(vlan).or_default().push(host));
    let Some((most, _)) = by.iter().max_by_key(|(_, hosts)| hosts.len()).map(|(vlan, hosts)| (*vlan, hosts.len()))
    else {
        return Vec::new();
    };
    let usual = by.remove(&most).map_or(0, |hosts| hosts.len());
    let told = |(vlan, hosts): (u16, Vec<String>)| {
        hosts.into_iter().map(move |host| {
            let sentence = format!("{host}: its switch port is in VLAN {vlan}, most others are in {most}");
            one(Differs::Vlan, &host, sentence)
        })
    };
    by.into_iter().filter(|(_, hosts)| hosts.len() < usual).flat_map(told).collect()
}

fn shared(heard: &[HostNeighbours]) -> Vec<PortFinding> {
    let mut by: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for heard in heard {
        if let Some(switch) = heard.switch() {
            by.entry((&switch.chassis, &switch.port)).or_default().push(&heard.host);
        }
    }
    let told = |((chassis, port), hosts): ((&str, &str), Vec<&str>)| PortFinding {
        kind: Differs::Shared,
        sentence: format!("{} share port {port} of {chassis}: another switch or a hub is in between", hosts.join(", ")),
        hosts: hosts.into_iter().map(String::from).collect(),
    };
    by.into_iter().filter(|(_, hosts)| hosts.len() > 1).map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lldp::Neighbour;

    fn host_neighbours(host: &str, port: &str, half: bool, vlan: u16) -> HostNeighbours {
        let neighbour = Neighbour {
            interface: "eth0".into(),
            chassis: "s1".into(),
            port: port.into(),
            bridge: true,
            frame: Some(1518),
            half_duplex: Some(half),
            vlan: Some(vlan),
            ..Neighbour::default()
        };
        HostNeighbours { host: host.into(), interface: Some("eth0".into()), neighbours: vec![neighbour] }
    }

    #[test]
    fn each_port_that_does_not_fit_is_told_once() {
        let host = |name: &str, mtu| NetworkHost { name: name.into(), mtu: Some(mtu), ..NetworkHost::default() };
        let hosts = [host("n1", 1500), host("n2", 9000), host("n3", 1500), host("n4", 1500)];
        let all = [
            host_neighbours("n1", "p1", false, 1),
            host_neighbours("n2", "p2", false, 1),
            host_neighbours("n3", "p3", true, 7),
            host_neighbours("n4", "p3", false, 1),
        ];
        let told: Vec<_> = differing(&hosts, &all).into_iter().map(|f| (f.kind, f.hosts.join(","))).collect();
        assert_eq!(
            told,
            [
                (Differs::Frame, "n2".to_string()),
                (Differs::Duplex, "n3".into()),
                (Differs::Vlan, "n3".into()),
                (Differs::Shared, "n3,n4".into()),
            ]
        );
        assert_eq!(differing(&hosts, &all[..1]), []);
    }
}
