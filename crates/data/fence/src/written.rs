//! The writing side for commands that declare their outputs. Also the reading side for a coordinator without reports:
//! it finds recent changes itself.

use crate::stamp::stamp;
use crate::watch::sync;
use crate::{CLOCKS, Fence, now_s, server_behind};
use homing_model::FileChange;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The most names below one directory that are reported.
const MOST: usize = 2_000;
/// A folder is read again when the last reading is older than `ANEW` and than `ANEW_COSTS` times its duration. A
/// listing of 100,000 names takes seconds.
const ANEW: Duration = Duration::from_secs(1);
const ANEW_COSTS: u32 = 20;

/// Returns the state of `path`, synced to its servers: a file, or a directory with its content. `shown` is its name
/// on the other hosts. Returns nothing if no other host can cache an older state.
pub fn written(path: &Path, shown: &Path) -> Vec<FileChange> {
    // On the server of a volume, the folder is local, although other hosts mount it under another name.
    if path == shown && Fence::at(path).0.is_none() {
        return Vec::new();
    }
    let mut changes = Vec::new();
    let mut todo = vec![(path.to_path_buf(), shown.to_path_buf())];
    while let Some((path, shown)) = todo.pop() {
        sync(&path);
        let now = stamp(&path);
        // The name may have existed before, and another host may cache that state.
        changes.push(FileChange { path: shown.as_path().into(), now, fresh: false, was: None });
        if now.is_some_and(|now| now.dir) && changes.len() + todo.len() < MOST {
            let entries = std::fs::read_dir(&path).into_iter().flatten().flatten().take(MOST);
            todo.extend(entries.map(|e| (e.path(), shown.join(e.file_name()))));
        }
    }
    changes
}

/// Looks of one host at files that other hosts may have written just before.
#[derive(Debug, Default)]
pub struct Looks {
    folders: HashMap<PathBuf, FolderFence>,
    /// Folder in which a file may be made to measure a server's clock.
    home: PathBuf,
    /// Mount point of that folder and how far its server's clock is behind, once measured.
    server: Option<(PathBuf, Duration)>,
}

#[derive(Debug)]
struct FolderFence {
    fence: Option<&'static Fence>,
    mount: PathBuf,
    at: Option<Instant>,
    took: Duration,
}

impl Looks {
    /// Makes the looks of a run whose folder this is.
    pub fn from_folder(home: &Path) -> Looks {
        Looks { home: home.to_path_buf(), ..Looks::default() }
    }

    /// Returns how far the clock that gives files below this mount their times is behind.
    fn behind(&mut self, mount: &Path) -> Duration {
        let home = &self.home;
        let (of, behind) = self.server.get_or_insert_with(|| (Fence::at(home).1, server_behind(home)));
        if of == mount { *behind } else { Duration::ZERO }
    }

    /// Makes this host see the entries of the folder of `path`, unless it has just done so. Returns false if no host
    /// can see an old state there.
    pub fn anew(&mut self, path: &Path) -> bool {
        let Some(parent) = path.parent() else { return false };
        if !self.folders.contains_key(parent) {
            let (fence, mount) = Fence::at(path);
            self.folders.insert(parent.to_path_buf(), FolderFence { fence, mount, at: None, took: Duration::ZERO });
        }
        let Some(folder) = self.folders.get_mut(parent) else { return false };
        let Some(fence) = folder.fence else { return false };
        let rest = ANEW.max(folder.took * ANEW_COSTS);
        if folder.at.is_none_or(|at| at.elapsed() > rest) {
            let began = Instant::now();
            (fence.look_into)(path, &folder.mount);
            (folder.at, folder.took) = (Some(Instant::now()), began.elapsed());
        }
        true
    }

    /// Returns the state of `path`, if it changed so recently that another host may cache an older one.
    pub fn changed(&mut self, path: &Path) -> Option<FileChange> {
        if !self.anew(path) {
            return None;
        }
        let folder = self.folders.get(path.parent()?)?;
        let (fence, mount) = (folder.fence?, folder.mount.clone());
        let flags = AtFlags::NO_AUTOMOUNT | AtFlags::STATX_FORCE_SYNC;
        let seen = statx(CWD, path, flags, StatxFlags::BASIC_STATS).ok()?;
        let since = now_s() - (fence.bound + CLOCKS + self.behind(&mount)).as_secs() as i64;
        let recent = seen.stx_mtime.tv_sec.max(seen.stx_ctime.tv_sec) >= since;
        let change = || FileChange { path: path.into(), now: stamp(path), fresh: false, was: None };
        recent.then(change).filter(|change| change.now.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_told_with_what_is_in_it_under_the_name_that_others_know() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(dir.path().join("sub/f"), "12").unwrap();
        let changes = written(&dir.path().join("sub"), Path::new("/data/sub"));
        let told: Vec<_> = changes.iter().map(|c| (c.path.display(), c.now.unwrap().size, c.fresh)).collect();
        assert_eq!(told, [("/data/sub".to_string(), 0, false), ("/data/sub/f".to_string(), 2, false)]);
        let gone = written(&dir.path().join("none"), Path::new("/data/none"));
        assert_eq!(gone.iter().map(|c| c.now).collect::<Vec<_>>(), [None]);
    }

    #[test]
    fn a_disk_of_ones_own_needs_no_fence() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, "12").unwrap();
        if Fence::at(&file).0.is_none() {
            assert!(written(&file, &file).is_empty());
            assert!(!Looks::default().anew(&file) && Looks::default().changed(&file).is_none());
        }
    }
}
