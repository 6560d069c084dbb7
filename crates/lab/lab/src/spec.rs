//! The specification of a lab: counts, sizes and rates, parsed and checked.

use crate::error::{LabError, Result};
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The disk behind `/scratch`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskModel {
    /// A file on the machine's own disk.
    #[default]
    Plain,
    /// One head: it serves requests one at a time, and a seek costs time. The number is the factor over a real disk.
    Hdd(u32),
}

impl FromStr for DiskModel {
    type Err = String;
    fn from_str(s: &str) -> std::result::Result<Self, String> {
        match s {
            "plain" => Ok(DiskModel::Plain),
            "hdd" => Ok(DiskModel::Hdd(1)),
            _ => match s.strip_prefix("hdd/").and_then(|times| times.parse().ok()).filter(|times| *times > 0) {
                Some(times) => Ok(DiskModel::Hdd(times)),
                None => Err(format!("unknown disk model {s:?}: use plain, hdd, or hdd/5 (five times as slow)")),
            },
        }
    }
}

/// Shape of the GlusterFS volume `data`: subvolumes times copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlusterSpec {
    /// Number of copies of each file.
    pub replica: u32,
    /// Number of sets that files are distributed over; `None`: as many as the hosts allow.
    pub sets: Option<u32>,
}

impl FromStr for GlusterSpec {
    type Err = String;
    /// Reads `2x2` (sets times copies) or `replica=2`.
    fn from_str(s: &str) -> std::result::Result<Self, String> {
        let wrong = || format!("cannot read the gluster shape {s:?}; write SETSxCOPIES as in 2x2, or replica=2");
        let number = |t: &str| t.parse::<u32>().ok().filter(|n| *n > 0).ok_or_else(wrong);
        if let Some(copies) = s.strip_prefix("replica=") {
            return Ok(GlusterSpec { replica: number(copies)?, sets: None });
        }
        let (sets, copies) = s.split_once('x').ok_or_else(wrong)?;
        Ok(GlusterSpec { replica: number(copies)?, sets: Some(number(sets)?) })
    }
}

/// MooseFS: the number of copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MooseSpec {
    /// Number of copies of each file, 1 to 9.
    pub goal: u32,
}

impl FromStr for MooseSpec {
    type Err = String;
    /// Reads `goal=2` or `2`.
    fn from_str(s: &str) -> std::result::Result<Self, String> {
        let number = s.strip_prefix("goal=").unwrap_or(s).parse::<u32>().ok().filter(|n| (1..=9).contains(n));
        let goal =
            number.ok_or_else(|| format!("cannot read the MooseFS goal {s:?}; write goal=2; goals are 1 to 9"))?;
        Ok(MooseSpec { goal })
    }
}

/// Ceph: the number of copies in its pools, and the client that mounts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CephSpec {
    /// Number of copies of each object, 1 to 9.
    pub size: u32,
    /// The last host is a guest that has no OSD and mounts it by its kernel.
    #[serde(default)]
    pub kernel: bool,
}

impl FromStr for CephSpec {
    type Err = String;
    /// Reads `size=2` or `2`, and `size=2,kernel`.
    fn from_str(s: &str) -> std::result::Result<Self, String> {
        let (size, kernel) = s.strip_suffix(",kernel").map_or((s, false), |size| (size, true));
        let number = size.strip_prefix("size=").unwrap_or(size).parse::<u32>().ok().filter(|n| (1..=9).contains(n));
        let size =
            number.ok_or_else(|| format!("cannot read the shape of Ceph {s:?}; write size=2, or size=2,kernel"))?;
        Ok(CephSpec { size, kernel })
    }
}

/// NFS from n1 to the other hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NfsSpec {
    /// Version by which clients mount: 3 or 4 (4.2).
    pub version: u8,
    /// Clients mount it by RDMA, over the link of the lab (the kernel's soft RoCE).
    #[serde(default)]
    pub rdma: bool,
}

