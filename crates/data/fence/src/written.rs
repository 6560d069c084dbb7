//! The writing side of a command that says what it writes, and the reading
//! side of a coordinator that is told nothing: what changed a moment ago.

use crate::stamp::stamp;
use crate::watch::sync;
use crate::{CLOCKS, Fence, now_s, server_behind};
use homing_model::Change;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Names below one directory that are told.
const MOST: usize = 2_000;
/// A folder is looked at anew when the last look is older than this, or than
/// so many times what that look took: a listing of 100,000 names takes seconds.
const ANEW: Duration = Duration::from_secs(1);
const ANEW_COSTS: u32 = 20;

/// What stands at `path`, synced to its servers: a file, or a directory with
/// what is in it. `shown` is its name on the other hosts. Empty where no other
/// host can hold an older state in a cache.
pub fn written(path: &Path, shown: &Path) -> Vec<Change> {
    // The server of a volume has as its own what others mount under another name.
    if path == shown && Fence::at(path).0.is_none() {
        return Vec::new();
    }
    let mut changes = Vec::new();
    let mut todo = vec![(path.to_path_buf(), shown.to_path_buf())];
    while let Some((path, shown)) = todo.pop() {
        sync(&path);
        let now = stamp(&path);
        // It may have stood there before, and another host may remember that.
        changes.push(Change { path: shown.as_path().into(), now, fresh: false, was: None });
        if now.is_some_and(|now| now.dir) && changes.len() + todo.len() < MOST {
            let entries = std::fs::read_dir(&path).into_iter().flatten().flatten().take(MOST);
            todo.extend(entries.map(|e| (e.path(), shown.join(e.file_name()))));
        }
    }
    changes
}

/// One host's looks at files that other hosts may have written just before.
#[derive(Debug, Default)]
pub struct Looks {
    folders: HashMap<PathBuf, Folder>,
    /// Where a file may be made to learn a server's time.
    home: PathBuf,
    /// Of the server of that folder, once it was asked: where it is mounted, and how far its clock is behind.
    server: Option<(PathBuf, Duration)>,
}

#[derive(Debug)]
struct Folder {
    fence: Option<&'static Fence>,
    mount: PathBuf,
    at: Option<Instant>,
    took: Duration,
}

impl Looks {
    /// For a run in this folder.
    pub fn from_folder(home: &Path) -> Looks {
        Looks { home: home.to_path_buf(), ..Looks::default() }
    }

    /// How far the clock is behind that gives files below this mount their times.
    fn behind(&mut self, mount: &Path) -> Duration {
        let home = &self.home;
        let (of, behind) = self.server.get_or_insert_with(|| (Fence::at(home).1, server_behind(home)));
        if of == mount { *behind } else { Duration::ZERO }
    }

    /// Makes this host see what is in the folder that holds `path`, unless it
    /// has just done so. False where there is no need: nothing can be out of date
    /// there on any host.
    pub fn anew(&mut self, path: &Path) -> bool {
        let Some(parent) = path.parent() else { return false };
        if !self.folders.contains_key(parent) {
            let (fence, mount) = Fence::at(path);
            self.folders.insert(parent.to_path_buf(), Folder { fence, mount, at: None, took: Duration::ZERO });
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

    /// The state of `path`, if it changed so shortly ago that another host may
    /// remember an older one.
    pub fn changed(&mut self, path: &Path) -> Option<Change> {
        if !self.anew(path) {
            return None;
        }
        let folder = self.folders.get(path.parent()?)?;
        let (fence, mount) = (folder.fence?, folder.mount.clone());
        let flags = AtFlags::NO_AUTOMOUNT | AtFlags::STATX_FORCE_SYNC;
        let seen = statx(CWD, path, flags, StatxFlags::BASIC_STATS).ok()?;
        let since = now_s() - (fence.bound + CLOCKS + self.behind(&mount)).as_secs() as i64;
        let recent = seen.stx_mtime.tv_sec.max(seen.stx_ctime.tv_sec) >= since;
        let change = || Change { path: path.into(), now: stamp(path), fresh: false, was: None };
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
