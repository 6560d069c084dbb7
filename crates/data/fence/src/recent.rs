//! Finds files that changed shortly before the watch began. Other hosts may still cache an older state of them.

use crate::stamp::stamp;
use crate::{CLOCKS, Fence, now_s};
use homing_model::FileChange;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// Returns the files and folders below `root` that changed recently: clients of the file system may still see old
/// states of them. Returns none for coherent file systems. The clock that gave them their times may be `behind` ours
/// by that much.
pub fn recent(root: &Path, behind: Duration) -> Vec<FileChange> {
    let (Some(fence), mount) = Fence::at(root) else { return Vec::new() };
    let since = now_s() - (fence.bound + CLOCKS + behind).as_secs() as i64;
    let mut found = Vec::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(folder) = todo.pop() {
        if fence.own_marks {
            // Otherwise the program of the mount would return its outdated states.
            (fence.look_into)(&folder.join("any"), &mount);
        }
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(meta) = path.symlink_metadata() else { continue };
            if meta.mtime().max(meta.ctime()) >= since {
                found.push(FileChange { path: path.as_path().into(), now: stamp(&path), fresh: false, was: None });
            }
            if meta.is_dir() && entry.file_name() != ".git" {
                todo.push(path);
            }
        }
    }
    found
}
