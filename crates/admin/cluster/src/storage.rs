//! Finds the storage server that a job of `iobsub` uses, with the leases that it shares with runs.

use crate::Cluster;
use homing_dispatch::source::leases;
use homing_locate::Finder;
use homing_model::RawText;
use homing_mounts::FileSystemKind;
use homing_queue::Storage;
use std::path::{Path, PathBuf};

/// Returns the NFS server of a directory. `there` is the path of the directory on the host of the job, if that is
/// another host. That host may be the server itself, where the path of the leases differs. An error explains why the
/// job has no lease.
pub fn of(finder: &Finder, directory: &Path, there: Option<&Path>) -> Result<Option<Storage>, String> {
    let locator = finder.locator();
    let Some(volume) = locator.volume_of(directory).ok().filter(|volume| volume.kind == FileSystemKind::Nfs) else {
        return Ok(None);
    };
    let server = homing_mounts::nfs::server(&volume.mount);
    let names = [vec![server.clone()], homing_os::names::addresses(&server)].concat();
    let said = Cluster::of_queue().map_err(|e| e.to_string())?.servers();
    let root = volume.mount.point.to_path();
    let Some(place) = leases::place(&names, std::slice::from_ref(&volume), &said) else { return Ok(None) };
    if let Some(why) = place.unfit.filter(|_| there.is_none()) {
        return Err(why);
    }
    let leases = match there {
        None => place.folder,
        Some(there) => moved(&place.folder, &root, directory, there)
            .ok_or_else(|| format!("the path of {} on its storage host is unknown", place.folder.display()))?,
    };
    Ok(Some(Storage {
        name: server,
        server: place.server,
        leases: RawText::from(leases.as_path()),
        limit: place.limit,
    }))
}

/// Returns the path of a folder on a host where `directory`, which is below the volume's `root`, has the path
/// `there`. A folder outside of the volume has one path everywhere.
fn moved(folder: &Path, root: &Path, directory: &Path, there: &Path) -> Option<PathBuf> {
    let Ok(below) = folder.strip_prefix(root) else { return Some(folder.to_path_buf()) };
    let deep = directory.strip_prefix(root).ok()?;
    there.ends_with(deep).then_some(())?;
    Some(there.ancestors().nth(deep.components().count())?.join(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_has_its_own_name_for_the_leases_of_its_volume() {
        let moved = |folder: &str, directory: &str, there: &str| {
            let moved = moved(folder.as_ref(), "/data".as_ref(), directory.as_ref(), there.as_ref());
            moved.map(|path| path.display().to_string())
        };
        let leases = "/data/.homing-leases";
        assert_eq!(moved(leases, "/data/a/b", "/srv/x/a/b").as_deref(), Some("/srv/x/.homing-leases"));
        assert_eq!(moved(leases, "/data", "/srv/x").as_deref(), Some("/srv/x/.homing-leases"));
        assert_eq!(moved(leases, "/data/a", "/data/a").as_deref(), Some(leases));
        assert_eq!(moved("/shared/leases", "/data/a", "/srv/a").as_deref(), Some("/shared/leases"));
        assert_eq!(moved(leases, "/data/a", "/srv/other"), None);
    }
}
