//! Finds the host that reads: the one that has the bytes.

use super::channel;
use crate::ask::{Gate, HostView, SnapshotReply, SnapshotRequest};
use crate::doubt::HostClock;
use crate::home::{Candidate, candidates};
use crate::section;
use homing_lease::LeaseFolder;
use homing_locate::{HostNames, Locator, Volume};
use homing_model::{Failure, RawText};
use homing_mounts::{FileSystemKind, MountLine, nfs};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files of a volume that are examined to find the hosts with its bytes.
const FILES: usize = 200;

/// The things that this machine knows of the cluster.
pub struct ClusterContext {
    /// Its own name.
    pub own: String,
    /// Returns the folder of the leases of a server with these names and one of these volumes.
    pub leases: Box<Leases>,
}

/// See [`ClusterContext::leases`].
type Leases = dyn Fn(&[String], &[Volume]) -> Option<LeaseFolder>;

/// The host and folder where a source's bytes are read.
pub struct SourceHome {
    /// The host.
    pub host: String,
    /// A text that differs between hosts.
    pub identity: String,
    /// The folder there.
    pub path: RawText,
    /// The version of its rsync.
    pub rsync: Option<String>,
    /// How far its clock is ahead of this one's.
    pub ahead: SignedDuration,
    /// The leases of its file server.
    pub gate: Option<Gate>,
    /// Hosts that were better candidates, and why they were passed over.
    pub passed: Vec<String>,
    /// The folder without links and its mount on this machine, if this machine sees it.
    pub here: Option<(PathBuf, MountLine)>,
}

/// Finds the host with the bytes of a source.
pub fn home(source: &str, bank: &str, known: &ClusterContext) -> Result<SourceHome, Failure> {
    if let (Some(host), path) = section::source_place(source) {
        let path: RawText = path.as_path().into();
        let seen = look(host, std::slice::from_ref(&path))?;
        let missing = || Failure::system(format!("{} is not a folder on {host}", path.display()));
        seen.paths.first().cloned().flatten().ok_or_else(missing)?;
        let gate = gate(host, &[], Path::new("/"), Path::new("/"), known);
        let ahead = seen.clock.duration_since(Timestamp::now());
        let HostView { identity, rsync, .. } = seen;
        return Ok(SourceHome {
            host: host.into(),
            identity,
            path,
            rsync,
            ahead,
            gate,
            passed: Vec::new(),
            here: None,
        });
    }
    let failed = |e: std::io::Error| Failure::usage(format!("{source}: {e}"));
    let real = Path::new(source).canonicalize().map_err(failed)?;
    let meta = std::fs::metadata(&real).map_err(failed)?;
    if !meta.is_dir() {
        return Err(Failure::usage(format!("{source} is not a folder")));
    }
    let lines = homing_mounts::read().map_err(failed)?;
    let line = homing_mounts::holding(&lines, &real);
    let line = line.ok_or_else(|| Failure::system(format!("the mount table has no file system for {source}")))?;
    let mut passed = Vec::new();
    for candidate in candidates(&real, &homing_mounts::identified(line), meta.ino(), bank, &bricks(&real, line)) {
        let host = candidate.host.clone().unwrap_or_else(|| known.own.clone());
        match holds(&host, &candidate) {
            Ok((HostView { identity, clock, rsync, .. }, path)) => {
                let ahead = clock.duration_since(Timestamp::now());
                let root = there(&path, &real, line);
                let gate = gate(&host, std::slice::from_ref(line), line.mount.point.as_path(), &root, known);
                let here = Some((real.clone(), line.clone()));
                return Ok(SourceHome { host, identity, path, rsync, ahead, gate, passed, here });
            }
            Err(why) => passed.push(why),
        }
    }
    let why = format!("homing found no host that stores {source}: {}", passed.join("; "));
    Err(Failure::system(why).hint("source = \"HOST:/PATH\" names the host and its folder"))
}

