//! The reading side.

use crate::stamp::{agrees, look};
use crate::{Kind, Step};
use homing_model::{Change, Stamp};
use rustix::fs::{Advice, Mode, OFlags, XattrFlags};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// What a fence cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Changes that were looked at.
    pub looked: usize,
    /// How often a look had to be repeated.
    pub again: usize,
}

/// A file that this host does not see as its writer left it, after the bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not visible here as it was written elsewhere, after {waited:?}: {}", .change.path.display(), told(.change, *.seen))]
pub struct Late {
    /// The change.
    pub change: Change,
    /// What this host sees.
    pub seen: Option<Stamp>,
    /// How long it was waited for.
    pub waited: Duration,
}

fn told(change: &Change, seen: Option<Stamp>) -> String {
    let one = |stamp: Option<Stamp>| stamp.map_or("no such file".into(), |s| format!("{} bytes", s.size));
    format!("written: {}, seen: {}", one(change.now), one(seen))
}

/// Returns when this host sees all of `changes`, or names the first that it does not.
pub fn settle(changes: &[Change]) -> Result<Settled, Box<Late>> {
    let mut done = Settled::default();
    let mut mounts: Vec<(PathBuf, Kind, PathBuf)> = Vec::new();
    for change in changes {
        let path = change.path.to_path();
        let parent = path.parent().unwrap_or(Path::new("/")).to_path_buf();
        let known = mounts.iter().find(|(folder, ..)| *folder == parent).cloned();
        let (_, kind, mount) = known.unwrap_or_else(|| {
            let (kind, mount) = Kind::of(&path);
            mounts.push((parent.clone(), kind, mount.clone()));
            (parent, kind, mount)
        });
        if kind.concerns(change) {
            done.looked += 1;
            done.again += settle_one(change, &path, kind, &mount)?;
        }
    }
    Ok(done)
}

fn settle_one(change: &Change, path: &Path, kind: Kind, mount: &Path) -> Result<usize, Box<Late>> {
    let began = Instant::now();
    let mut again = 0;
    let mut pause = Duration::from_millis(2);
    take(kind.first(), path, mount);
    loop {
        let seen = look(path, true);
        if agrees(change.now, seen) {
            return Ok(again);
        }
        if began.elapsed() > kind.bound() {
            return Err(Box::new(Late { change: change.clone(), seen, waited: began.elapsed() }));
        }
        if again > 0 {
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(100));
        }
        again += 1;
        take(kind.again(), path, mount);
    }
}

fn take(steps: &[Step], path: &Path, mount: &Path) {
    for step in steps {
        match step {
            Step::SyncAncestors => sync_ancestors(path, mount),
            Step::SyncFile => _ = look(path, true),
            Step::ListParent => list(path.parent().unwrap_or(mount)),
            // Not permitted on another user's file: then the listing and the bound remain.
            Step::Invalidate => drop(rustix::fs::lsetxattr(path, "inode-invalidate", b"1", XattrFlags::empty())),
            Step::DropPages => drop_pages(path),
        }
    }
}

fn sync_ancestors(path: &Path, mount: &Path) {
    let mut folders: Vec<&Path> = path.ancestors().skip(1).take_while(|p| p.starts_with(mount)).collect();
    folders.reverse();
    for folder in folders {
        let _ = look(folder, true);
    }
}

fn list(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        drop(entry);
    }
}

fn drop_pages(path: &Path) {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(path, flags, Mode::empty()) {
        let _ = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
    }
}
