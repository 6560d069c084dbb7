//! Plans file systems of servers that all hosts mount, except the server itself. A mount point counts as done only if
//! the mounted file system comes from the wanted source.

use super::AreaResult;
use crate::MountSection;
use crate::site::{AllSeen, ClusterSite};
use homing_steps::{FactQuery, HostRequirement, MountEntry, Observed};

const FSTAB: &str = "/etc/fstab";
/// Options that the kernel shows for each mount that has them.
const SHOWN: [&str; 4] = ["ro", "nosuid", "nodev", "noexec"];

pub(super) fn request_facts(site: &ClusterSite, question: &mut FactQuery) {
    question.files.insert(FSTAB.into());
    question.mounts.extend(site.up.mount.keys().cloned());
    question.sources.extend(site.up.mount.iter().map(|(point, mount)| (point.clone(), mount.source.clone())));
}

pub(super) fn wanted(site: &ClusterSite, host: &str, seen: &AllSeen) -> AreaResult {
    let own = site.names(host, seen);
    let is_server = |source: &str| {
        let server = source.rsplit_once(":/").map_or("", |(server, _)| server.trim_matches(['[', ']']));
        server == host || own.iter().any(|(name, address)| server == name || server == address)
    };
    let mounts: Vec<_> = site.up.mount.iter().filter(|(_, mount)| !is_server(&mount.source)).collect();
    let (false, Some(Ok(there))) = (mounts.is_empty(), seen.get(host)) else { return Ok(Vec::new()) };
    let against: Vec<String> = mounts.iter().filter_map(|(point, mount)| taken(point, mount, there)).collect();
    if !against.is_empty() {
        return Err(against);
    }
    let line = |(point, m): &(&String, &MountSection)| format!("{} {point} {} {} 0 0\n", m.source, m.fstype, m.options);
    let lines = mounts.iter().map(line).collect();
    let block = HostRequirement::Block { path: FSTAB.into(), name: "mounts".into(), lines, retire: Vec::new() };
    let mount = |(point, _): &(&String, &MountSection)| HostRequirement::Mount {
        point: (*point).clone(),
        over: None,
        disk: false,
    };
    Ok(std::iter::once(block).chain(mounts.iter().map(mount)).collect())
}

/// Returns the objection to a mount point: something else is mounted there, or it is mounted with other options.
fn taken(point: &str, wanted: &MountSection, there: &Observed) -> Option<String> {
    let entry = there.mounted.get(point)?;
    if !is_wanted(wanted, entry) {
        return Some(format!(
            "{} ({}) is mounted at {point}, not {}: unmount it there, or use another mount point",
            entry.source, entry.fstype, wanted.source
        ));
    }
    let has = |options: &str, option: &str| options.split(',').any(|one| one == option);
    let lacks = SHOWN.into_iter().find(|option| has(&wanted.options, option) && !has(&entry.options, option))?;
    Some(format!("{} is mounted at {point} without {lacks}: unmount it there, then repeat homing up", entry.source))
}

fn is_wanted(wanted: &MountSection, entry: &MountEntry) -> bool {
    if !is_type(&wanted.fstype, &entry.fstype) {
        return false;
    }
    // Other sources are arguments of the program that mounts them, such as `mfsmount`.
    let names_it = wanted.source.contains(":/") || wanted.source.starts_with('/') || wanted.source.contains('=');
    entry.is_wanted || !names_it || plain(&wanted.source) == plain(&entry.source)
}

/// Whether a type in fstab and one in the mount table are the same: `nfs` is shown as `nfs4`, `glusterfs` as
/// `fuse.glusterfs`.
fn is_type(wanted: &str, there: &str) -> bool {
    fn base(fstype: &str) -> &str {
        match fstype.strip_prefix("fuse.").unwrap_or(fstype) {
            "nfs4" => "nfs",
            "moosefs" => "mfs",
            "ceph-fuse" => "ceph",
            other => other,
        }
    }
    matches!(wanted, "auto" | "none" | "bind") || there == "fuse" || base(wanted) == base(there)
}

/// Simplifies a source: `n1:/data`, `n1:data` and `n1:/data/` are the same.
fn plain(source: &str) -> String {
    let source = source.strip_prefix("mfs#").unwrap_or(source);
    match source.split_once(":/").or_else(|| source.split_once(':')) {
        Some((server, path)) => format!("{}:{}", server.trim_matches(['[', ']']), path.trim_matches('/')),
        None => source.trim_end_matches('/').into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(source: &str, fstype: &str) -> MountSection {
        MountSection { source: source.into(), fstype: fstype.into(), options: "defaults".into() }
    }

    fn entry(source: &str, fstype: &str) -> MountEntry {
        let options = "rw,relatime".into();
        MountEntry { source: source.into(), fstype: fstype.into(), options, is_wanted: false }
    }

    #[test]
    fn a_mount_counts_only_when_it_comes_from_the_wanted_source() {
        for (wanted, there) in [
            (("n1:/y", "nfs"), ("n1:/y", "nfs4")),
            (("n1:/y/", "nfs4"), ("n1:/y", "nfs4")),
            (("n1:/data", "glusterfs"), ("n1:data", "fuse.glusterfs")),
            (("[fe80::1]:/y", "nfs"), ("fe80::1:/y", "nfs4")),
            (("mfsmount", "moosefs"), ("mfs#n1:9421", "fuse.mfs")),
            (("u@n2:/x", "fuse.sshfs"), ("u@n2:/x", "fuse.sshfs")),
        ] {
            assert!(is_wanted(&mount(wanted.0, wanted.1), &entry(there.0, there.1)), "{wanted:?} {there:?}");
        }
        for (wanted, there) in [
            (("n1:/y", "nfs"), ("/dev/loop1", "ext4")),
            (("n1:/y", "nfs"), ("n2:/y", "nfs4")),
            (("n1:/y", "nfs"), ("n1:/x", "nfs4")),
            (("mfsmount", "moosefs"), ("n1:data", "fuse.glusterfs")),
            (("/srv/x", "none"), ("/dev/sda1[/srv/y]", "ext4")),
            (("UUID=1", "ext4"), ("/dev/sdb1", "ext4")),
        ] {
            assert!(!is_wanted(&mount(wanted.0, wanted.1), &entry(there.0, there.1)), "{wanted:?} {there:?}");
        }
        let found = MountEntry { is_wanted: true, ..entry("/dev/sdb1", "ext4") };
        assert!(is_wanted(&mount("UUID=1", "ext4"), &found));
    }

    #[test]
    fn an_option_that_is_not_in_force_is_named() {
        let wanted = MountSection { options: "defaults,ro".into(), ..mount("n1:/y", "nfs") };
        let mounted = [("/y".to_string(), entry("n1:/y", "nfs4"))].into();
        let why = taken("/y", &wanted, &Observed { mounted, ..Observed::default() }).unwrap();
        assert!(why.contains("without ro"), "{why}");
    }
}
