//! Settings of the cluster file about disks of the hosts.

use homing_model::NodeSet;
use homing_model::folders::system_folder;
use serde::Deserialize;
use std::collections::BTreeMap;

/// `[up.disk."/POINT"]`: a whole disk, or several joined ones, on each of some hosts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSection {
    /// Devices by host, or by node set: `"n[1-4]" = "/dev/disk/by-path/..."`; several as a list.
    #[serde(deserialize_with = "lists")]
    pub devices: BTreeMap<String, Vec<String>>,
    /// The way in which several disks become one device.
    pub join: Option<Join>,
    /// Its file system.
    #[serde(rename = "type", default = "ext4")]
    pub fstype: String,
    /// Its options, as in fstab.
    #[serde(default = "options")]
    pub options: String,
    /// By host: the serial number of a disk whose content may be erased; of several disks all, in order.
    #[serde(default, deserialize_with = "lists")]
    pub wipe: BTreeMap<String, Vec<String>>,
}

/// Reads a text, or a list of texts, for each key.
fn lists<'de, D: serde::Deserializer<'de>>(from: D) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a text or a list of texts")]
    enum OneOrMore {
        One(String),
        More(Vec<String>),
    }
    let all = BTreeMap::<String, OneOrMore>::deserialize(from)?;
    let list = |value| match value {
        OneOrMore::One(text) => vec![text],
        OneOrMore::More(texts) => texts,
    };
    Ok(all.into_iter().map(|(key, value)| (key, list(value))).collect())
}

/// Ways to join disks, by the words of mdadm(8); `lvm` is a logical volume over all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Join {
    Raid0,
    Raid1,
    Raid5,
    Raid6,
    Raid10,
    Lvm,
}

impl Join {
    /// Returns its word, and the least number of disks that it joins.
    fn rule(self) -> (&'static str, usize) {
        match self {
            Join::Raid0 => ("raid0", 2),
            Join::Raid1 => ("raid1", 2),
            Join::Raid5 => ("raid5", 3),
            Join::Raid6 => ("raid6", 4),
            Join::Raid10 => ("raid10", 2),
            Join::Lvm => ("lvm", 1),
        }
    }

    /// Returns the package with its programs.
    pub(crate) fn package(self) -> &'static str {
        if self == Join::Lvm { "lvm2" } else { "mdadm" }
    }
}

/// The types that homing can make.
const TYPES: [&str; 2] = ["ext4", "xfs"];

fn ext4() -> String {
    "ext4".into()
}

/// Returns the default options: a host must boot without the disk, too, so that it can be repaired.
fn options() -> String {
    "defaults,nofail,x-systemd.device-timeout=30s".into()
}

impl DiskSection {
    fn devices_of(&self, host: &str) -> Option<&Vec<String>> {
        let named = |set: &str| NodeSet::parse(set).is_ok_and(|hosts| hosts.contains(host));
        self.devices.iter().find(|(set, _)| named(set)).map(|(_, devices)| devices)
    }

    /// Returns the name of a host's disk. Several disks have one name, which begins with the way of joining.
    pub fn device_of(&self, host: &str) -> Option<String> {
        self.devices_of(host).map(|devices| self.called(devices))
    }

