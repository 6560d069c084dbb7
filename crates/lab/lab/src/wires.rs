//! Computes the bridges and links of a lab: switches, and further networks. Pure, as the plan is.
//!
//! Hosts are on one bridge, or in equal parts on several. A core bridge joins these, by one link each, and has the
//! machine's address. Each further network is one more bridge.

use crate::plan::{HostPlan, LabPlan};
use crate::spec::{FIRST_NETWORK, NetworkSpec};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// A bridge of the lab.
#[derive(Clone, Debug, PartialEq)]
pub struct Bridge {
    /// Its interface.
    pub name: String,
    /// Its name as a switch.
    pub switch: String,
    /// Interfaces on it.
    pub ports: Vec<String>,
}

/// The link between a switch with hosts and the one that joins them.
#[derive(Clone, Debug, PartialEq)]
pub struct Uplink {
    /// Its end at the core.
    pub core_end: String,
    /// Its end at the switch with hosts.
    pub leaf_end: String,
    /// The bridge of that switch.
    pub leaf: String,
}

/// A host's link in a further network.
#[derive(Clone, Debug, PartialEq)]
pub struct FurtherLink {
    /// The network.
    pub network: NetworkSpec,
    /// The name of the host in it.
    pub host_name: String,
    /// The address there.
    pub address: Ipv4Addr,
    /// The interface in the host.
    pub interface: String,
    /// The machine's end.
    pub veth: String,
    /// The bridge of the network.
    pub bridge: String,
}

impl LabPlan {
    /// Returns the name of the bridge of a switch with hosts, counted from 1.
    fn leaf(&self, at: u32) -> String {
        format!("{}s{at}", self.bridge())
    }

    /// Returns the switch of a host, counted from 1: the first hosts are on the first switch.
    fn switch_number(&self, host: &HostPlan) -> Option<u32> {
        Some((host.index - 1) * self.spec.switches?.count / self.spec.hosts + 1)
    }

    /// Returns the bridge that a host is on.
    pub fn bridge_of(&self, host: &HostPlan) -> String {
        self.switch_number(host).map_or_else(|| self.bridge(), |at| self.leaf(at))
    }

    /// Returns all bridges, that with the machine's address first.
    pub fn bridges(&self) -> Vec<Bridge> {
        let (uplinks, hosts) = (self.uplinks(), self.hosts());
        let on = |bridge: &String| -> Vec<String> {
            hosts.iter().filter(|host| self.bridge_of(host) == *bridge).map(HostPlan::veth).collect()
        };
        let made = |name: String, switch: String, ports: Vec<String>| Bridge { name, switch, ports };
        let first = self.bridge();
        let ports = uplinks.iter().map(|uplink| uplink.core_end.clone()).chain(on(&first)).collect();
        let mut all = vec![made(first, "core".into(), ports)];
        for (at, uplink) in uplinks.iter().enumerate() {
            let ports = on(&uplink.leaf).into_iter().chain([uplink.leaf_end.clone()]).collect();
            all.push(made(uplink.leaf.clone(), format!("s{}", at + 1), ports));
        }
        for network in &self.spec.networks {
            let of = hosts.iter().flat_map(HostPlan::further_links).filter(|link| link.network == *network);
            let links: Vec<FurtherLink> = of.collect();
            let Some(bridge) = links.first().map(|link| link.bridge.clone()) else { continue };
            all.push(made(bridge, network.name.clone(), links.into_iter().map(|link| link.veth).collect()));
        }
        all
    }

    /// Returns the links between the switches.
    pub fn uplinks(&self) -> Vec<Uplink> {
        let end = |kind: char, at: u32| format!("vb-{}-{kind}{at}", self.bridge());
        let uplink = |at| Uplink { core_end: end('u', at), leaf_end: end('d', at), leaf: self.leaf(at) };
        (1..=self.spec.switches.map_or(0, |switches| switches.count)).map(uplink).collect()
    }

    /// Returns the lines of `cluster.toml` about addresses. Hosts with one network need none.
    pub(crate) fn addresses_text(&self) -> String {
        let line = |host: &HostPlan| {
            let all: Vec<String> =
                host.addresses().iter().map(|(network, address)| format!("{network} = \"{address}\"")).collect();
            format!("\n[host.{}]\naddresses = {{ {} }}\n", host.name(), all.join(", "))
        };
        self.hosts().iter().filter(|host| !host.addresses().is_empty()).map(line).collect()
    }

    /// Returns the lines of `cluster.toml` about switches. Without a rate of their links there is nothing to add to
    /// the announcements.
    pub(crate) fn switches_text(&self) -> String {
        let Some(rate) = self.spec.switches.and_then(|switches| switches.uplink_bits_per_s) else {
            return String::new();
        };
        let switch = |at: u32| {
            let on = |host: &&HostPlan| self.switch_number(host) == Some(at);
            let hosts: Vec<String> = self.hosts().iter().filter(on).map(HostPlan::name).collect();
            let (hosts, kbit) = (hosts.join(","), rate / 1000);
            format!("\n[switch.s{at}]\nhosts = \"{hosts}\"\nuplink = \"{kbit}kbit\"\nabove = \"core\"\n")
        };
        let count = self.uplinks().len() as u32;
        (1..=count).map(switch).chain(["\n[switch.core]\n".into()]).collect()
    }
}

