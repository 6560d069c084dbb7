//! Fixed facts of a host: names, processors, memory, network mounts.

use homing_model::HostFacts;
use homing_model::container::{APPTAINER, PODMAN};
use homing_mounts::{FS_TIMEOUT, FileSystemKind, MountLine, holding, patiently};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, read_to_string};
use std::path::{Path, PathBuf};

/// Describes this host. Looks up no name over the network.
pub fn facts() -> HostFacts {
    let uname = rustix::system::uname();
    let hostname = homing_os::names::own_name();
    let lines = homing_mounts::read().unwrap_or_default();
    HostFacts {
        aliases: aliases(&hostname),
        hostname,
        cores: cores(),
        memory_bytes: memory_bytes(),
        arch: uname.machine().to_string_lossy().into_owned(),
        boot_id: homing_os::names::boot_id(),
        containers: containers(std::env::var_os("PATH").unwrap_or_default(), &lines),
        mounts: homing_mounts::network(lines),
        nic_bytes_per_s: line_rate(),
        now_ns: homing_os::clock::wall_ns(),
        ahead: None,
        // The worker adds it.
        most_tasks: None,
        gpus: crate::gpus::gpus(),
        indices: crate::indices(),
    }
}

/// Returns the programs for containers in these folders of the PATH. A network file system that does not answer has
/// none: it must not hold up the host.
fn containers(path: OsString, lines: &[MountLine]) -> Vec<String> {
    let is_far =
        |folder: &PathBuf| holding(lines, folder).is_some_and(|line| FileSystemKind::of(&line.mount).is_network());
    let (far, near): (Vec<PathBuf>, Vec<PathBuf>) = std::env::split_paths(&path).partition(is_far);
    let mut found = programs_in(&near);
    if !far.is_empty() {
        found.append(&mut patiently(far.clone(), FS_TIMEOUT, move || programs_in(&far)).unwrap_or_default());
    }
    found.into_iter().map(String::from).collect()
}

fn programs_in(folders: &[PathBuf]) -> BTreeSet<&'static str> {
    let is_there = |name: &&&str| folders.iter().any(|folder| folder.join(name).is_file());
    PODMAN.iter().chain(APPTAINER).filter(is_there).copied().collect()
}

/// Returns this host's IPv4 addresses, and the names that /etc/hosts gives to them.
fn aliases(hostname: &str) -> Vec<String> {
    let mut known: Vec<String> = vec![];
    let tables = [fs::read_to_string("/proc/net/fib_trie").unwrap_or_default()];
    let mut last = "";
    for line in tables[0].lines() {
        let line = line.trim();
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address;
        } else if line.contains("host LOCAL") && !last.starts_with("127.") && !known.iter().any(|k| k == last) {
            known.push(last.to_string());
        }
    }
    let hosts = read_to_string("/etc/hosts").unwrap_or_default();
    for line in hosts.lines().filter_map(|l| l.split('#').next()) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let Some((address, names)) = words.split_first() else { continue };
        let ours = known.iter().any(|k| k == address) || (address.starts_with("127.") && names.contains(&hostname));
        if ours {
            known.extend(names.iter().filter(|n| !n.starts_with("localhost")).map(|n| n.to_string()));
        }
    }
    known.sort();
    known.dedup();
    known
}

/// Returns the processors of the affinity mask, limited by the cgroup's quota, at least 1.
fn cores() -> u32 {
    let by_mask = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    by_mask.max(1)
}

/// Returns the rate of the fastest interface that reports one, bytes per second.
fn line_rate() -> Option<u64> {
    let speeds = fs::read_dir("/sys/class/net").ok()?.flatten().filter_map(|entry| {
        // A bridge or veth reports a speed that no link has.
        entry.path().join("device").exists().then_some(())?;
        read_to_string(entry.path().join("speed")).ok()?.trim().parse::<i64>().ok()
    });
    speeds.filter(|mbit| *mbit > 0).max().map(|mbit| mbit as u64 * 125_000)
}

/// Returns false for partitions, and for devices whose traffic another device counts too.
pub(crate) fn is_whole_disk(name: &str) -> bool {
    let virtual_kind = ["loop", "ram", "dm-", "md", "zram"].iter().any(|kind| name.starts_with(kind));
    !virtual_kind && Path::new("/sys/block").join(name).exists()
}

/// Returns the memory of this machine, bytes.
pub fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram as u64 * u64::from(info.mem_unit.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_a_name_and_a_processor() {
        let facts = facts();
        assert!(!facts.hostname.is_empty() && facts.cores >= 1 && facts.memory_bytes > 0);
        assert!(crate::sample().r1m.is_some());
    }

    #[test]
    fn programs_for_containers_are_found_in_near_and_far_folders_of_the_path() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["near/podman", "far/apptainer", "far/docker"] {
            fs::create_dir_all(dir.path().join(name).parent().unwrap()).unwrap();
            fs::write(dir.path().join(name), "").unwrap();
        }
        let far = dir.path().join("far");
        let table = format!("36 35 0:41 / {} rw - nfs4 server:/x rw\n", far.display());
        let path = std::env::join_paths([dir.path().join("near"), far]).unwrap();
        assert_eq!(containers(path, &homing_mounts::parse(table.as_bytes())), ["apptainer", "podman"]);
        assert_eq!(containers(dir.path().into(), &[]), [""; 0]);
    }
}