    /// Returns the names of all disks.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.devices.values().map(|devices| self.called(devices))
    }

    fn called(&self, devices: &[String]) -> String {
        let way = self.join.map(|join| format!("{} ", join.rule().0));
        way.unwrap_or_default() + &devices.join(" ")
    }

    /// Returns the serial numbers of a host's disks that may be erased, in the form of [`homing_steps::DiskFacts::id`].
    pub fn wipe_of(&self, host: &str) -> Option<String> {
        self.wipe.get(host).map(|serials| serials.join(","))
    }

    /// Removes a host that leaves the cluster.
    fn leave(&mut self, host: &str) {
        let each = |(set, devices): (String, Vec<String>)| {
            let names: Vec<String> = match NodeSet::parse(&set) {
                Ok(hosts) => hosts.iter().map(String::from).collect(),
                Err(_) => vec![set],
            };
            names.into_iter().filter(|name| name != host).map(move |name| (name, devices.clone()))
        };
        self.devices = std::mem::take(&mut self.devices).into_iter().flat_map(each).collect();
        self.wipe.remove(host);
    }

    /// Returns why these disks of hosts cannot be joined.
    fn join_fault(&self, set: &str, devices: &[String]) -> Option<String> {
        let (way, least) = match self.join {
            Some(join) => join.rule(),
            None if devices.len() == 1 => return None,
            None => {
                let count = devices.len();
                return Some(format!(
                    "devices: {set} has {count} disks: set join = \"raid1\", raid0, raid5, raid6, raid10 or lvm"
                ));
            }
        };
        let twice = devices.iter().enumerate().find(|(n, device)| devices[n + 1..].contains(device));
        match twice {
            Some((_, device)) => Some(format!("devices: {set} has {device} twice")),
            None if devices.len() < least => {
                Some(format!("join = {way:?} needs at least {least} disks, and {set} has {}", devices.len()))
            }
            None => None,
        }
    }

    fn faults(&self, hosts: &[String]) -> Vec<String> {
        let mut faults = Vec::new();
        let mut named: Vec<String> = Vec::new();
        for (set, devices) in &self.devices {
            match NodeSet::parse(set) {
                Ok(set) => named.extend(set.iter().map(String::from)),
                Err(e) => faults.push(format!("devices: {e}")),
            }
            let odd = devices.iter().filter(|device| !is_device(device));
            faults.extend(odd.map(|device| format!("devices: {device:?} is not a path below /dev")));
            faults.extend(self.join_fault(set, devices));
        }
        if self.devices.is_empty() {
            faults.push("devices = { HOST = \"/dev/disk/by-id/...\" } is missing".into());
        }
        named.sort();
        faults.extend(
            named.iter().filter(|h| !hosts.contains(h)).map(|h| format!("devices: {h} is not one of the hosts")),
        );
        let twice = named.windows(2).filter(|two| two[0] == two[1]);
        faults.extend(twice.map(|two| format!("devices: {} has two disks for one mount point", two[0])));
        let strangers = self.wipe.keys().filter(|host| !named.contains(host));
        faults.extend(strangers.map(|host| {
            format!("wipe: {host:?} is not a host of devices; write wipe = {{ HOST = \"SERIAL NUMBER\" }}")
        }));
        if !TYPES.contains(&self.fstype.as_str()) {
            faults.push(format!("type = {:?} is not one of {}", self.fstype, TYPES.join(", ")));
        }
        if self.options.is_empty() || self.options.contains(char::is_whitespace) {
            faults.push("options is empty or has a blank, which ends a column of /etc/fstab".into());
        }
        faults
    }
}

/// Whether a name is safe: hosts find it again in their journals, with tools that give other characters a meaning.
fn is_device(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_.:+=@,-".contains(c);
    name.strip_prefix("/dev/").is_some_and(|rest| !rest.is_empty()) && name.chars().all(plain) && !name.contains("/..")
}

/// Removes all disks of a host.
pub(crate) fn leave(disks: &mut BTreeMap<String, DiskSection>, host: &str) {
    disks.values_mut().for_each(|disk| disk.leave(host));
    disks.retain(|_, disk| !disk.devices.is_empty());
}

/// Returns the faults of the file itself.
pub(crate) fn faults(disks: &BTreeMap<String, DiskSection>, hosts: &[String]) -> Vec<String> {
    let of = |(point, disk): (&String, &DiskSection)| {
        let all = disk.faults(hosts).into_iter().chain(system_folder(point));
        all.map(|why| format!("[up.disk.{point:?}] {why}")).collect::<Vec<_>>()
    };
    let mut faults: Vec<String> = disks.iter().flat_map(of).collect();
    for host in hosts {
        let mut devices: Vec<&String> = disks.values().filter_map(|disk| disk.devices_of(host)).flatten().collect();
        devices.sort();
        let twice = devices.windows(2).filter(|two| two[0] == two[1]);
        faults.extend(twice.map(|two| format!("[up.disk] {host} has {} at two mount points", two[0])));
    }
    faults
}
