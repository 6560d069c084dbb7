//! Finds the switch of each host: from LLDP on the hosts, from the switches, or by measuring.

mod ask;
mod picture;
mod show;
mod snmp;

pub use picture::svg;
pub use show::{json, text};

use crate::ProgressReporter;
use crate::net::{Hosts, measure};
use homing_model::{Failure, NodeSet};
use homing_network::tree::{SwitchTree, inferred, moved, tree};
use homing_network::{PortFinding, differing, joined, sides};
use homing_os::folder::RecordFile;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

/// The result of a search.
#[derive(Default)]
pub struct TopologyReport {
    /// Hosts on their switches.
    pub tree: SwitchTree,
    /// Hosts without an answer, each with the reason.
    pub silent: Vec<(String, String)>,
    /// Switches that did not answer, each with the reason.
    pub deaf: BTreeMap<IpAddr, String>,
    /// Settings of switch ports that do not fit those of their hosts.
    pub ports: Vec<PortFinding>,
    /// Differences from the tree of the last search.
    pub moved: Vec<String>,
}

/// How hosts and switches are queried.
pub struct TopologyQuery<'a> {
    /// Whether lldpd is queried with `sudo`.
    pub sudo: bool,
    /// A file with the SNMP community, if switches are queried too.
    pub community: Option<&'a Path>,
    /// Addresses of switches, beside those that lldpd reports.
    pub switches: &'a [IpAddr],
}

impl TopologyReport {
    /// Reads the neighbours that hosts report, and the ones that switches report over SNMP.
    pub fn from_neighbours(hosts: &Hosts, way: &TopologyQuery) -> Result<TopologyReport, Failure> {
        let (heard, silent) = ask::query_neighbours(hosts, way.sudo);
        let ports = differing(&hosts.known, &heard);
        let found = TopologyReport { tree: tree(&heard), ports, silent, ..TopologyReport::default() };
        let Some(community) = way.community else { return Ok(found) };
        let (switches, deaf) = snmp::query_switches(community, way.switches, &heard)?;
        Ok(TopologyReport { tree: joined(found.tree, &switches, &ask::hardware(hosts)), deaf, ..found })
    }

    /// Infers the tree from the links that hosts share.
    pub fn measured(hosts: &Hosts, seed: u64, reporter: ProgressReporter) -> Result<TopologyReport, Failure> {
        // Three rounds may miss a link that few pairs cross at once. If all pairs are measured, some round fills it.
        let groups = sides(&measure(hosts, true, seed, reporter)?);
        let named = |at: &usize| (hosts.known[*at].name.clone(), hosts.known[*at].interface.clone());
        let mut tree = inferred(&groups.iter().map(|group| group.iter().map(named).collect()).collect::<Vec<_>>());
        let grouped = |at: &usize| groups.iter().flatten().any(|host| host == at);
        tree.alone = (0..hosts.known.len()).filter(|at| !grouped(at)).map(|at| named(&at).0).collect();
        Ok(TopologyReport { tree, ..TopologyReport::default() })
    }

    /// Records the differences from the tree `before`.
    pub fn compared(&mut self, before: &SwitchTree) {
        self.moved = moved(before, &self.tree);
    }

    /// Returns the hosts whose switch is not known.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        self.tree.alone.iter().chain(self.silent.iter().map(|(host, _)| host)).map(String::as_str)
    }

    /// Returns 0 if the place of each host is known and has not changed.
    pub fn status(&self) -> i32 {
        i32::from(self.missing().next().is_some() || !self.moved.is_empty())
    }
}

fn file() -> RecordFile {
    RecordFile::of("topology.json")
}

/// Returns the trees of the last searches, by node set.
pub fn known() -> Result<BTreeMap<String, SwitchTree>, Failure> {
    file().load()
}

/// Saves the tree of these hosts, and returns their previous one.
pub fn keep(names: &[String], tree: &SwitchTree) -> Result<Option<SwitchTree>, Failure> {
    let mut all = known()?;
    let before = all.insert(names.iter().cloned().collect::<NodeSet>().to_string(), tree.clone());
    file().save(&all).map(|()| before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_switch_or_one_that_moved_is_not_well() {
        let mut found = TopologyReport::default();
        assert_eq!(found.status(), 0);
        found.silent.push(("n2".into(), "no route".into()));
        found.tree.alone.push("n1".into());
        assert_eq!((found.status(), found.missing().collect::<Vec<_>>()), (1, vec!["n1", "n2"]));
        let moved = TopologyReport { moved: vec!["n3 is on s2".into()], ..TopologyReport::default() };
        assert_eq!(moved.status(), 1);
    }
}
