//! Finds the groups that contain hosts.

use crate::Cluster;
use homing_model::nodeset::NodeGroups;
use homing_model::{Failure, NodeSet};

impl Cluster {
    /// Returns group names, without and with their prefix; sorted if they are of hosts.
    pub fn groups_of(&self, source: Option<&str>, set: &NodeSet) -> Result<Vec<(String, String)>, Failure> {
        let mut names = match self.reverse(source, set).map_err(Failure::usage)? {
            Some(names) => names,
            None => self.list(source).map_err(Failure::usage)?,
        };
        if !set.is_empty() {
            names.sort();
            names.dedup();
        }
        let prefix = source.map_or(String::new(), |s| format!("{s}:"));
        Ok(names.into_iter().map(|group| (group.clone(), format!("@{prefix}{group}"))).collect())
    }

    /// Returns the groups that the source itself reports for each host, if it can. This takes one query for each host
    /// instead of one for every group.
    fn reverse(&self, source: Option<&str>, set: &NodeSet) -> Result<Option<Vec<String>>, String> {
        let Some((name, found)) = self.shell()?.source(source)? else { return Ok(None) };
        let mut all = Vec::new();
        for node in set.iter() {
            match found.reverse(name, node)? {
                Some(groups) => all.extend(groups),
                None => return Ok(None),
            }
        }
        Ok((!set.is_empty()).then_some(all))
    }
}
