//! Plans the hosts' own disks: a file system on each, mounted by its UUID.

use super::AreaResult;
use crate::disks::{DiskSection as Named, Join};
use crate::site::{AllSeen, ClusterSite};
use homing_steps::{DiskFacts, DiskFs, FactQuery, HostRequirement, Observed};
use std::collections::BTreeSet;

const FSTAB: &str = "/etc/fstab";

/// Returns the disks of a host, in the order of their mount points: a folder comes before those below it.
fn of<'s>(site: &'s ClusterSite, host: &str) -> Vec<(&'s String, &'s Named, String)> {
    site.up.disk.iter().filter_map(|(point, disk)| Some((point, disk, disk.device_of(host)?))).collect()
}

pub(super) fn request_facts(site: &ClusterSite, question: &mut FactQuery) {
    question.files.insert(FSTAB.into());
    question.mounts.extend(site.up.disk.keys().cloned());
    question.disks.extend(site.up.disk.values().flat_map(Named::names));
    question.packages.extend(packages(site.up.disk.values()).into_iter().map(String::from));
}

/// Returns the packages that join disks and make file systems; ext4 needs none.
fn packages<'d>(disks: impl IntoIterator<Item = &'d Named>) -> BTreeSet<&'static str> {
    let of = |disk: &Named| {
        let xfs = (disk.fstype == "xfs").then_some("xfsprogs");
        xfs.into_iter().chain(disk.join.map(Join::package)).collect::<Vec<_>>()
    };
    disks.into_iter().flat_map(of).collect()
}

pub(super) fn wanted(site: &ClusterSite, host: &str, seen: &AllSeen) -> AreaResult {
    let (disks, Some(Ok(there))) = (of(site, host), seen.get(host)) else { return Ok(Vec::new()) };
    if disks.is_empty() {
        return Ok(Vec::new());
    }
    let (mut lines, mut made, mut mounted) = (String::new(), Vec::new(), Vec::new());
    let mut against = twins(&disks, there);
    for (point, named, device) in &disks {
        let disk = there.disks.get(device);
        let uuid = disk.map(|disk| disk.uuid(host, device)).unwrap_or_default();
        against.extend(disk.and_then(|disk| misplaced(point, device, disk, &uuid, there)));
        let check = if named.fstype == "xfs" { 0 } else { 2 };
        lines += &format!("# {}\n", called(device, disk));
        lines += &format!("UUID={uuid} {point} {} {} 0 {check}\n", named.fstype, named.options);
        let fs = DiskFs { kind: named.fstype.clone(), uuid };
        made.push(HostRequirement::Disk { name: device.clone(), fs, wipe: named.wipe_of(host) });
        mounted.push(HostRequirement::Mount { point: (*point).clone(), over: None, disk: true });
    }
    if !against.is_empty() {
        return Err(against);
    }
    let packages = packages(disks.iter().map(|(_, named, _)| *named)).into_iter();
    let packages = packages.map(|name| HostRequirement::Package { name: name.into(), replaces: Vec::new() });
    let block = HostRequirement::Block { path: FSTAB.into(), name: "disks".into(), lines, retire: Vec::new() };
    Ok(packages.chain(made).chain([block]).chain(mounted).collect())
}

