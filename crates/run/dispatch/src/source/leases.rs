//! A storage server of the cluster file, and the place of its leases.

use homing_lease::{FOLDER, LeaseFolder};
use homing_locate::Volume;
use homing_model::hostname::is_called;
use homing_mounts::FileSystemKind;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// The section `[server.NAME]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSection {
    /// The tasks of all runs of all users that may use it at once.
    pub io: Option<NonZeroU32>,
    /// A folder on it that all hosts have mounted, for the leases.
    pub leases: Option<PathBuf>,
    /// The licence by which Slurm counts its jobs that use it: `nas`, or `nas@slurmdb` of several clusters.
    #[serde(default, deserialize_with = "license")]
    pub license: Option<String>,
}

fn license<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(from)?;
    match homing_scheduler::slurm::is_license(&name) {
        true => Ok(Some(name)),
        false => Err(serde::de::Error::custom(format!("license = {name:?} is not a valid name of a Slurm licence"))),
    }
}

/// Returns the place of the leases of a server that has these names and holds one of the volumes. It is the folder in
/// the cluster file, else the root of that volume. A server of NFS has one limit under any mount name, whether or not
/// cluster files name it. The bricks of other file systems are separate servers.
pub fn place(names: &[String], volumes: &[Volume], servers: &BTreeMap<String, ServerSection>) -> Option<LeaseFolder> {
    let ours = servers.iter().find(|(section, _)| is_one_of(section, names));
    let volume = volume_of(names, volumes);
    let root = volume.map(|volume| volume.mount.point.to_path().join(FOLDER));
    let folder = ours.and_then(|(_, server)| server.leases.clone()).or(root)?;
    let server = match (ours, volume) {
        (Some((section, said)), _) if said.leases.is_some() => section.clone(),
        (_, Some(volume)) if volume.kind == FileSystemKind::Nfs => "nfs".into(),
        (Some((section, _)), _) => section.clone(),
        _ => names.first()?.clone(),
    };
    let limit = ours.and_then(|(_, server)| server.io).map(|io| io.get());
    Some(LeaseFolder { unfit: unfit(&folder), folder, server, limit })
}

/// Returns why a folder is unfit for leases: locks of such mounts are valid on one machine only.
fn unfit(folder: &Path) -> Option<String> {
    let lines = homing_mounts::read().ok()?;
    let line = homing_mounts::holding(&lines, folder)?;
    if FileSystemKind::of(&line.mount) == FileSystemKind::Sshfs {
        return Some(format!("{} is an sshfs, whose locks are valid only on this machine", line.mount.point.display()));
    }
    let option =
        line.of_super.iter().find(|o| ["nolock", "local_lock=all", "local_lock=posix"].contains(&o.as_str()))?;
    Some(format!(
        "{} is mounted with {option}, so its locks are valid only on this machine",
        line.mount.point.display()
    ))
}

/// Returns the volume of a server. The mount table names a server of NFS. For other volumes the names come from a
/// task's files.
fn volume_of<'v>(names: &[String], volumes: &'v [Volume]) -> Option<&'v Volume> {
    let (nfs, other): (Vec<&Volume>, Vec<&Volume>) =
        volumes.iter().partition(|volume| volume.kind == FileSystemKind::Nfs);
    let serves = |volume: &&&Volume| names.contains(&homing_mounts::nfs::server(&volume.mount));
    nfs.iter().find(serves).or(other.iter().find(|volume| volume.kind.is_network())).copied()
}

/// Whether a section of the cluster file means the server with these names and addresses.
pub fn is_one_of(section: &str, names: &[String]) -> bool {
    let same = |other: &String| is_called(names.iter().map(String::as_str), other);
    same(&section.to_string()) || homing_os::names::addresses(section).iter().any(same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_model::Mount;

    fn volume(kind: FileSystemKind, source: &str, point: &str) -> Volume {
        let mount = Mount { point: point.into(), fstype: "x".into(), source: source.into() };
        Volume { name: source.into(), kind, mount }
    }

    fn of(names: &[&str], said: &str) -> Option<(String, String, Option<u32>)> {
        let volumes =
            [volume(FileSystemKind::Gluster, "b1:/v", "/g"), volume(FileSystemKind::Nfs, "10.9.9.9:/x", "/data")];
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let place = place(&names, &volumes, &toml::from_str(said).unwrap())?;
        Some((place.folder.display().to_string(), place.server, place.limit))
    }

    #[test]
    fn leases_are_in_the_root_of_the_volume_or_where_a_cluster_file_says() {
        let at = |folder: &str, server: &str, limit| Some((folder.to_string(), server.to_string(), limit));
        assert_eq!(of(&["10.9.9.9"], ""), at("/data/.homing-leases", "nfs", None));
        assert_eq!(of(&["b1"], ""), at("/g/.homing-leases", "b1", None));
        assert_eq!(of(&["NAS", "10.9.9.9"], "[nas]\nio = 8\n"), at("/data/.homing-leases", "nfs", Some(8)));
        assert_eq!(of(&["b1"], "[\"10.9.9.9\"]\nio = 8\n"), at("/g/.homing-leases", "b1", None));
        assert_eq!(of(&["10.9.9.9"], "[\"10.9.9.9\"]\nleases = \"/l\"\n"), at("/l", "10.9.9.9", None));
    }
}