impl FromStr for NfsSpec {
    type Err = String;
    /// Reads `vers=3`, `vers=4.2`, `3` or `4`, and each with `,rdma`.
    fn from_str(s: &str) -> std::result::Result<Self, String> {
        let (version, rdma) = s.strip_suffix(",rdma").map_or((s, false), |version| (version, true));
        let version = match version.strip_prefix("vers=").unwrap_or(version) {
            "3" => 3,
            "4" | "4.2" => 4,
            _ => return Err(format!("cannot read the shape of NFS {s:?}; write vers=3, vers=4.2, or vers=4.2,rdma")),
        };
        Ok(NfsSpec { version, rdma })
    }
}

/// A further network of all hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkSpec {
    /// Its name, and that of its interface in each host.
    pub name: String,
    /// Link rate of each host in it, bits per second; `None`: not shaped.
    #[serde(default)]
    pub link_bits_per_s: Option<u64>,
}

/// The name of the first network in a cluster file.
pub const FIRST_NETWORK: &str = "manage";

/// The highest number of further networks: each has a /16 of its own for all labs.
const MAX_NETWORKS: usize = 4;

impl FromStr for NetworkSpec {
    type Err = String;
    /// Reads `storage` or `storage:1gbit`.
    fn from_str(s: &str) -> std::result::Result<Self, String> {
        let (name, rate) = s.split_once(':').map_or((s, None), |(name, rate)| (name, Some(rate)));
        // The kernel's names of interfaces have at most 15 bytes.
        let fits = (1..=15).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && name.starts_with(|c: char| c.is_ascii_lowercase());
        // Each network is a switch, too, beside core and s1 to s9.
        let is_switch = name == "core" || name.strip_prefix('s').is_some_and(|rest| rest.parse::<u8>().is_ok());
        if !fits || is_switch || [FIRST_NETWORK, "lo", "host0"].contains(&name) {
            return Err(format!(
                "{name:?} cannot be the name of a further network: use up to 15 lower-case letters, digits and -; \
                 {FIRST_NETWORK}, core and s1 are taken"
            ));
        }
        Ok(NetworkSpec { name: name.into(), link_bits_per_s: rate.map(parse_rate).transpose()? })
    }
}

/// The system of a host: the root that its own files are laid over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostSystem {
    /// The machine's own root.
    #[default]
    This,
    /// Debian 12.
    Bookworm,
    /// Debian 13.
    Trixie,
    /// A folder with a whole system, such as an unpacked image.
    Folder(PathBuf),
}

/// The folder of the roots that homing makes.
pub(crate) const ROOTS: &str = "/var/cache/homing/roots";

impl HostSystem {
    /// Returns the folder of its root.
    pub(crate) fn root(&self) -> PathBuf {
        match self {
            HostSystem::This => "/".into(),
            HostSystem::Folder(path) => path.clone(),
            debian => Path::new(ROOTS).join(debian.to_string()),
        }
    }
}

impl FromStr for HostSystem {
    type Err = String;
    fn from_str(s: &str) -> std::result::Result<Self, String> {
        let folder = "unpack an image of it that has systemd, systemd-networkd and sshd, and name the folder";
        match s {
            "this" => Ok(HostSystem::This),
            "bookworm" => Ok(HostSystem::Bookworm),
            "trixie" => Ok(HostSystem::Trixie),
            _ if s.starts_with('/') => Ok(HostSystem::Folder(s.into())),
            "rocky" => Err(format!("homing fetches the systems of Debian alone; {folder}: --os /srv/rocky")),
            "alpine" => Err("Alpine has no systemd, which each host of a lab boots".into()),
            _ => Err(format!("unknown system {s:?}: use this, bookworm, trixie, or {folder}, as in --os /srv/rocky")),
        }
    }
}