/// Describes the disk for readers of fstab.
fn called(device: &str, disk: Option<&DiskFacts>) -> String {
    let words = disk.map(|disk| [disk.model.as_str(), disk.id.as_str()]).into_iter().flatten();
    std::iter::once(device).chain(words).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Finds two names of one disk, and disks that cannot be distinguished: their file systems would have one UUID.
fn twins(disks: &[(&String, &Named, String)], there: &Observed) -> Vec<String> {
    let seen: Vec<(&String, &DiskFacts)> =
        disks.iter().filter_map(|(_, _, device)| Some((device, there.disks.get(device)?))).collect();
    let mut against = Vec::new();
    for (n, (device, disk)) in seen.iter().enumerate() {
        let is_twin =
            |(_, other): &&(&String, &DiskFacts)| share(&other.node, &disk.node) || share(&other.id, &disk.id);
        if let Some((other, _)) = seen[n + 1..].iter().find(is_twin) {
            against.push(format!(
                "{device} and {other} are the same disk, or two disks with the same serial number ({})",
                disk.id
            ));
        }
    }
    against
}

/// Whether two lists with commas have a word in common: an array has the identifiers of all its disks.
fn share(one: &str, other: &str) -> bool {
    one.split(',').any(|word| !word.is_empty() && other.split(',').any(|same| same == word))
}

/// Returns an objection if something else is mounted at the disk's mount point, or the disk is mounted elsewhere.
fn misplaced(point: &str, device: &str, disk: &DiskFacts, uuid: &str, there: &Observed) -> Option<String> {
    let at: Vec<&str> = disk.mounted_at().collect();
    if at.contains(&point) {
        return None;
    }
    if there.mounts.get(point).is_some_and(|(state, _)| state.mounted) {
        return Some(format!("another file system than {device} is mounted at {point}"));
    }
    let elsewhere = disk.has(uuid) && !at.is_empty();
    elsewhere.then(|| format!("{device} is mounted at {}, not at {point}: unmount it first", at.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{SetupPlan, plan};
    use crate::{Area, question};
    use homing_steps::{HostChange, MountState};

    const UP: &str = r#"
[disk."/data"]
devices = { "n[1-2]" = "/dev/disk/by-path/pci-1", n3 = "/dev/sdb" }
[disk."/data/fast"]
devices = { n1 = "/dev/nvme1n1" }
type = "xfs"
options = "noatime,nofail"
"#;

    fn site(up: &str) -> ClusterSite {
        let hosts = ["n1", "n2", "n3", "n4"].map(String::from).into();
        ClusterSite { hosts, up: toml::from_str(up).unwrap(), ..ClusterSite::default() }
    }

    fn disk(node: &str, id: &str) -> DiskFacts {
        DiskFacts { node: node.into(), id: id.into(), model: "WDC".into(), bytes: 1 << 40, ..DiskFacts::default() }
    }

    fn seen() -> AllSeen {
        let host = |(host, disks): (&str, &[(&str, DiskFacts)])| {
            let disks = disks.iter().map(|(name, disk)| (name.to_string(), disk.clone())).collect();
            (host.to_string(), Ok(Observed { disks, ..Observed::default() }))
        };
        let path = "/dev/disk/by-path/pci-1";
        [
            ("n1", &[(path, disk("/dev/sda", "A1")), ("/dev/nvme1n1", disk("/dev/nvme1n1", "N1"))][..]),
            ("n2", &[(path, disk("/dev/sda", "A2"))]),
            ("n3", &[("/dev/sdb", disk("/dev/sdb", "A3"))]),
            ("n4", &[]),
        ]
        .map(host)
        .into()
    }

    fn there<'s>(seen: &'s mut AllSeen, host: &str) -> &'s mut Observed {
        seen.get_mut(host).unwrap().as_mut().unwrap()
    }

    fn change_descriptions(plan: &SetupPlan, host: &str) -> Vec<String> {
        let steps = plan.phases.iter().flat_map(|phase| phase.steps.get(host)).flatten();
        steps.map(|step| step.change.description()).collect()
    }

    #[test]
    fn disks_are_made_then_named_in_fstab_by_uuid_and_then_mounted() {
        let (site, mut seen) = (site(UP), seen());
        assert_eq!(site.faults(), [""; 0]);
        let asked = question(&site, &[Area::Disks]);
        assert_eq!((asked.disks.len(), asked.mounts.len(), asked.packages.len()), (3, 2, 1));
        let first = plan(&site, &[Area::Disks], &seen);
        assert_eq!(first.against, []);
        let of_n1 = change_descriptions(&first, "n1");
        assert_eq!(of_n1[0], "package xfsprogs: installed");
        assert!(of_n1[1].contains("A1): ext4 is made") && of_n1[2].contains("N1): xfs is made"), "{of_n1:?}");
        assert_eq!(of_n1[3..], ["/etc/fstab: written", "mount /data", "mount /data/fast"]);
        assert_eq!(
            (
                change_descriptions(&first, "n2").len(),
                change_descriptions(&first, "n3").len(),
                change_descriptions(&first, "n4").len()
            ),
            (3, 3, 0)
        );
        for host in ["n1", "n2", "n3"] {
            let steps = first.phases[0].steps[host].clone();
            for step in steps {
                there(&mut seen, host).apply(&step.change);
                there(&mut seen, host).journal.push((String::new(), step.change));
            }
        }
        let fstab = there(&mut seen, "n1").text(FSTAB).unwrap().to_string();
        let line = |id: &str, rest: &str| format!("UUID={} {rest}\n", disk("", id).uuid("n1", ""));
        assert!(fstab.contains("# /dev/disk/by-path/pci-1 WDC A1\n"), "{fstab}");
        assert!(fstab.contains(&line("A1", "/data ext4 defaults,nofail,x-systemd.device-timeout=30s 0 2")), "{fstab}");
        assert!(fstab.contains(&line("N1", "/data/fast xfs noatime,nofail 0 0")), "{fstab}");
        for (device, point) in [("/dev/disk/by-path/pci-1", "/data"), ("/dev/nvme1n1", "/data/fast")] {
            there(&mut seen, "n1").disks.get_mut(device).unwrap().uses.push(format!("mounted at {point}"));
        }
        ["n2", "n3"].iter().for_each(|host| {
            there(&mut seen, host).disks.values_mut().for_each(|disk| disk.uses.push("mounted at /data".into()));
        });
        let again = plan(&site, &[Area::Disks], &seen);
        assert!(again.phases.is_empty() && again.against.is_empty(), "{again:?}");
    }

    #[test]
    fn a_host_of_which_one_disk_is_refused_keeps_all_and_the_others_go_on() {
        let (site, mut seen) = (site(UP), seen());
        let full = ("ntfs".to_string(), "/dev/nvme1n1".to_string(), "7".to_string());
        there(&mut seen, "n1").disks.get_mut("/dev/nvme1n1").unwrap().signs.push(full);
        there(&mut seen, "n3").disks.clear();
        let plan = plan(&site, &[Area::Disks], &seen);
        let hosts: Vec<&String> = plan.phases[0].steps.keys().collect();
        assert_eq!(hosts, ["n2"]);
        assert!(plan.against[0].0 == "n1" && plan.against[0].1.contains("it holds ntfs"), "{:?}", plan.against);
        assert_eq!(plan.against[1], ("n3".to_string(), "disks: there is no disk /dev/sdb".to_string()));
    }

    #[test]
    fn a_word_for_one_host_is_none_for_another() {
        let site = site(&UP.replace("n3 = \"/dev/sdb\" }", "n3 = \"/dev/sdb\" }\nwipe = { n1 = \"A1\", n3 = \"A2\" }"));
        let mut seen = seen();
        for host in ["n1", "n2", "n3"] {
            let sign = ("ext4".to_string(), "/dev/sda".to_string(), "7".to_string());
            there(&mut seen, host).disks.values_mut().for_each(|disk| {
                if disk.id != "N1" {
                    disk.signs.push(sign.clone());
                }
            });
        }
        let plan = plan(&site, &[Area::Disks], &seen);
        assert_eq!(plan.phases[0].steps.keys().collect::<Vec<_>>(), ["n1"]);
        assert!(plan.against[0].0 == "n2" && plan.against[0].1.contains("wipe = \"A2\""), "{:?}", plan.against);
        assert!(plan.against[1].1.contains("wipe names \"A2\""), "{:?}", plan.against);
    }

    #[test]
    fn one_disk_under_two_names_and_what_is_mounted_otherwise_are_named() {
        let (site, mut seen) = (site(UP), seen());
        there(&mut seen, "n1").disks.insert("/dev/nvme1n1".into(), disk("/dev/sdz", "A1"));
        let mounted = (MountState { exists: true, mounted: true }, true);
        there(&mut seen, "n2").mounts.insert("/data".into(), mounted);
        let own = disk("", "A3").uuid("n3", "");
        let of_n3 = there(&mut seen, "n3").disks.get_mut("/dev/sdb").unwrap();
        of_n3.signs.push(("ext4".into(), "/dev/sdb".into(), own));
        of_n3.uses.push("mounted at /old".into());
        let plan = plan(&site, &[Area::Disks], &seen);
        assert!(plan.phases.is_empty());
        let why: Vec<&str> = plan.against.iter().map(|(_, why)| why.as_str()).collect();
        assert!(why[0].contains("the same disk, or two disks with the same serial number (A1)"), "{why:?}");
        assert!(why[1].contains("another file system than /dev/disk/by-path/pci-1 is mounted at /data"), "{why:?}");
        assert!(why[2].contains("is mounted at /old, not at /data"), "{why:?}");
    }

    #[test]
    fn a_disk_that_was_taken_by_its_short_name_is_not_another_that_has_it_now() {
        let (site, mut seen) = (site(UP), seen());
        let made = plan(&site, &[Area::Disks], &seen).phases[0].steps["n3"][0].change.clone();
        assert!(matches!(made, HostChange::Disk { .. }));
        let of_n3 = there(&mut seen, "n3");
        of_n3.journal.push(("00000001.json".into(), made));
        of_n3.disks.insert("/dev/sdb".into(), disk("/dev/sdb", "B9"));
        let plan = plan(&site, &[Area::Disks], &seen);
        assert!(!plan.phases[0].steps.contains_key("n3"));
        assert!(plan.against[0].1.contains("a file system on A3, and this is another disk"), "{:?}", plan.against);
    }

    #[test]
    fn a_host_that_leaves_takes_its_disks_out_of_the_file() {
        let mut site = site(UP);
        site.hosts.retain(|host| host != "n1");
        assert!(site.faults()[0].contains("n1 is not one of the hosts"));
        site.leave_disks("n1");
        assert_eq!(site.faults(), [""; 0]);
        let kept = ["n1", "n2", "n3"].map(|host| of(&site, host).len());
        assert_eq!((kept, site.up.disk.len()), ([0, 1, 1], 1));
    }

    #[test]
    fn joined_disks_are_one_disk_with_the_serial_numbers_of_all() {
        let up = "[disk.\"/data\"]\ndevices = { n1 = [\"/dev/sdb\", \"/dev/sdc\"] }\njoin = \"raid1\"\n\
                  wipe = { n1 = [\"A1\", \"A2\"] }\n[disk.\"/one\"]\ndevices = { n1 = \"/dev/sdd\" }";
        let site = site(up);
        assert_eq!(site.faults(), [""; 0]);
        let asked = question(&site, &[Area::Disks]);
        assert!(asked.disks.contains("raid1 /dev/sdb /dev/sdc") && asked.packages.contains("mdadm"), "{asked:?}");
        let array = |holds: &[(String, String, String)]| {
            let signs = holds.to_vec();
            let joined = DiskFacts { signs, ..disk("/dev/sdb,/dev/sdc", "A1,A2") };
            let disks = [("raid1 /dev/sdb /dev/sdc".to_string(), joined), ("/dev/sdd".into(), disk("/dev/sdd", "A3"))];
            AllSeen::from([("n1".into(), Ok(Observed { disks: disks.into(), ..Observed::default() }))])
        };
        let first = plan(&site, &[Area::Disks], &array(&[]));
        let made = change_descriptions(&first, "n1");
        assert_eq!(made[0], "package mdadm: installed");
        assert!(made[1].starts_with("disk raid1 /dev/sdb /dev/sdc (WDC, 1.1 TB, A1,A2): ext4 is made"), "{made:?}");
        let full = [("ext4".to_string(), "/dev/sdc".to_string(), "7".to_string())];
        let erased = change_descriptions(&plan(&site, &[Area::Disks], &array(&full)), "n1");
        assert!(erased[1].contains("EVERYTHING ON IT IS ERASED (ext4 on /dev/sdc)"), "{erased:?}");
        let mut twice = array(&[]);
        there(&mut twice, "n1").disks.insert("/dev/sdd".into(), disk("/dev/sdc", "A2"));
        let against = plan(&site, &[Area::Disks], &twice).against;
        assert!(against[0].1.contains("are the same disk"), "{against:?}");
    }

    #[test]
    fn what_cannot_be_joined_is_refused_by_its_key() {
        for (devices, why) in [
            ("{ n1 = [\"/dev/sdb\", \"/dev/sdc\"] }", "n1 has 2 disks: set join = \"raid1\""),
            ("{ n1 = \"/dev/sdb\" }\njoin = \"raid1\"", "join = \"raid1\" needs at least 2 disks, and n1 has 1"),
            ("{ n1 = [\"/dev/sdb\", \"/dev/sdb\"] }\njoin = \"lvm\"", "n1 has /dev/sdb twice"),
            ("{ n1 = [] }", "n1 has 0 disks"),
            ("{ n1 = [\"/dev/sdb\", \"sdc\"] }\njoin = \"raid0\"", "\"sdc\" is not a path"),
        ] {
            let faults = site(&format!("[disk.\"/m\"]\ndevices = {devices}")).faults().join("\n");
            assert!(faults.contains(why), "{why}: {faults}");
        }
        let ring = "[disk.\"/m\"]\ndevices = { n1 = \"/dev/sdb\" }\njoin = \"raid7\"";
        assert!(toml::from_str::<crate::Up>(ring).unwrap_err().to_string().contains("raid10"));
    }

    #[test]
    fn what_the_file_says_wrong_of_disks_is_told() {
        let wrong = r#"
[mount."/m"]
source = "a:/b"
type = "nfs"
[disk."/m"]
devices = { "n[1-2]" = "/dev/sdb", n2 = "/dev/sdc", n9 = "/dev/sdd", n4 = "sde" }
type = "ntfs"
options = "a b"
wipe = { "n[1-2]" = "X" }
[disk."data"]
devices = { n1 = "/dev/sdb" }
[disk."/none"]
devices = {}
"#;
        let faults = site(wrong).faults().join("\n");
        for part in [
            "[up.disk.\"/m\"] devices: n2 has two disks",
            "n9 is not one of the hosts",
            "\"sde\" is not a path below /dev",
            "\"ntfs\" is not one of ext4, xfs",
            "options is empty or has a blank",
            "wipe: \"n[1-2]\" is not a host of devices",
            "[up.mount.\"/m\"] and [up.disk.\"/m\"] have the same mount point /m",
            "[up.disk.\"data\"] it is no absolute path",
            "n1 has /dev/sdb at two mount points",
            "[up.disk.\"/none\"] devices = { HOST",
        ] {
            assert!(faults.contains(part), "{part}: {faults}");
        }
        assert!(toml::from_str::<crate::Up>("[disk.\"/d\"]\ndevices = { n1 = \"/dev/sdb\" }\nwipe = true\n").is_err());
    }
}
