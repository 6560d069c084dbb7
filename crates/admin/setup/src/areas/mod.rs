//! The areas of a set-up, one file each, in the order of their dependencies. Each file has two
//! functions. The first adds the facts that the area needs to the one query of all hosts. The second, `wanted`, derives
//! the wanted state of a host from the answers. Some files have `untaken`, for settings that are written and not in
//! force, and `notes` for the user.

mod clock;
mod disks;
pub(crate) mod homes;
mod limits;
mod mounts;
mod mtu;
pub(crate) mod names;
mod packages;
mod person;
pub(crate) mod slurm;
mod ssh;
mod ssh_in_force;
mod sysctl;
#[cfg(test)]
pub(crate) mod tests;
mod users;
pub(crate) mod volumes;

use crate::site::{AllSeen, ClusterSite};
use homing_steps::{FactQuery, HostRequirement};

/// The things that are wanted of a host, or the objections to them.
pub(crate) type AreaResult = Result<Vec<HostRequirement>, Vec<String>>;

/// A part of a set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Area {
    Names,
    Users,
    Ssh,
    Packages,
    Clock,
    Sysctl,
    Limits,
    Mtu,
    Disks,
    Volumes,
    Homes,
    Mounts,
    Slurm,
}

impl Area {
    /// All areas, in order.
    pub const ALL: [Area; 13] = [
        Area::Names,
        Area::Users,
        Area::Ssh,
        Area::Packages,
        Area::Clock,
        Area::Sysctl,
        Area::Limits,
        Area::Mtu,
        Area::Disks,
        Area::Volumes,
        Area::Homes,
        Area::Mounts,
        Area::Slurm,
    ];

    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Area::Names => "names",
            Area::Users => "users",
            Area::Ssh => "ssh",
            Area::Packages => "packages",
            Area::Clock => "clock",
            Area::Sysctl => "sysctl",
            Area::Limits => "limits",
            Area::Mtu => "mtu",
            Area::Disks => "disks",
            Area::Volumes => "volumes",
            Area::Homes => "homes",
            Area::Mounts => "mounts",
            Area::Slurm => "slurm",
        }
    }

    /// Returns the area with this name.
    pub fn named(name: &str) -> Option<Area> {
        Area::ALL.into_iter().find(|area| area.name() == name)
    }

    /// Whether the cluster file needs it. Names belong to every cluster.
    pub fn is_wanted(self, site: &ClusterSite) -> bool {
        let up = &site.up;
        match self {
            Area::Names => true,
            Area::Users => !(up.user.is_empty() && up.group.is_empty()),
            Area::Ssh => up.ssh.is_some(),
            Area::Packages => !(up.packages.is_empty() && up.volume.is_empty()),
            Area::Clock => up.clock.is_some(),
            Area::Sysctl => !up.sysctl.is_empty(),
            Area::Limits => !up.limits.is_empty(),
            Area::Mtu => !up.mtu.is_empty(),
            Area::Disks => !up.disk.is_empty(),
            Area::Volumes => !up.volume.is_empty(),
            Area::Homes => up.homes.is_some(),
            Area::Mounts => !up.mount.is_empty(),
            Area::Slurm => up.slurm.is_some(),
        }
    }

    /// Returns the area of `homing check` that checks the same.
    pub fn check(self) -> Option<&'static str> {
        match self {
            Area::Names => Some("names"),
            Area::Users => Some("users"),
            Area::Ssh => Some("ssh"),
            Area::Clock => Some("clocks"),
            Area::Disks | Area::Mounts | Area::Homes => Some("mounts"),
            Area::Volumes => Some("volumes"),
            Area::Mtu => Some("network"),
            Area::Packages | Area::Sysctl | Area::Limits | Area::Slurm => None,
        }
    }

    pub(crate) fn request_facts(self, site: &ClusterSite, question: &mut FactQuery) {
        match self {
            Area::Names => names::request_facts(site, question),
            Area::Users => users::request_facts(site, question),
            Area::Ssh => ssh::request_facts(site, question),
            Area::Packages => packages::request_facts(site, question),
            Area::Clock => clock::request_facts(site, question),
            Area::Sysctl => sysctl::request_facts(site, question),
            Area::Limits => limits::request_facts(site, question),
            Area::Mtu => mtu::request_facts(site, question),
            Area::Disks => disks::request_facts(site, question),
            Area::Volumes => volumes::request_facts(site, question),
            Area::Homes => homes::request_facts(site, question),
            Area::Mounts => mounts::request_facts(site, question),
            Area::Slurm => slurm::request_facts(site, question),
        }
    }

    pub(crate) fn wanted(self, site: &ClusterSite, host: &str, seen: &AllSeen) -> AreaResult {
        match self {
            Area::Names => names::wanted(site, host, seen),
            Area::Users => users::wanted(site, host, seen),
            Area::Ssh => ssh::wanted(site, host, seen),
            Area::Packages => Ok(packages::wanted(site, host, seen)),
            Area::Clock => clock::wanted(site, host, seen),
            Area::Sysctl => Ok(sysctl::wanted(site)),
            Area::Limits => Ok(limits::wanted(site)),
            Area::Mtu => mtu::wanted(site, host, seen),
            Area::Disks => disks::wanted(site, host, seen),
            // The steps of `homing volume` make a volume.
            Area::Volumes => Ok(Vec::new()),
            Area::Homes => homes::wanted(site, host, seen),
            Area::Mounts => mounts::wanted(site, host, seen),
            Area::Slurm => slurm::wanted(site, host, seen),
        }
    }

    /// Returns the settings that are written on a host and not in force there, each with the system's own message.
    pub(crate) fn untaken(self, site: &ClusterSite, host: &str, seen: &AllSeen) -> Vec<String> {
        match self {
            Area::Users => users::untaken(site, host, seen),
            Area::Ssh => ssh_in_force::untaken(site, host, seen),
            Area::Sysctl => sysctl::untaken(site, host, seen),
            Area::Limits => limits::untaken(site, host, seen),
            // The steps of these areas compare mounts, settings, packages and units themselves.
            Area::Names | Area::Packages | Area::Clock | Area::Mtu | Area::Disks => Vec::new(),
            Area::Volumes | Area::Homes | Area::Mounts | Area::Slurm => Vec::new(),
        }
    }

    pub(crate) fn notes(self, site: &ClusterSite, seen: &AllSeen) -> Vec<String> {
        match self {
            Area::Users => users::notes(site, seen),
            Area::Ssh => ssh::notes(site, seen),
            Area::Slurm => slurm::notes(site, seen),
            Area::Volumes => volumes::notes(site, seen),
            Area::Homes => homes::notes(site, seen),
            _ => Vec::new(),
        }
    }
}

/// Returns the lines of all hosts, in their order. A host that is not known now keeps its present lines.
pub(crate) fn lines_of_all(
    site: &ClusterSite,
    there: &str,
    fresh: impl Fn(&str) -> Vec<String>,
    is_of: impl Fn(&str, &str) -> bool,
) -> String {
    let of = |host: &String| {
        let lines = fresh(host);
        let kept = || there.lines().filter(|line| is_of(host, line)).map(String::from).collect();
        if lines.is_empty() { kept() } else { lines }
    };
    site.hosts.iter().flat_map(of).map(|line: String| line + "\n").collect()
}
