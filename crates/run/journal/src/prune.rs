//! Old runs go, when that is asked for.

use crate::list::folders;
use crate::lock::{Lock, living};
use crate::{FILE, JournalError};
use homing_os::folder::open_plain_as;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// In the folder of runs: what is told of those that were removed, a JSON object a line.
pub const PRUNED: &str = "pruned.jsonl";

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
/// With `dry`, they are told and stay. `note` is handed the name and the folder of each that goes: lines, for
/// [`PRUNED`], that are to outlive it. A run of which they cannot be written stays.
pub fn prune(root: &Path, before: SystemTime, dry: bool, note: impl Fn(&str, &Path) -> String) -> Vec<Pruned> {
    let mut old: Vec<_> = folders(root).filter(|(_, dir)| is_older(dir, before)).collect();
    old.sort();
    let gone = old.into_iter().map(|(name, dir)| {
        let freed = remove(root, &dir, dry, || note(&name, &dir));
        Pruned { name, freed }
    });
    gone.filter(|run| !matches!(run.freed, Err(JournalError::Held { .. }))).collect()
}

/// What differs by more from this machine's clock contradicts it.
const DOUBT: Duration = Duration::from_secs(24 * 3600);

/// Why this machine's clock, `now`, cannot be believed when runs are to go by their age; `None`: nothing speaks against it.
/// The folder of runs gets a time from its file system, which is a server's where it is shared, and no run was written to
/// in the future.
pub fn clock_doubt(root: &Path, now: SystemTime) -> Option<String> {
    let (times, at) = (rustix::fs::UTIME_NOW, rustix::fs::AtFlags::empty());
    let present = rustix::fs::Timespec { tv_sec: 0, tv_nsec: times };
    let both = rustix::fs::Timestamps { last_access: present, last_modification: present };
    let written = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let ahead = |at: SystemTime| at.duration_since(now).is_ok_and(|by| by > DOUBT);
    if rustix::fs::utimensat(rustix::fs::CWD, root, &both, at).is_ok()
        && let Some(there) = written(root)
        && (ahead(there) || now.duration_since(there).is_ok_and(|by| by > DOUBT))
    {
        return Some(format!("the file system of {} has another time, by more than a day", root.display()));
    }
    let (name, _) = folders(root).find(|(_, dir)| written(&dir.join(FILE)).is_some_and(ahead))?;
    Some(format!("the run {name} was written to more than a day later than this machine's clock"))
}

fn is_older(dir: &Path, before: SystemTime) -> bool {
    fs::metadata(dir.join(FILE)).and_then(|m| m.modified()).is_ok_and(|written| written < before)
}

/// The lock is taken first, so that nobody resumes what is being removed.
fn remove(root: &Path, dir: &Path, dry: bool, note: impl FnOnce() -> String) -> Result<u64, JournalError> {
    let bytes = size(dir);
    let journal = dir.join(FILE);
    let journal = File::options().append(true).open(&journal).map_err(JournalError::io("open", &journal))?;
    let lock = match Lock::take(dir, &journal) {
        // On a full disk nobody else can write its name either; the kernel's lock is held as long as the journal is open.
        Err(JournalError::Full { .. }) if living(dir).is_none() => None,
        taken => Some(taken?),
    };
    if !dry {
        let lines = note();
        let gone = || fs::remove_dir_all(dir).map_err(JournalError::io("remove", dir));
        match keep(root, &lines) {
            // A full disk has room for them once the run is gone.
            Err(JournalError::Full { .. }) => gone().and_then(|()| keep(root, &lines))?,
            kept => kept.and_then(|()| gone())?,
        }
    }
    drop(lock);
    Ok(bytes)
}

/// Appends lines to those of the runs that are gone.
fn keep(root: &Path, lines: &str) -> Result<(), JournalError> {
    if lines.is_empty() {
        return Ok(());
    }
    let path = root.join(PRUNED);
    let append = || -> io::Result<()> {
        let mut file = open_plain_as(&path, File::options().append(true).create(true).mode(0o600))?;
        let meta = file.metadata()?;
        // Root may prune for a user, in whose folder a name can be one more of anybody's file.
        if meta.nlink() > 1 {
            return Err(io::Error::other("it has more than one name"));
        }
        // The user is to read it and to prune on.
        let owner = fs::metadata(root)?.uid();
        if meta.len() == 0 && meta.uid() != owner {
            std::os::unix::fs::fchown(&file, Some(owner), None)?;
        }
        // Whoever was killed here before has left a part of a line: what follows is not to be a part of it.
        file.write_all(format!("\n{lines}").as_bytes())?;
        file.sync_data()
    };
    append().map_err(JournalError::io("note in", &path))
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
