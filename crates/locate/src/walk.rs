//! The regular files below a directory, within a bound.

use std::io;
use std::path::{Path, PathBuf};

/// One thing met on a walk.
#[derive(Debug)]
pub enum Found {
    /// A regular file.
    File(PathBuf),
    /// A directory (or the rest of one) that cannot be listed, and why.
    Unreadable(PathBuf, io::Error),
}

/// Walks below `dir` until `limit` things are found, and gives `visit` each
/// folder's as it is listed, in order of names. True when there was more than
/// the limit. Symbolic links are not followed; sockets, devices and the like
/// are passed over.
pub fn walk(dir: &Path, limit: usize, visit: &mut dyn FnMut(Vec<Found>)) -> bool {
    let mut left = limit;
    let mut open = vec![dir.to_path_buf()];
    while let Some(dir) = open.pop() {
        let (files, mut below, error) = list(&dir);
        below.reverse();
        open.append(&mut below);
        let met = files.into_iter().map(Found::File).chain(error.map(|e| Found::Unreadable(dir, e)));
        let mut met: Vec<Found> = met.collect();
        let more = met.len() > left;
        met.truncate(left);
        left -= met.len();
        visit(met);
        if more {
            return true;
        }
    }
    false
}

/// Files and directories in one directory, and why the list is not whole.
fn list(dir: &Path) -> (Vec<PathBuf>, Vec<PathBuf>, Option<io::Error>) {
    let (mut files, mut below, mut error) = (Vec::new(), Vec::new(), None);
    match std::fs::read_dir(dir) {
        Err(e) => error = Some(e),
        Ok(entries) => {
            for entry in entries {
                match entry.and_then(|e| e.file_type().map(|kind| (e.path(), kind))) {
                    Ok((path, kind)) if kind.is_dir() => below.push(path),
                    Ok((path, kind)) if kind.is_file() => files.push(path),
                    Ok(_) => {}
                    Err(e) => error = Some(e),
                }
            }
        }
    }
    files.sort_unstable();
    below.sort_unstable();
    (files, below, error)
}
