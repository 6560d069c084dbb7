//! The links between hosts, from the cluster files and the file of `homing topology --json` that they name.

use super::Cluster;
use super::file::text_of;
use super::switches::add;
use homing_model::Failure;
use homing_model::links::{ClusterLinks, Switch};
use homing_network::tree::SwitchTree;
use std::collections::HashMap;
use std::path::Path;

impl Cluster {
    /// Returns the links of the cluster: `known` switches, else those of the named file. Settings in the cluster
    /// files are added, the user's with priority over the administrator's.
    pub fn links(&self, known: Vec<Switch>) -> Result<ClusterLinks, Failure> {
        let file = [&self.own, &self.machine].into_iter().find_map(|settings| settings.topology.as_deref());
        let mut switches = match file.filter(|_| known.is_empty()) {
            Some(file) => of_file(file)?,
            None => known,
        };
        for settings in [&self.machine, &self.own] {
            add(&mut switches, &settings.switch, &|text| self.set(text, None))?;
        }
        let links = ClusterLinks::new(switches).map_err(|e| {
            Failure::usage(format!("the switches of the cluster file are not a tree: {e}")).hint("[switch.NAME]")
        })?;
        Ok(links.with_rates(self.rates()))
    }

    /// Returns the rates of hosts' own links, bytes per second: the administrator's have priority over the user's.
    fn rates(&self) -> HashMap<String, u64> {
        let said = [&self.own, &self.machine].into_iter().flat_map(|settings| &settings.host);
        said.filter_map(|(name, host)| Some((name.clone(), host.link?.0))).collect()
    }
}

fn of_file(file: &Path) -> Result<Vec<Switch>, Failure> {
    let wrong = |e: String| {
        let text = format!("the cluster file's topology = {:?} cannot be read: {e}", file.display());
        Failure::usage(text).hint("homing topology --json > FILE")
    };
    let text = text_of(file).map_err(|e| wrong(e.to_string()))?;
    let tree: SwitchTree = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    Ok(tree.switches())
}

#[cfg(test)]
mod tests {
    use super::super::file::ClusterFile;
    use super::*;

    fn cluster(own: &str) -> Cluster {
        Cluster::of(toml::from_str(own).unwrap(), ClusterFile::default())
    }

    #[test]
    fn switches_are_those_of_the_file_with_the_rates_that_were_written_by_hand() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("topology.json");
        let told = r#"{"leaves": [{"name": "s1", "chassis": null, "source": "lldp", "hosts":
            [{"host": "n1", "interface": null, "port": null}]}], "above": null, "alone": [], "exit": 0}"#;
        std::fs::write(&file, told).unwrap();
        let text = format!(
            "topology = {file:?}\n[groups]\nfar = \"n[2-3]\"\n[switch.s1]\nuplink = \"1G\"\n[switch.s2]\nhosts = \"@far\"\n"
        );
        let links = cluster(&text).links(Vec::new()).unwrap();
        let of = |host: &str| links.leaf(host).map(|at| (links.name(at), links.uplink(at)));
        assert_eq!(of("n1"), Some(("s1", Some(125_000_000))));
        assert_eq!(of("n3"), Some(("s2", None)));
        // If Slurm has reported its switches, the file does not count.
        let slurms = vec![Switch { name: "s1".into(), hosts: vec!["n9".into()], ..Switch::default() }];
        let links = cluster(&text).links(slurms).unwrap();
        assert_eq!((links.leaf("n1"), links.leaf("n9").and_then(|at| links.uplink(at))), (None, Some(125_000_000)));
        std::fs::write(&file, "{").unwrap();
        let failure = cluster(&text).links(Vec::new()).unwrap_err();
        assert!(failure.message.contains("topology.json") && failure.message.contains("EOF"), "{}", failure.message);
        let plain = cluster("[host.n1]\nlink = \"200mbit\"\n").links(Vec::new()).unwrap();
        assert_eq!((plain.is_empty(), plain.rate("n1", None)), (true, Some(25_000_000)));
    }
}
