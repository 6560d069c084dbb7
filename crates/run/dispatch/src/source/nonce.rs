//! Files by which hosts prove that they have the files of an NFS volume or an sshfs without its mount, as its server
//! does. Their names cannot be guessed. They are removed when the run is over.

use crate::VolumeAlias;
use homing_locate::{Locator, Volume};
use homing_model::{Mount, RawText};
use homing_mounts::{FileSystemKind, nfs};
use homing_os::folder::{Existing, make_file, unguessable};
use homing_os::threads::lock;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The files made so far. Dropping the last clone removes them.
#[derive(Clone, Default)]
pub struct Nonces(Arc<NonceFiles>);

#[derive(Default)]
struct NonceFiles(Mutex<NonceState>);

#[derive(Default)]
struct NonceState {
    files: Vec<PathBuf>,
    tried: Vec<Mount>,
}

impl Drop for NonceFiles {
    fn drop(&mut self) {
        self.remove();
    }
}

impl NonceFiles {
    fn remove(&self) {
        for file in lock(&self.0).files.drain(..) {
            let _ = fs::remove_file(file);
        }
    }
}

impl Nonces {
    /// Removes all files. The thread that reads tasks may hold a clone until the end of the process.
    pub fn remove(&self) {
        self.0.remove();
    }

    /// Returns the question to hosts about a volume that one server has, the first time that the volume is met.
    /// `near` are folders where the user may be able to write, if not at the mount point.
    pub fn served(&self, volume: &Volume, near: &[&Path], locator: &Locator) -> Option<VolumeAlias> {
        if !matches!(volume.kind, FileSystemKind::Nfs | FileSystemKind::Sshfs) {
            return None;
        }
        let mut state = lock(&self.0.0);
        if state.tried.contains(&volume.mount) {
            return None;
        }
        state.tried.push(volume.mount.clone());
        let point = volume.mount.point.to_path();
        let path = nfs::source_path(&volume.mount);
        let same = |dir: &&Path| locator.volume_of(dir).is_ok_and(|v| v.mount == volume.mount);
        let folders = [point.as_path()].into_iter().chain(near.iter().copied()).filter(same);
        let (file, secret) = folders.filter_map(|dir| make(dir).ok()).next()?;
        let below = file.canonicalize().unwrap_or_else(|_| file.clone());
        let nonce = below.strip_prefix(&point).ok().map(RawText::from);
        state.files.push(file);
        Some(VolumeAlias { mount: volume.mount.clone(), path, nonce: nonce?, secret: secret.as_str().into() })
    }
}

fn make(dir: &Path) -> std::io::Result<(PathBuf, String)> {
    let (name, secret) = (unguessable()?, unguessable()?);
    let file = dir.join(format!(".homing-nonce-{name}"));
    make_file(&file, Existing::Refuse, 0o666)?.write_all(secret.as_bytes())?;
    Ok((file, secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_goes_with_the_last_holder() {
        let dir = tempfile::tempdir().unwrap();
        let locator = Locator::new().unwrap();
        // The test treats this folder as an NFS mount.
        let mut volume = locator.volume_of(dir.path()).unwrap();
        let nonces = Nonces::default();
        assert!(nonces.served(&volume, &[dir.path()], &locator).is_none(), "a local disk has no server");
        volume.kind = FileSystemKind::Nfs;
        let held = nonces.clone();
        let served = nonces.served(&volume, &[dir.path()], &locator);
        let there = served.map(|s| volume.mount.point.to_path().join(s.nonce.as_path()));
        assert!(there.as_ref().is_none_or(|file| file.exists()), "{there:?}");
        assert!(nonces.served(&volume, &[dir.path()], &locator).is_none(), "each volume once");
        drop(nonces);
        assert!(there.as_ref().is_none_or(|file| file.exists()), "still held");
        drop(held);
        assert!(there.is_none_or(|file| !file.exists()));
    }
}