/// Returns the hosts with bricks of a volume of GlusterFS, those with most of the first files' bytes first.
fn bricks(real: &Path, line: &MountLine) -> Vec<String> {
    let locator = if FileSystemKind::of(&line.mount) == FileSystemKind::Gluster { Locator::new().ok() } else { None };
    let files = locator.map(|locator| locator.locate_tree(real, FILES).files).unwrap_or_default();
    let mut held: BTreeMap<String, u64> = BTreeMap::new();
    for (host, bytes) in files.iter().flat_map(|file| file.bytes_per_host()) {
        *held.entry(host).or_default() += bytes;
    }
    let names = HostNames::default();
    names.learn(&held.keys().cloned().collect());
    let mut hosts: Vec<(u64, String)> = held.into_iter().map(|(host, bytes)| (bytes, names.of(&host))).collect();
    hosts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    hosts.into_iter().map(|(_, host)| host).collect()
}

/// Returns whether a host has the folder, and its name there.
pub fn holds(host: &str, candidate: &Candidate) -> Result<(HostView, RawText), String> {
    let fits = |paths: &[RawText], seen: &HostView| {
        let all = paths.iter().zip(&seen.paths);
        all.into_iter()
            .find(|(_, found)| found.as_ref().is_some_and(|found| candidate.proof.holds(found)))
            .map(|(path, _)| (seen.clone(), path.clone()))
    };
    let seen = look(host, &candidate.paths).map_err(|failure| failure.message)?;
    if let Some(found) = fits(&candidate.paths, &seen) {
        return Ok(found);
    }
    // Paths below the root of NFS version 4's name space.
    let more = |path: &RawText| nfs::server_paths(path, &seen.exports);
    let paths: Vec<RawText> = candidate.paths.iter().flat_map(more).map(|path| path.as_path().into()).collect();
    let none = || format!("{} on {host} is missing or another folder", candidate.paths[0].display());
    if paths.len() == candidate.paths.len() {
        return Err(none());
    }
    let seen = look(host, &paths).map_err(|failure| failure.message)?;
    fits(&paths, &seen).ok_or_else(none)
}

fn look(host: &str, paths: &[RawText]) -> Result<HostView, Failure> {
    match channel::answer(host, &SnapshotRequest::Look(paths.to_vec()))? {
        SnapshotReply::Seen(seen) => Ok(seen),
        other => Err(Failure::system(format!("{host} answered {other:?} to a request about its folders"))),
    }
}

/// Returns a text that identifies a host, beyond its name.
pub fn identity(host: &str) -> Result<String, Failure> {
    seen(host).map(|seen| seen.identity)
}

/// Returns the description of a host, without any of its folders.
pub fn seen(host: &str) -> Result<HostView, Failure> {
    look(host, &[])
}

/// Returns the clocks that the bank's host compares its own with: this machine's, and that of the source's host.
pub fn clocks(known: &ClusterContext, home: Option<&SourceHome>) -> Vec<HostClock> {
    let now = Timestamp::now();
    let own = HostClock { host: known.own.clone(), at: now };
    let theirs =
        home.and_then(|home| Some(HostClock { host: home.host.clone(), at: now.checked_add(home.ahead).ok()? }));
    [own].into_iter().chain(theirs).collect()
}

/// Returns the root of the file system on its own host: the folder's path without the part below the mount point.
fn there(path: &RawText, real: &Path, line: &MountLine) -> PathBuf {
    let below = real.strip_prefix(line.mount.point.as_path()).unwrap_or(Path::new(""));
    let mut root = path.to_path();
    for _ in below.components() {
        root.pop();
    }
    root
}

/// Returns the leases as that host sees them: its path `root` is this machine's `point`.
fn gate(host: &str, lines: &[MountLine], point: &Path, root: &Path, known: &ClusterContext) -> Option<Gate> {
    let volume = |line: &MountLine| Volume {
        name: homing_mounts::volume_name(&line.mount),
        kind: FileSystemKind::of(&line.mount),
        mount: line.mount.clone(),
    };
    let place = (known.leases)(&[host.into()], &lines.iter().map(volume).collect::<Vec<_>>())?;
    let below = place.folder.strip_prefix(point).ok();
    let folder = below.map_or(place.folder.clone(), |below| root.join(below));
    Some(Gate { folder, server: place.server, limit: place.limit })
}
