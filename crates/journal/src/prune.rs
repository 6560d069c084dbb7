//! Old runs go, when that is asked for.

use crate::list::folders;
use crate::lock::Lock;
use crate::{FILE, JournalError};
use std::fs::{self, File};
use std::path::Path;
use std::time::SystemTime;

/// A run that was to go.
#[derive(Debug)]
pub struct Pruned {
    /// Its name.
    pub name: String,
    /// Bytes of its folder that are free again, or why it stays.
    pub freed: Result<u64, JournalError>,
}

/// Removes the runs below `root` whose journals nobody has written to since `before`.
/// A run that a writer may still hold stays, and is not told of.
/// With `dry`, they are told and stay.
pub fn prune(root: &Path, before: SystemTime, dry: bool) -> Vec<Pruned> {
    let mut old: Vec<_> = folders(root).filter(|(_, dir)| is_older(dir, before)).collect();
    old.sort();
    let gone = old.into_iter().map(|(name, dir)| Pruned { name, freed: remove(&dir, dry) });
    gone.filter(|run| !matches!(run.freed, Err(JournalError::Held { .. }))).collect()
}

fn is_older(dir: &Path, before: SystemTime) -> bool {
    fs::metadata(dir.join(FILE)).and_then(|m| m.modified()).is_ok_and(|written| written < before)
}

/// The lock is taken first, so that nobody resumes what is being removed.
fn remove(dir: &Path, dry: bool) -> Result<u64, JournalError> {
    let bytes = size(dir);
    let journal = dir.join(FILE);
    let journal = File::options().append(true).open(&journal).map_err(JournalError::io("open", &journal))?;
    let lock = Lock::take(dir, &journal)?;
    if !dry {
        fs::remove_dir_all(dir).map_err(JournalError::io("remove", dir))?;
    }
    drop(lock);
    Ok(bytes)
}

/// Bytes of the regular files below a folder; symbolic links are not followed.
fn size(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => size(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    });
    sizes.sum()
}