impl Display for HostSystem {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        match self {
            HostSystem::This => f.write_str("this"),
            HostSystem::Bookworm => f.write_str("bookworm"),
            HostSystem::Trixie => f.write_str("trixie"),
            HostSystem::Folder(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Switches between the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchesSpec {
    /// Number of switches with hosts on them.
    pub count: u32,
    /// Rate of the link from each to the one that joins them, bits per second; `None`: not shaped.
    pub uplink_bits_per_s: Option<u64>,
}

/// The program that runs guests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guests {
    /// An emulated machine: runs everywhere, ten times slower than the machine.
    #[default]
    Qemu,
    /// User-mode Linux, a kernel that is a program: computes as fast as the machine. Debian's 6.1 does not start on
    /// processors with AMX.
    Uml,
}

impl FromStr for Guests {
    type Err = String;
    fn from_str(s: &str) -> std::result::Result<Self, String> {
        match s {
            "qemu" => Ok(Guests::Qemu),
            "uml" => Ok(Guests::Uml),
            _ => Err(format!("unknown kind of guest {s:?}: write qemu or uml")),
        }
    }
}

/// The specification of a lab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabSpec {
    /// Lab name.
    pub name: String,
    /// Number of hosts.
    pub hosts: u32,
    /// Link rate of each host, bits per second; `None`: not shaped.
    pub link_bits_per_s: Option<u64>,
    /// Systems of the hosts, in turn; empty: all have that of the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub systems: Vec<HostSystem>,
    /// Further networks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<NetworkSpec>,
    /// Switches that announce themselves; `None`: one bridge that does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches: Option<SwitchesSpec>,
    /// Processors of each host; `None`: no limit.
    pub cpus: Option<f64>,
    /// Size of `/scratch` in bytes.
    pub disk_bytes: u64,
    /// The disk behind `/scratch`.
    pub disk_model: DiskModel,
    /// Size in bytes of a second, empty disk of each host; `None`: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare_bytes: Option<u64>,
    /// GlusterFS volume over the hosts.
    pub gluster: Option<GlusterSpec>,
    /// MooseFS over the hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moosefs: Option<MooseSpec>,
    /// CephFS over the hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceph: Option<CephSpec>,
    /// NFS between the hosts, which are guests with kernels of their own then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nfs: Option<NfsSpec>,
    /// The program that runs those guests.
    #[serde(default)]
    pub guests: Guests,
    /// Slurm over the hosts: slurmctld on the first, slurmd on all.
    #[serde(default)]
    pub slurm: bool,
}

impl Default for LabSpec {
    fn default() -> Self {
        LabSpec {
            name: "lab".into(),
            hosts: 4,
            link_bits_per_s: None,
            systems: Vec::new(),
            networks: Vec::new(),
            switches: None,
            cpus: None,
            disk_bytes: 4 << 30,
            disk_model: DiskModel::Plain,
            spare_bytes: None,
            gluster: None,
            moosefs: None,
            ceph: None,
            nfs: None,
            guests: Guests::Qemu,
            slurm: false,
        }
    }
}

/// The least size of a host's disk with an OSD on it, bytes: BlueStore takes some 900 MB for its database alone.
const LEAST_OSD: u64 = 2 << 30;

/// The highest number of hosts in a lab: they share a /24 with the machine.
pub const MAX_HOSTS: u32 = 99;

impl LabSpec {
    /// Whether the last host is a guest, which mounts Ceph by its kernel.
    pub(crate) fn has_kernel_client(&self) -> bool {
        self.ceph.is_some_and(|ceph| ceph.kernel)
    }

    /// Whether some hosts are guests with kernels of their own.
    pub(crate) fn has_guests(&self) -> bool {
        self.nfs.is_some() || self.has_kernel_client()
    }