impl HostPlan {
    /// Returns the name of the switch that the host is on, if the lab has switches.
    pub fn switch(&self) -> Option<String> {
        self.lab.switch_number(self).map(|at| format!("s{at}"))
    }

    /// Returns the host's links in further networks.
    pub fn further_links(&self) -> Vec<FurtherLink> {
        let (number, index) = (self.lab.number, self.index);
        let link = |(at, network): (usize, &NetworkSpec)| FurtherLink {
            network: network.clone(),
            host_name: format!("{}-{}", self.name(), network.name),
            address: Ipv4Addr::new(10, 78 + at as u8, number, index as u8),
            interface: network.name.clone(),
            veth: format!("{}x{}", self.veth(), at + 1),
            bridge: format!("{}x{}", self.lab.bridge(), at + 1),
        };
        self.lab.spec.networks.iter().enumerate().map(link).collect()
    }

    /// Returns the host's address in each network; none if it is in one network alone.
    pub fn addresses(&self) -> BTreeMap<String, IpAddr> {
        let further: BTreeMap<String, IpAddr> =
            self.further_links().into_iter().map(|link| (link.network.name, link.address.into())).collect();
        match further.is_empty() {
            true => further,
            false => further.into_iter().chain([(FIRST_NETWORK.to_string(), self.address().into())]).collect(),
        }
    }
}

impl FurtherLink {
    /// Returns the `.network` file for the interface.
    pub fn network_text(&self) -> String {
        let (interface, address) = (&self.interface, self.address);
        format!(
            "[Match]\nName={interface}\n\n[Network]\nAddress={address}/24\nDHCP=no\nLinkLocalAddressing=no\nIPv6AcceptRA=no\nLLDP=no\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{LabSpec, MAX_HOSTS, SwitchesSpec};

    fn plan(hosts: u32, switches: u32) -> LabPlan {
        let networks = ["storage:1gbit", "ib"].map(|text| text.parse().unwrap()).to_vec();
        let switches = (switches > 0).then_some(SwitchesSpec { count: switches, uplink_bits_per_s: Some(500_000_000) });
        LabPlan { spec: LabSpec { name: "t".into(), hosts, networks, switches, ..LabSpec::default() }, number: 254 }
    }

    #[test]
    fn hosts_are_in_equal_parts_on_the_switches() {
        let of = |hosts, switches| {
            let plan = plan(hosts, switches);
            plan.hosts().iter().map(|host| host.switch().unwrap_or_default()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!([of(4, 2), of(5, 2), of(3, 3), of(2, 0)], ["s1 s1 s2 s2", "s1 s1 s1 s2 s2", "s1 s2 s3", " "]);
    }

    #[test]
    fn each_port_is_on_one_bridge() {
        let all = plan(4, 2).bridges();
        let text: Vec<String> = all.iter().map(|b| format!("{} {}: {}", b.name, b.switch, b.ports.join(" "))).collect();
        assert_eq!(
            text,
            [
                "hl254 core: vb-hl254-u1 vb-hl254-u2",
                "hl254s1 s1: vb-hl254-n1 vb-hl254-n2 vb-hl254-d1",
                "hl254s2 s2: vb-hl254-n3 vb-hl254-n4 vb-hl254-d2",
                "hl254x1 storage: vb-hl254-n1x1 vb-hl254-n2x1 vb-hl254-n3x1 vb-hl254-n4x1",
                "hl254x2 ib: vb-hl254-n1x2 vb-hl254-n2x2 vb-hl254-n3x2 vb-hl254-n4x2",
            ]
        );
        assert_eq!(plan(2, 0).bridges()[0].ports, ["vb-hl254-n1", "vb-hl254-n2"]);
        let widest = HostPlan { lab: plan(MAX_HOSTS, 0), index: MAX_HOSTS };
        assert!(widest.further_links().iter().all(|link| link.veth.len() <= 15));
    }

    #[test]
    fn a_host_has_a_name_and_an_address_in_each_network() {
        let plan = plan(4, 2);
        let (host, text) = (plan.host("n3").unwrap(), plan.etc_hosts_text());
        assert!(text.contains("10.77.254.3 n3\n10.78.254.3 n3-storage\n10.79.254.3 n3-ib\n"), "{text}");
        assert!(host.further_links()[0].network_text().contains("Name=storage\n\n[Network]\nAddress=10.78.254.3/24\n"));
        let words = host.nspawn_arguments();
        for word in ["--network-bridge=hl254s2", "--network-veth-extra=vb-hl254-n3x1:storage"] {
            assert!(words.iter().any(|have| have == word), "{words:?}");
        }
        assert_eq!(words.last().map(String::as_str), Some("--boot"));
        let keys = ["t A", "t B", "t C", "t D"];
        let known = plan.known_hosts_text(keys.into_iter());
        assert!(known.contains("n3,10.77.254.3,n3-storage,10.78.254.3,n3-ib,10.79.254.3 t C\n"), "{known}");
        let file = plan.cluster_text();
        let addresses =
            "[host.n3]\naddresses = { ib = \"10.79.254.3\", manage = \"10.77.254.3\", storage = \"10.78.254.3\" }\n";
        let switch = "[switch.s2]\nhosts = \"n3,n4\"\nuplink = \"500000kbit\"\nabove = \"core\"\n\n[switch.core]\n";
        assert!(file.contains(addresses) && file.contains(switch), "{file}");
    }
}
