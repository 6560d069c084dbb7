//! Finds the host of the cluster that holds a job's working directory, and the files that its command names.

use homing_locate::{CandidatePaths, Finder};
use homing_lsf::place::{ClusterHost, host_of};
use homing_mounts::FileSystemKind;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files of a working directory that are checked to find where most of it lies.
const LOOKED_AT: usize = 1000;

/// The place of the working directory.
#[derive(Debug)]
pub struct HomeLocation {
    /// The host that holds it.
    pub host: String,
    /// The path of it on that host, if that is another one.
    pub path: Option<PathBuf>,
}

/// Returns its place; the error explains why no host of the cluster holds it.
pub fn home(finder: &Finder, directory: &Path, known: &[ClusterHost], own: &str) -> Result<HomeLocation, String> {
    let locator = finder.locator();
    let volume = locator.volume_of(directory).map_err(|e| e.to_string())?;
    match volume.kind {
        FileSystemKind::Local => Ok(HomeLocation { host: own.into(), path: None }),
        FileSystemKind::Nfs => {
            let (server, path) = locator.server_of(directory).ok_or("the mount table does not name its server")?;
            let host = host_of(&server, known)
                .ok_or_else(|| format!("{server}, its server, is not a host of the cluster that takes jobs"))?;
            Ok(HomeLocation { host: host.into(), path: Some(path) })
        }
        _ => {
            // It is spread over hosts: the host that holds most of its files counts.
            let bytes = bytes(&finder.folder(directory, LOOKED_AT).shared, known);
            let best = bytes.into_iter().max_by_key(|(_, bytes)| *bytes);
            let (host, _) =
                best.ok_or_else(|| format!("homing knows no host of the cluster that holds files of {}", volume.name))?;
            Ok(HomeLocation { host, path: None })
        }
    }
}

/// Sums up bytes by host of the cluster.
fn bytes(shared: &BTreeMap<String, u64>, known: &[ClusterHost]) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (storage, bytes) in shared {
        if let Some(host) = host_of(storage, known) {
            *sums.entry(host.to_string()).or_default() += bytes;
        }
    }
    sums
}

/// Returns the bytes of the files that the command names, by host.
pub fn inputs(
    finder: &Finder,
    named: &CandidatePaths,
    directory: &Path,
    known: &[ClusterHost],
    own: &str,
) -> BTreeMap<String, u64> {
    let found = finder.inputs(named);
    let mut sums = bytes(&found.shared, known);
    // Programs of this machine are everywhere: they do not favour any host.
    let here: u64 = found.own.iter().filter(|(path, _)| path.starts_with(directory)).map(|(_, bytes)| bytes).sum();
    if here > 0 {
        *sums.entry(own.to_string()).or_default() += here;
    }
    sums
}

/// Returns the folder that contains a directory and that each machine has for itself: no job has to run next to such
/// a folder.
pub fn no_data(directory: &Path) -> Option<&'static str> {
    let real = directory.canonicalize().unwrap_or_else(|_| directory.to_path_buf());
    ["/proc", "/sys", "/dev", "/run", "/tmp"].into_iter().find(|folder| real.starts_with(folder))
}