    /// Refuses an impossible specification before anything is made.
    pub fn check(&self) -> Result<()> {
        let refuse = |text: String| Err(LabError::Request(text));
        check_name(&self.name)?;
        if self.hosts == 0 || self.hosts > MAX_HOSTS {
            return refuse(format!("a lab has 1 to {MAX_HOSTS} hosts, not {}", self.hosts));
        }
        if self.disk_bytes < 64 << 20 {
            return refuse(format!("a disk of {} bytes is too small; 64M is the least", self.disk_bytes));
        }
        let at_data = [self.gluster.is_some(), self.moosefs.is_some(), self.ceph.is_some()];
        let volumes = at_data.iter().filter(|asked| **asked).count();
        self.check_wires()?;
        let has_services = volumes > 0 || self.slurm || self.has_guests();
        if let Some(system) = self.systems.iter().find(|system| **system != HostSystem::This && has_services) {
            return refuse(format!(
                "file systems, Slurm and guests are programs of this machine, which hosts of {system} do not have; \
                 homing up can install some there"
            ));
        }
        if self.spare_bytes.is_some_and(|bytes| bytes < 64 << 20) {
            return refuse("a spare disk of less than 64M holds no file system".into());
        }
        if self.spare_bytes.is_some() && self.has_guests() {
            return refuse("guests have no spare disk".into());
        }
        if self.cpus.is_some_and(|c| !(0.01..=4096.0).contains(&c)) {
            return refuse(format!("cannot give a host {} processors", self.cpus.unwrap_or_default()));
        }
        if self.nfs.is_some() && (volumes > 0 || self.slurm) {
            return refuse("hosts of a lab with NFS are guests without systemd; they run no other service".into());
        }
        if self.nfs.is_some() && self.hosts < 2 {
            return refuse("a lab with NFS has a server and at least one client".into());
        }
        if self.nfs.is_none() && self.guests != Guests::Qemu {
            return refuse("the kind of guests is chosen in a lab with NFS alone".into());
        }
        if volumes > 1 {
            return refuse("GlusterFS, MooseFS and CephFS have the same mount point, /data: choose one of them".into());
        }
        if self.has_kernel_client() && self.slurm {
            return refuse("the guest beside Ceph's hosts has no systemd, and cannot be a node of Slurm".into());
        }
        let osds = self.hosts - u32::from(self.has_kernel_client());
        if let Some(size) = self.ceph.map(|ceph| ceph.size).filter(|size| *size > osds) {
            return refuse(format!("size {size} needs {size} hosts, one copy each; the lab has {osds} for them"));
        }
        if self.ceph.is_some() && self.disk_bytes < LEAST_OSD {
            return refuse(format!(
                "a disk of {} bytes is too small for an OSD of Ceph; 2G is the least",
                self.disk_bytes
            ));
        }
        if let Some(goal) = self.moosefs.map(|m| m.goal).filter(|goal| *goal > self.hosts) {
            return refuse(format!("goal {goal} needs {goal} hosts, one copy each; the lab has {}", self.hosts));
        }
        let Some(g) = self.gluster else { return Ok(()) };
        let sets = g.sets.unwrap_or(self.hosts / g.replica);
        if sets.checked_mul(g.replica) != Some(self.hosts) {
            return refuse(format!(
                "a gluster volume of {sets}x{} needs {} hosts, one brick each; the lab has {}: --hosts {}, or --gluster {}x1",
                g.replica,
                u64::from(sets.max(1)) * u64::from(g.replica),
                self.hosts,
                u64::from(sets.max(1)) * u64::from(g.replica),
                self.hosts
            ));
        }
        Ok(())
    }
}

impl LabSpec {
    fn check_wires(&self) -> Result<()> {
        let refuse = |text: String| Err(LabError::Request(text));
        if self.has_guests() && !(self.networks.is_empty() && self.switches.is_none()) {
            return refuse("guests have one network and no switches".into());
        }
        if self.networks.len() > MAX_NETWORKS {
            return refuse(format!("a lab has up to {MAX_NETWORKS} further networks, not {}", self.networks.len()));
        }
        let mut names: Vec<&String> = self.networks.iter().map(|network| &network.name).collect();
        names.sort();
        if let Some(twice) = names.windows(2).find(|two| two[0] == two[1]) {
            return refuse(format!("two networks are called {}", twice[0]));
        }
        match self.switches {
            Some(switches) if !(1..=9).contains(&switches.count) || switches.count > self.hosts => refuse(format!(
                "{} hosts are on 1 to {} switches, not {}",
                self.hosts,
                self.hosts.min(9),
                switches.count
            )),
            _ => Ok(()),
        }
    }
}

/// Files that a control group of version 1 has itself, among the possible names of a lab.
const FILES_OF_A_GROUP: [&str; 3] = ["tasks", "notify_on_release", "release_agent"];

/// Checks a name. Names of labs become folder and cgroup names.
pub fn check_name(name: &str) -> Result<()> {
    let fits = (1..=32).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        && !name.starts_with('-');
    if FILES_OF_A_GROUP.contains(&name) {
        return Err(LabError::Request(format!(
            "{name:?} cannot be a lab name: control groups have a file of that name"
        )));
    }
    if fits {
        return Ok(());
    }
    Err(LabError::Request(format!("{name:?} is not a lab name: use up to 32 letters, digits, - and _")))
}

/// Splits `12.5mbit` into number and lower-case unit.
fn number_and_unit(s: &str) -> Option<(f64, String)> {
    let s = s.trim();
    let cut = s.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(s.len());
    let number: f64 = s[..cut].parse().ok()?;
    Some((number, s[cut..].trim().to_ascii_lowercase()))
}

/// Reads a size such as `4G`, `512M` or `1073741824`; units are powers of 1024. Returns bytes.
pub fn parse_size(s: &str) -> std::result::Result<u64, String> {
    let wrong = || format!("cannot read the size {s:?}; write it as in 512M or 4G");
    let (number, unit) = number_and_unit(s).ok_or_else(wrong)?;
    let shift = match unit.trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(wrong()),
    };
    Ok((number * (1u64 << shift) as f64) as u64)
}

