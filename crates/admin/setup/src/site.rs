//! Settings of the cluster file about the set-up of hosts.

use crate::disks::{self, DiskSection};
use crate::texts::texts;
use crate::volumes::{Homes, SiteVolume, VolumeSection};
use homing_steps::Observed;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

/// `[up]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Up {
    /// The network whose addresses belong to the bare names of hosts.
    pub network: Option<String>,
    /// Whether hosts are given their names of the cluster file.
    #[serde(default)]
    pub hostname: bool,
    /// `[up.group.NAME]`.
    #[serde(default)]
    pub group: BTreeMap<String, GroupSection>,
    /// `[up.user.NAME]`.
    #[serde(default)]
    pub user: BTreeMap<String, UserSection>,
    /// The way in which users log in from host to host without a password.
    pub ssh: Option<SshWay>,
    /// Packages for all hosts.
    #[serde(default)]
    pub packages: Vec<String>,
    /// The host that serves the time.
    pub clock: Option<String>,
    /// Values of the kernel.
    #[serde(default, deserialize_with = "texts")]
    pub sysctl: BTreeMap<String, String>,
    /// `[up.limits]`: limits of the processes of a login, for all but root.
    #[serde(default, deserialize_with = "texts")]
    pub limits: BTreeMap<String, String>,
    /// `[up.mtu]`: bytes of the largest packet, by network.
    #[serde(default)]
    pub mtu: BTreeMap<String, u32>,
    /// `[up.disk."/POINT"]`.
    #[serde(default)]
    pub disk: BTreeMap<String, DiskSection>,
    /// `[up.volume.NAME]`.
    #[serde(default)]
    pub volume: BTreeMap<String, VolumeSection>,
    /// `[up.homes]`.
    pub homes: Option<Homes>,
    /// `[up.mount."/POINT"]`.
    #[serde(default)]
    pub mount: BTreeMap<String, MountSection>,
    /// `[up.slurm]`.
    pub slurm: Option<Slurm>,
    /// `[up.family.FAMILY]`: the names of things there.
    #[serde(default)]
    pub family: BTreeMap<String, BTreeMap<String, String>>,
}

/// `[up.group.NAME]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSection {
    /// Its number on all hosts; without it the present one, or one that is free on all hosts.
    pub gid: Option<u32>,
}

/// `[up.user.NAME]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserSection {
    /// The user's number on all hosts; without it the present one, or one that is free on all hosts.
    pub uid: Option<u32>,
    /// The user's own group (default: the group with the user's name).
    pub group: Option<String>,
    /// Further groups.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Folder of the home (default: /home/NAME).
    pub home: Option<String>,
    /// Login shell (default: /bin/bash).
    pub shell: Option<String>,
}

/// Ways to log in from host to host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SshWay {
    /// A host vouches for its users with its own key.
    HostBased,
}

/// `[up.mount."/POINT"]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountSection {
    /// The source, as in the first column of fstab: `n1:/export/home`.
    pub source: String,
    /// Type of the file system.
    #[serde(rename = "type")]
    pub fstype: String,
    /// The options, as in fstab.
    #[serde(default = "defaults")]
    pub options: String,
}

/// `[up.slurm]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slurm {
    /// The host that runs the controller (default: the first).
    pub controller: Option<String>,
    /// Slurm's name of the cluster.
    #[serde(default = "cluster")]
    pub cluster: String,
    /// The partition of all hosts.
    #[serde(default = "partition")]
    pub partition: String,
    /// Further lines of slurm.conf.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

fn cluster() -> String {
    "cluster".into()
}

fn partition() -> String {
    "main".into()
}

fn defaults() -> String {
    "defaults".into()
}

/// The cluster, from its file.
#[derive(Clone, Debug, Default)]
pub struct ClusterSite {
    /// The hosts, in order.
    pub hosts: Vec<String>,
    /// `[host.NAME] addresses`: by host, by network.
    pub addresses: BTreeMap<String, BTreeMap<String, IpAddr>>,
    /// `[up]`.
    pub up: Up,
    /// `[up.volume.NAME]`, with the names of their hosts.
    pub volumes: Vec<SiteVolume>,
}

/// The state of all hosts; a reason for each that did not answer.
pub type AllSeen = BTreeMap<String, Result<Observed, String>>;

