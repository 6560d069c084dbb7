//! Walks the regular files below a directory, up to the caller's limit (`TREE_LIMIT` for the inputs of a task).

use std::fs::ReadDir;
use std::io;
use std::path::{Path, PathBuf};

/// A file or directory that a walk found.
#[derive(Debug)]
pub enum WalkEntry {
    /// A regular file.
    File(PathBuf),
    /// A directory (or the rest of one) that cannot be listed, and why.
    Unreadable(PathBuf, io::Error),
}

/// Walks below `dir` until `limit` things are found. Calls `visit` with each folder's files as it is listed, in order
/// of names, while that folder is still open. Returns true if there was more than the limit. Symbolic links are not
/// followed; sockets, devices and the like are skipped.
pub fn walk(dir: &Path, limit: usize, visit: &mut dyn FnMut(Vec<WalkEntry>)) -> bool {
    let mut left = limit;
    let mut open = vec![dir.to_path_buf()];
    while let Some(dir) = open.pop() {
        let mut listing = list(&dir);
        listing.below.reverse();
        open.append(&mut listing.below);
        let met =
            listing.files.into_iter().map(WalkEntry::File).chain(listing.error.map(|e| WalkEntry::Unreadable(dir, e)));
        let mut met: Vec<WalkEntry> = met.collect();
        let more = met.len() > left;
        met.truncate(left);
        left -= met.len();
        visit(met);
        drop(listing.open);
        if more {
            return true;
        }
    }
    false
}

/// One directory: its files and directories, and why the list is incomplete.
#[derive(Default)]
struct Listing {
    files: Vec<PathBuf>,
    below: Vec<PathBuf>,
    error: Option<io::Error>,
    /// The directory, read to its end.
    open: Option<ReadDir>,
}

fn list(dir: &Path) -> Listing {
    let mut listing = Listing::default();
    match std::fs::read_dir(dir) {
        Err(e) => listing.error = Some(e),
        Ok(mut entries) => {
            for entry in entries.by_ref() {
                match entry.and_then(|e| e.file_type().map(|kind| (e.path(), kind))) {
                    Ok((path, kind)) if kind.is_dir() => listing.below.push(path),
                    Ok((path, kind)) if kind.is_file() => listing.files.push(path),
                    Ok(_) => {}
                    Err(e) => listing.error = Some(e),
                }
            }
            listing.open = Some(entries);
        }
    }
    listing.files.sort_unstable();
    listing.below.sort_unstable();
    listing
}