/// Reads a link rate such as `200mbit`, `1gbit` or `10gbps`. Units are powers of
/// 1000 and mean bits, as on the label of a network card. Returns bits per second.
pub fn parse_rate(s: &str) -> std::result::Result<u64, String> {
    let wrong = || format!("cannot read the link rate {s:?}; write it as in 200mbit or 1gbit");
    let rate = homing_model::units::bit_rate(s).ok_or_else(wrong)?;
    if rate < 8000 { Err(format!("a link of {s} is too slow to boot over; 8kbit is the least")) } else { Ok(rate) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("4G"), Ok(4 << 30));
        assert_eq!(parse_size("512MiB"), Ok(512 << 20));
        assert_eq!(parse_size("1.5k"), Ok(1536));
        assert_eq!(parse_size("77"), Ok(77));
        for bad in ["", "G", "4X", "-1G", "4 G x"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rates_are_bits() {
        assert_eq!(parse_rate("200mbit"), Ok(200_000_000));
        assert_eq!(parse_rate("1Gbit"), Ok(1_000_000_000));
        assert_eq!(parse_rate("2.5gbps"), Ok(2_500_000_000));
        for bad in ["", "200", "200mb", "fast", "1bit"] {
            assert!(parse_rate(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn networks_have_names_that_an_interface_can_have() {
        let of = |text: &str| text.parse::<NetworkSpec>();
        let storage = |link_bits_per_s| Ok(NetworkSpec { name: "storage".into(), link_bits_per_s });
        assert_eq!([of("storage"), of("storage:1gbit")], [storage(None), storage(Some(1_000_000_000))]);
        for bad in ["", "Storage", "2nd", "manage", "host0", "core", "s2", "a b", "storage:fast", "a-name-of-16-byt"] {
            assert!(of(bad).is_err(), "{bad}");
        }
        let lab = |networks: &[&str], switches, hosts| LabSpec {
            hosts,
            networks: networks.iter().map(|text| of(text).unwrap()).collect(),
            switches,
            ..LabSpec::default()
        };
        let switches = |count| Some(SwitchesSpec { count, uplink_bits_per_s: None });
        assert!(lab(&["a", "b"], switches(2), 2).check().is_ok());
        assert!(
            lab(&["a", "a"], None, 2).check().is_err() && lab(&["a", "b", "c", "d", "e"], None, 2).check().is_err()
        );
        assert!([0, 3].iter().all(|count| lab(&[], switches(*count), 2).check().is_err()));
        let nfs = Some(NfsSpec { version: 4, rdma: false });
        assert!(LabSpec { nfs, ..lab(&["a"], None, 2) }.check().is_err(), "guests");
    }

    #[test]
    fn systems_are_known_or_refused_with_a_way() {
        let of = |text: &str| text.parse::<HostSystem>();
        assert_eq!([of("this"), of("trixie")], [Ok(HostSystem::This), Ok(HostSystem::Trixie)]);
        assert_eq!(of("/srv/rocky").unwrap().to_string(), "/srv/rocky");
        for (text, why) in [("rocky", "--os /srv/rocky"), ("alpine", "no systemd"), ("sid", "bookworm, trixie")] {
            assert!(of(text).unwrap_err().contains(why), "{text}");
        }
        let lab = LabSpec { systems: vec![HostSystem::This, HostSystem::Trixie], hosts: 3, ..LabSpec::default() };
        assert!(lab.check().is_ok() && LabSpec { slurm: true, ..lab }.check().is_err());
    }

    #[test]
    fn disks_are_as_slow_as_they_are_said_to_be() {
        let of = |text: &str| text.parse::<DiskModel>();
        assert_eq!(
            [of("plain"), of("hdd"), of("hdd/5")],
            [Ok(DiskModel::Plain), Ok(DiskModel::Hdd(1)), Ok(DiskModel::Hdd(5))]
        );
        assert!(["hdd/", "hdd/0", "hdd/-1", "ssd"].iter().all(|odd| of(odd).is_err_and(|why| why.contains("hdd/5"))));
    }

    #[test]
    fn gluster_shapes() {
        assert_eq!("2x3".parse(), Ok(GlusterSpec { sets: Some(2), replica: 3 }));
        assert_eq!("replica=2".parse(), Ok(GlusterSpec { sets: None, replica: 2 }));
        for bad in ["", "2", "0x2", "2x", "replica=0", "replica=x"] {
            assert!(bad.parse::<GlusterSpec>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_request_that_cannot_work_is_refused() {
        let good = LabSpec { gluster: Some(GlusterSpec { replica: 2, sets: Some(2) }), ..LabSpec::default() };
        assert!(good.check().is_ok());
        assert!(LabSpec { hosts: 3, ..good.clone() }.check().is_err());
        assert!(LabSpec { hosts: 0, ..LabSpec::default() }.check().is_err());
        assert!(LabSpec { name: "../x".into(), ..good.clone() }.check().is_err());
        let ceph = LabSpec { ceph: Some(CephSpec { size: 2, kernel: false }), ..LabSpec::default() };
        assert!(ceph.check().is_ok());
        let guest = LabSpec { ceph: Some(CephSpec { size: 2, kernel: true }), hosts: 3, ..LabSpec::default() };
        assert!(guest.check().is_ok() && LabSpec { slurm: true, ..guest.clone() }.check().is_err());
        assert!(LabSpec { hosts: 2, ..guest }.check().is_err(), "one host is left for two copies");
        assert!(LabSpec { hosts: 1, ..ceph.clone() }.check().is_err());
        assert!(LabSpec { disk_bytes: 1 << 30, ..ceph.clone() }.check().is_err());
        assert!(LabSpec { moosefs: Some(MooseSpec { goal: 2 }), ..ceph }.check().is_err());
        assert!(LabSpec { gluster: Some(GlusterSpec { replica: 9, sets: None }), ..good }.check().is_err());
    }
}
