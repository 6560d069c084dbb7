//! Settings of the cluster file about disks of the hosts.

use homing_model::NodeSet;
use homing_model::folders::system_folder;
use serde::Deserialize;
use std::collections::BTreeMap;

/// `[up.disk."/POINT"]`: a whole disk on each of some hosts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSection {
    /// Devices by host, or by node set: `"n[1-4]" = "/dev/disk/by-path/..."`.
    pub devices: BTreeMap<String, String>,
    /// Its file system.
    #[serde(rename = "type", default = "ext4")]
    pub fstype: String,
    /// Its options, as in fstab.
    #[serde(default = "options")]
    pub options: String,
    /// By host: the serial number of a disk whose content may be erased.
    #[serde(default)]
    pub wipe: BTreeMap<String, String>,
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
    /// Returns the name of a host's disk.
    pub fn device_of(&self, host: &str) -> Option<&String> {
        let named = |set: &str| NodeSet::parse(set).is_ok_and(|hosts| hosts.contains(host));
        self.devices.iter().find(|(set, _)| named(set)).map(|(_, device)| device)
    }

    /// Removes a host that leaves the cluster.
    fn leave(&mut self, host: &str) {
        let each = |(set, device): (String, String)| {
            let names: Vec<String> = match NodeSet::parse(&set) {
                Ok(hosts) => hosts.iter().map(String::from).collect(),
                Err(_) => vec![set],
            };
            names.into_iter().filter(|name| name != host).map(move |name| (name, device.clone()))
        };
        self.devices = std::mem::take(&mut self.devices).into_iter().flat_map(each).collect();
        self.wipe.remove(host);
    }

    fn faults(&self, hosts: &[String]) -> Vec<String> {
        let mut faults = Vec::new();
        let mut named: Vec<String> = Vec::new();
        for (set, device) in &self.devices {
            match NodeSet::parse(set) {
                Ok(set) => named.extend(set.iter().map(String::from)),
                Err(e) => faults.push(format!("devices: {e}")),
            }
            if !is_device(device) {
                faults.push(format!("devices: {device:?} is not a path below /dev"));
            }
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
        let mut devices: Vec<&String> = disks.values().filter_map(|disk| disk.device_of(host)).collect();
        devices.sort();
        let twice = devices.windows(2).filter(|two| two[0] == two[1]);
        faults.extend(twice.map(|two| format!("[up.disk] {host} has {} at two mount points", two[0])));
    }
    faults
}
