//! Which hosts a user means: node sets, groups, the cluster file.

use crate::failure::Failure;
use crate::groups::ClusterShell;
use homing_model::NodeSet;
use homing_model::nodeset::Groups;
use serde::Deserialize;
use std::cell::OnceCell;
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
    /// Queues of `homing sub` and of the LSF front end.
    #[serde(default)]
    queue: BTreeMap<String, homing_queue::plan::Queue>,
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

/// All that names hosts: the cluster file first, then ClusterShell's own
/// configuration, which is read when it is asked for.
pub struct Catalogue {
    file: ClusterFile,
    shell: OnceCell<Result<ClusterShell, String>>,
}

impl Catalogue {
    /// Reads the cluster file.
    pub fn load(cluster: Option<&Path>) -> Result<Catalogue, Failure> {
        Ok(Catalogue { file: cluster_file(cluster)?, shell: OnceCell::new() })
    }

    /// ClusterShell's groups.
    pub fn shell(&self) -> Result<&ClusterShell, String> {
        let unread = |e: &String| format!("the groups of ClusterShell cannot be read: {e}");
        self.shell.get_or_init(ClusterShell::load).as_ref().map_err(unread)
    }

    /// The set that a text means; groups without a source are those of `source`.
    pub fn set(&self, text: &str, source: Option<&str>) -> Result<NodeSet, Failure> {
        let set = NodeSet::parse_in(text, source, self)
            .map_err(|e| Failure::usage(format!("{text:?} is no node set: {e}")).hint("n[1-4,7], @group, a,b"))?;
        if let Some(odd) = set.iter().find(|n| n.starts_with('-')) {
            return Err(Failure::usage(format!("{odd:?} cannot be a host name")));
        }
        Ok(set)
    }
}

impl Groups for Catalogue {
    fn group(&self, source: Option<&str>, name: &str) -> Result<Option<String>, String> {
        match self.file.groups.get(name).filter(|_| source.is_none()) {
            Some(nodes) => Ok(Some(nodes.clone())),
            None => self.shell()?.group(source, name),
        }
    }

    fn all(&self, source: Option<&str>) -> Result<Option<String>, String> {
        match self.file.hosts.as_ref().filter(|_| source.is_none()) {
            Some(hosts) => Ok(Some(hosts.clone())),
            None => self.shell()?.all(source),
        }
    }

    fn list(&self, source: Option<&str>) -> Result<Vec<String>, String> {
        let own = self.file.groups.keys().filter(|_| source.is_none()).cloned();
        let shell = self.shell()?;
        let theirs = if shell.sources().is_empty() { Vec::new() } else { shell.list(source)? };
        let mut all: Vec<String> = own.collect();
        let more: Vec<String> = theirs.into_iter().filter(|g| !all.contains(g)).collect();
        all.extend(more);
        Ok(all)
    }
}

/// True when a cluster file names hosts.
pub fn is_configured(cluster: Option<&Path>) -> bool {
    cluster_file(cluster).is_ok_and(|file| file.hosts.is_some())
}

/// The hosts of `--hosts`, or of the cluster file.
pub fn hosts_from(option: Option<&str>, cluster: Option<&Path>) -> Result<Vec<String>, Failure> {
    let catalogue = Catalogue::load(cluster)?;
    let text = option.map(String::from).or_else(|| catalogue.file.hosts.clone()).unwrap_or_default();
    Ok(catalogue.set(&text, None)?.iter().map(String::from).collect())
}

/// Slots that the cluster file gives to a host.
pub fn slots_of(name: &str, cluster: Option<&Path>) -> Option<u32> {
    cluster_file(cluster).ok()?.host.get(name)?.slots
}

/// The administrator's cluster file.
const MACHINE: &str = "/etc/homing/cluster.toml";

/// Queues and slots: what `homing sub` and the LSF front end go by. All users
/// share the slots, so the machine's own file is heeded before any user's.
pub fn queue_config(cluster: Option<&Path>) -> Result<homing_queue::plan::Config, Failure> {
    let file = cluster_file(cluster)?;
    let own = homing_queue::host_name();
    let machine = Some(Path::new(MACHINE)).filter(|p| p.exists()).map(|p| cluster_file(Some(p))).transpose()?;
    let told = |file: &ClusterFile, name: &str| file.host.get(name).and_then(|h| h.slots);
    let slots = |name: &str| machine.as_ref().and_then(|m| told(m, name)).or_else(|| told(&file, name));
    let cores = || std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let mut queues = file.queue.clone();
    if queues.is_empty() {
        queues.insert("normal".into(), homing_queue::plan::Queue::default());
    }
    let all = slots(&own).unwrap_or_else(cores).max(1);
    let named = file.host.keys().cloned().chain(hosts_from(None, cluster)?);
    Ok(homing_queue::plan::Config {
        slots: all,
        // A host of the cluster whose slots nobody has said has as many as this one.
        host_slots: named.map(|name| (name.clone(), slots(&name).unwrap_or(all))).collect(),
        queues,
    })
}
