//! Prints the cluster file as a dynamic inventory of Ansible.

use crate::cluster::Cluster;
use homing_model::Failure;
use homing_model::nodeset::NodeGroups;
use homing_setup::ClusterSite;
use serde_json::{Map, Value, json};

/// Returns the inventory of these hosts, with the groups that have any of them.
pub fn inventory(cluster: &Cluster, hosts: &[String]) -> Result<String, Failure> {
    let names = cluster.list(None).map_err(Failure::usage)?;
    let mut groups = Vec::new();
    for name in names.into_iter().filter(|name| !["all", "_meta", "ungrouped"].contains(&name.as_str())) {
        let members = cluster.hosts(Some(&format!("@{name}")))?;
        groups.push((name, members.into_iter().filter(|host| hosts.contains(host)).collect::<Vec<_>>()));
    }
    let slots = |host: &str| cluster.slots_of(host);
    Ok(object(&cluster.site()?, hosts, &groups, slots).to_string() + "\n")
}

fn object(
    site: &ClusterSite,
    hosts: &[String],
    groups: &[(String, Vec<String>)],
    slots: impl Fn(&str) -> Option<u32>,
) -> Value {
    let vars = |host: &String| {
        let mut vars = Map::new();
        if let Some((_, address)) = site.networks(host).next() {
            vars.insert("ansible_host".into(), json!(address));
            vars.insert("homing_addresses".into(), json!(site.addresses.get(host)));
        }
        vars.extend(slots(host).map(|slots| ("homing_slots".to_string(), json!(slots))));
        (host.clone(), Value::Object(vars))
    };
    let hostvars: Map<String, Value> = hosts.iter().map(vars).collect();
    let mut all = json!({ "_meta": { "hostvars": hostvars }, "all": { "hosts": hosts } });
    for (name, members) in groups.iter().filter(|(_, members)| !members.is_empty()) {
        all[name] = json!({ "hosts": members });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_groups_and_addresses_are_told_as_ansible_reads_them() {
        let of = [("manage", "10.1.0.1"), ("storage", "10.2.0.1")];
        let of = of.map(|(network, a)| (network.to_string(), a.parse().unwrap())).into();
        let site = ClusterSite { addresses: [("n1".to_string(), of)].into(), ..ClusterSite::default() };
        let hosts = ["n1", "n2"].map(String::from);
        let groups = [("io".to_string(), vec!["n1".to_string()]), ("far".to_string(), vec![])];
        let told = object(&site, &hosts, &groups, |host| (host == "n2").then_some(4));
        let expected = json!({
            "_meta": { "hostvars": {
                "n1": { "ansible_host": "10.1.0.1", "homing_addresses": { "manage": "10.1.0.1", "storage": "10.2.0.1" } },
                "n2": { "homing_slots": 4 },
            } },
            "all": { "hosts": ["n1", "n2"] },
            "io": { "hosts": ["n1"] },
        });
        assert_eq!(told, expected);
    }
}
