//! Which hosts a user means: node sets, groups, the cluster file.

use crate::failure::Failure;
use homing_model::NodeSet;
use homing_model::nodeset::Groups;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// `cluster.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterFile {
    /// The hosts, as a node set.
    hosts: Option<String>,
    /// Named node sets, for `@name`.
    #[serde(default)]
    groups: BTreeMap<String, String>,
    /// What differs on single hosts.
    #[serde(default)]
    host: BTreeMap<String, HostEntry>,
}

/// `[host.NAME]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostEntry {
    /// Tasks at once.
    slots: Option<u32>,
}

/// The first cluster file that exists: the option, $HOMING_CLUSTER,
/// ./cluster.toml, ~/.config/homing/cluster.toml, /etc/homing/cluster.toml.
pub fn cluster_file(option: Option<&Path>) -> Result<ClusterFile, Failure> {
    let named = option.map(PathBuf::from).or_else(|| std::env::var_os("HOMING_CLUSTER").map(PathBuf::from));
    let usual = || {
        let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let config = config.or_else(|| std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".config")));
        let places = [Some("cluster.toml".into()), config.map(|c| c.join("homing/cluster.toml"))];
        places.into_iter().flatten().chain([PathBuf::from("/etc/homing/cluster.toml")]).find(|p| p.exists())
    };
    let Some(path) = named.or_else(usual) else { return Ok(ClusterFile::default()) };
    let text = std::fs::read_to_string(&path)
        .map_err(|e| Failure::usage(format!("cannot read the cluster file {}: {e}", path.display())))?;
    toml::from_str(&text).map_err(|e| Failure::usage(format!("{}: {}", path.display(), e.to_string().trim())))
}

struct Known<'a>(&'a ClusterFile);

impl Groups for Known<'_> {
    fn group(&self, _: Option<&str>, name: &str) -> Result<Option<String>, String> {
        Ok(self.0.groups.get(name).cloned().or_else(|| clustershell_group(name)))
    }

    fn all(&self, _: Option<&str>) -> Result<Option<String>, String> {
        Ok(self.0.hosts.clone())
    }

    fn list(&self, _: Option<&str>) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }
}

/// ClusterShell's local group file, `name: node set`, so that admins need not write it twice.
fn clustershell_group(name: &str) -> Option<String> {
    let files = ["/etc/clustershell/groups.d/local.cfg", "/etc/clustershell/groups"];
    let text = files.iter().find_map(|f| std::fs::read_to_string(f).ok())?;
    let rows = text.lines().map(|l| l.split('#').next().unwrap_or("")).filter_map(|l| l.split_once(':'));
    let mut fits = rows.filter(|(group, _)| group.trim() == name);
    fits.next().map(|(_, nodes)| nodes.trim().to_string())
}

/// True when a cluster file names hosts.
pub fn is_configured(cluster: Option<&Path>) -> bool {
    cluster_file(cluster).is_ok_and(|file| file.hosts.is_some())
}

/// The hosts of `--hosts`, or of the cluster file.
pub fn hosts_from(option: Option<&str>, cluster: Option<&Path>) -> Result<Vec<String>, Failure> {
    let file = cluster_file(cluster)?;
    let text = option.map(String::from).or_else(|| file.hosts.clone()).unwrap_or_default();
    let set = NodeSet::parse_with(&text, &Known(&file))
        .map_err(|e| Failure::usage(format!("{text:?} is no node set: {e}")).hint("n[1-4,7], @group, a,b"))?;
    if let Some(odd) = set.iter().find(|n| n.starts_with('-')) {
        return Err(Failure::usage(format!("{odd:?} cannot be a host name")));
    }
    Ok(set.iter().map(String::from).collect())
}

/// Slots that the cluster file gives to a host.
pub fn slots_of(name: &str, cluster: Option<&Path>) -> Option<u32> {
    cluster_file(cluster).ok()?.host.get(name)?.slots
}