impl ClusterSite {
    /// Returns the faults of the file itself.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = self.family_faults();
        if let Some(host) = self.up.clock.as_ref().filter(|host| !self.hosts.contains(host)) {
            faults.push(format!("[up] clock = {host:?} is not one of the hosts"));
        }
        let without = |network: &String| self.hosts.iter().find(|h| !self.networks(h).any(|(n, _)| n == network));
        if let Some((network, host)) = self.up.network.as_ref().and_then(|n| Some((n, without(n)?))) {
            faults.push(format!("[up] network = {network:?}: [host.{host}] has no address in it"));
        }
        for (user, of) in &self.up.user {
            let named = of.group.iter().chain(&of.groups);
            let unknown = named.filter(|group| !self.up.group.contains_key(*group));
            faults
                .extend(unknown.map(|g| format!("[up.user.{user}] names group {g:?}, but [up.group.{g}] is missing")));
        }
        let names = self.up.user.keys().chain(self.up.group.keys());
        faults.extend(
            names.filter(|name| !is_name(name)).map(|name| format!("{name:?} is not a valid name of a user or group")),
        );
        faults.extend(self.value_faults());
        faults.extend(self.mtu_faults());
        faults.extend(disks::faults(&self.up.disk, &self.hosts));
        faults.extend(self.up.slurm.iter().flat_map(|slurm| self.slurm_faults(slurm)));
        faults.extend(self.volumes.iter().flat_map(|volume| self.volume_faults(volume)));
        faults.extend(self.up.homes.iter().flat_map(|homes| self.homes_faults(homes)));
        faults
    }

    /// Removes all disks of a host.
    pub fn leave_disks(&mut self, host: &str) {
        disks::leave(&mut self.up.disk, host);
    }

    fn volume_faults(&self, volume: &SiteVolume) -> Vec<String> {
        let name = &volume.spec.name;
        let checked = if volume.exists { volume.spec.check_existing() } else { volume.spec.check() };
        let of_spec = checked.err().map(|why| format!("[up.volume.{name}]: {why}"));
        let strangers = volume.spec.hosts().into_iter().filter(|host| !self.hosts.contains(host));
        of_spec
            .into_iter()
            .chain(strangers.map(|h| format!("[up.volume.{name}]: {h} is not one of the hosts")))
            .collect()
    }

    fn homes_faults(&self, homes: &Homes) -> Vec<String> {
        let mut faults = Vec::new();
        match self.volumes.iter().find(|volume| volume.spec.name == homes.volume) {
            None => faults.push(format!("[up.homes] volume = {0:?}: [up.volume.{0}] is missing", homes.volume)),
            Some(volume) if Path::new(&volume.spec.mount).starts_with("/home") => faults.push(format!(
                "[up.volume.{}] mount = {:?}: /home becomes a folder of this volume, so mount it elsewhere",
                homes.volume, volume.spec.mount
            )),
            Some(volume) => {
                let stranger = homes.from.as_ref().filter(|host| !volume.spec.clients.contains(host));
                faults.extend(
                    stranger.map(|h| format!("[up.homes] from = {h:?} is not a client of volume {}", homes.volume)),
                );
            }
        }
        faults
    }

    fn slurm_faults(&self, slurm: &Slurm) -> Vec<String> {
        let mut faults = Vec::new();
        if let Some(host) = slurm.controller.as_ref().filter(|host| !self.hosts.contains(host)) {
            faults.push(format!("[up.slurm] controller = {host:?} is not one of the hosts"));
        }
        let names = [&slurm.cluster, &slurm.partition].into_iter().filter(|name| !is_name(name));
        faults.extend(names.map(|name| format!("[up.slurm] {name:?} is not a valid name of a cluster or partition")));
        faults
    }

    /// Returns the host that runs Slurm's controller.
    pub fn controller(&self) -> Option<&str> {
        let named = self.up.slurm.as_ref()?.controller.as_deref();
        named.or_else(|| self.hosts.first().map(String::as_str))
    }

    /// Returns the networks of a host in the file, that of the bare name first.
    pub fn networks(&self, host: &str) -> impl Iterator<Item = (&String, &IpAddr)> {
        let of = self.addresses.get(host);
        let main = self.main_network(host);
        let first = of.into_iter().flatten().filter(move |(n, _)| Some(*n) == main);
        first.chain(of.into_iter().flatten().filter(move |(n, _)| Some(*n) != main))
    }

    fn main_network(&self, host: &str) -> Option<&String> {
        let of = self.addresses.get(host)?;
        self.up.network.as_ref().or_else(|| of.keys().find(|n| *n == "manage")).or_else(|| of.keys().next())
    }

    /// Returns a host's names with the address of each: the bare name first, then `HOST-NETWORK` for other networks.
    /// If the file has no address, it is the one at which homing reached the host. Empty if none is known.
    pub fn names(&self, host: &str, seen: &AllSeen) -> Vec<(String, String)> {
        let told: Vec<(String, String)> = self
            .networks(host)
            .enumerate()
            .map(|(i, (network, a))| (if i == 0 { host.into() } else { format!("{host}-{network}") }, a.to_string()))
            .collect();
        if !told.is_empty() {
            return told;
        }
        let reached = seen.get(host).and_then(|s| s.as_ref().ok()?.reached_at.clone());
        reached.filter(|a| !is_loopback(a)).map(|a| (host.to_string(), a)).into_iter().collect()
    }
}

pub(crate) fn is_loopback(address: &str) -> bool {
    address.parse::<IpAddr>().is_ok_and(|a| a.to_canonical().is_loopback())
}

/// Whether useradd accepts the name.
fn is_name(name: &str) -> bool {
    let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    name.len() <= 32 && name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_') && name.chars().all(rest)
}
