//! Settings of a job from the cluster file: the hosts where it may run, and the network that it uses.

use crate::Cluster;
use homing_model::{Failure, RawText};
use homing_queue::{Machine, network};
use std::collections::BTreeSet;
use std::net::IpAddr;

impl Cluster {
    /// Returns the hosts of LSF's `-m`: names, groups with or without their sign, node sets. The error is LSF's.
    pub fn hosts_meant(&self, words: &[String], machines: &[Machine]) -> Result<Vec<String>, String> {
        let known = |name: &str| machines.iter().any(|m| m.name == name);
        let mut found: Vec<String> = Vec::new();
        for word in words {
            if word == "all" || word == "others" {
                found.extend(machines.iter().map(|m| m.name.clone()));
            } else if known(word) {
                found.push(word.clone());
            } else {
                let set = |text: &str| {
                    let set = self.hosts(Some(text)).ok()?;
                    (!set.is_empty() && set.iter().all(|h| known(h))).then_some(set)
                };
                let group = format!("@{}", word.trim_start_matches('@'));
                let set = set(word).or_else(|| set(&group));
                found.extend(set.ok_or_else(|| format!("{word}: Bad host name, host group name or cluster name"))?);
            }
        }
        found.dedup();
        Ok(found)
    }

    /// Returns the variables of a job that is to use the network of this name on its hosts. If the hosts are not
    /// known yet, all hosts with an address in the network count.
    pub fn network_of(&self, name: &str, hosts: &[&str]) -> Result<Vec<(RawText, RawText)>, Failure> {
        let refused = |why: String| Failure::usage(format!("--net {name}: {why}"));
        let all = self.hosts_with_addresses();
        let of = |host: &str| self.addresses_of(host);
        let known: BTreeSet<&str> = all.iter().filter_map(|h| of(h)).flatten().map(|(net, _)| net.as_str()).collect();
        if !known.contains(name) {
            let known = if known.is_empty() { "none".into() } else { Vec::from_iter(known).join(", ") };
            return Err(refused(format!(
                "no host of the cluster file has an address in this network; known networks: {known}"
            ))
            .hint(format!("[host.NAME] addresses = {{ {name} = \"10.2.0.1\" }}")));
        }
        let on = |host: &str| of(host).and_then(|nets| nets.get(name)).copied();
        if let Some(host) = hosts.iter().find(|host| on(host).is_none()) {
            return Err(refused(format!("{host} is a host of the job and has no address in this network"))
                .hint(format!("[host.{host}] addresses = {{ {name} = \"10.2.0.1\" }}")));
        }
        let hosts = if hosts.is_empty() { all.iter().map(|host| host.as_str()).collect() } else { hosts.to_vec() };
        let inside: Vec<IpAddr> = hosts.iter().filter_map(|host| on(host)).collect();
        let subnet = network::subnet(&inside)
            .ok_or_else(|| refused("its addresses are of IPv4 and IPv6; MPI accepts only one of the two".into()))?;
        let mut others = hosts.iter().filter_map(|host| of(host)).flatten().filter(|(net, _)| *net != name);
        match others.find(|(_, address)| network::has(&subnet, **address)) {
            Some((net, address)) => Err(refused(format!(
                "its subnet {subnet} also contains {address} of {net}: MPI cannot distinguish the two networks"
            ))),
            None => Ok(network::variables(name, &subnet)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(own: &str) -> Cluster {
        Cluster::of(toml::from_str(own).unwrap(), Default::default())
    }

    #[test]
    fn a_word_is_a_host_a_group_or_a_node_set_of_hosts_that_there_are() {
        let machine = |name: &str| {
            let (name, state) = (name.to_string(), String::new());
            Machine { name, slots: None, open: true, state, closed: None }
        };
        let machines = ["n1", "n2", "n3"].map(machine);
        let cluster = cluster("[groups]\nfast = \"n[2-3]\"\nold = \"x1\"\n");
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
            cluster.hosts_meant(&words, &machines).map(|hosts| hosts.join(" "))
        };
        assert_eq!(of(&["n3", "fast"]).as_deref(), Ok("n3 n2 n3"));
        assert_eq!(of(&["n[1-2]"]), of(&["n1", "n2"]));
        assert_eq!((of(&["@fast"]), of(&["all"])), (Ok("n2 n3".into()), Ok("n1 n2 n3".into())));
        for bad in ["old", "n[3-4]", "x"] {
            assert_eq!(of(&[bad]), Err(format!("{bad}: Bad host name, host group name or cluster name")));
        }
    }

    #[test]
    fn a_network_is_one_that_each_host_of_the_job_has_and_no_other_lies_in() {
        let of = |b: &str, hosts: &[&str]| {
            let own = format!("[host.a]\naddresses = {{ ib = \"10.2.0.1\", eth = \"10.9.0.1\" }}\n[host.b]\n{b}");
            let said = cluster(&own).network_of("ib", hosts);
            said.map(|said| said[1].1.display()).map_err(|failure| failure.message)
        };
        let ib = "addresses = { ib = \"10.2.0.6\" }";
        assert_eq!(of(ib, &[]).as_deref(), Ok("10.2.0.0/29"));
        assert_eq!(of(ib, &["a"]).as_deref(), Ok("10.2.0.1/32"));
        assert!(of("", &["a", "b"]).unwrap_err().contains("b is a host of the job and has no address"));
        assert!(of("addresses = { ib = \"fd00::1\" }", &[]).unwrap_err().contains("IPv4 and IPv6"));
        assert!(of("addresses = { ib = \"10.8.0.1\" }", &[]).unwrap_err().contains("10.9.0.1 of eth: "));
        assert!(cluster("").network_of("ib", &[]).unwrap_err().message.contains("known networks: none"));
    }
}
