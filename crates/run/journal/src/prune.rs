//! Removes old runs on request.

use crate::list::folders;
use crate::lock::{Lock, living};
use crate::{FILE, JournalError};
use homing_os::folder::open_plain_as;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The file in the folder of runs that describes the removed runs, one JSON object a line.
pub const PRUNED: &str = "pruned.jsonl";

/// A run that was to be removed.
#[derive(Debug)]
pub struct Pruned {
    /// Its name.
    pub name: String,
    /// The freed bytes of its folder, or the reason why it stays.
    pub freed: Result<u64, JournalError>,
}

/// Removes the runs below `root` whose journals were last written before `before`. A run that a writer may still hold
/// stays, and is not returned. With `dry`, the runs are returned and stay. `note` receives the name and the folder of
/// each removed run, and returns lines that are kept in [`PRUNED`]. If they cannot be written, the run stays.
pub fn prune(root: &Path, before: SystemTime, dry: bool, note: impl Fn(&str, &Path) -> String) -> Vec<Pruned> {
    let mut old: Vec<_> = folders(root).filter(|(_, dir)| is_older(dir, before)).collect();
    old.sort();
    let gone = old.into_iter().map(|(name, dir)| {
        let freed = remove(root, &dir, dry, || note(&name, &dir));
        Pruned { name, freed }
    });
    gone.filter(|run| !matches!(run.freed, Err(JournalError::Held { .. }))).collect()
}

/// The difference beyond which a time contradicts the clock of this machine.
const DOUBT: Duration = Duration::from_secs(24 * 3600);

/// Returns why the clock of this machine, `now`, is not reliable enough to remove runs by age, or `None` if no fact
/// contradicts it. The file system stamps the folder of runs; on a shared file system, with the time of its server.
/// And no run can be written in the future.
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
        return Some(format!("the clock of the file system of {} differs by more than a day", root.display()));
    }
    let (name, _) = folders(root).find(|(_, dir)| written(&dir.join(FILE)).is_some_and(ahead))?;
    Some(format!("the run {name} was last written more than a day after the present time of this machine"))
}

fn is_older(dir: &Path, before: SystemTime) -> bool {
    fs::metadata(dir.join(FILE)).and_then(|m| m.modified()).is_ok_and(|written| written < before)
}

/// Removes one run. Takes the lock first, so that no process resumes the run meanwhile.
fn remove(root: &Path, dir: &Path, dry: bool, note: impl FnOnce() -> String) -> Result<u64, JournalError> {
    let bytes = size(dir);
    let journal = dir.join(FILE);
    let journal = File::options().append(true).open(&journal).map_err(JournalError::io("open", &journal))?;
    let lock = match Lock::take(dir, &journal) {
        // On a full disk no other process can write its name either. The kernel's lock is held while the journal is
        // open.
        Err(JournalError::Full { .. }) if living(dir).is_none() => None,
        taken => Some(taken?),
    };
    if !dry {
        let lines = note();
        let gone = || fs::remove_dir_all(dir).map_err(JournalError::io("remove", dir));
        match keep(root, &lines) {
            // A full disk has space for the lines once the run is gone.
            Err(JournalError::Full { .. }) => gone().and_then(|()| keep(root, &lines))?,
            kept => kept.and_then(|()| gone())?,
        }
    }
    drop(lock);
    Ok(bytes)
}

/// Appends lines to the file of removed runs.
fn keep(root: &Path, lines: &str) -> Result<(), JournalError> {
    if lines.is_empty() {
        return Ok(());
    }
    let path = root.join(PRUNED);
    let append = || -> io::Result<()> {
        let mut file = open_plain_as(&path, File::options().append(true).create(true).mode(0o600))?;
        let meta = file.metadata()?;
        // If root prunes for a user, this name in the user's folder may be a hard link to a file of any other user.
        if meta.nlink() > 1 {
            return Err(io::Error::other("it has more than one hard link"));
        }
        // The user must be able to read the file and to prune later.
        let owner = fs::metadata(root)?.uid();
        if meta.len() == 0 && meta.uid() != owner {
            std::os::unix::fs::fchown(&file, Some(owner), None)?;
        }
        // A process that was killed here may have left a part of a line. The newline separates the new lines from it.
        file.write_all(format!("\n{lines}").as_bytes())?;
        file.sync_data()
    };
    append().map_err(JournalError::io("note in", &path))
}

/// Returns the bytes of the regular files below a folder. Does not follow symbolic links.
fn size(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => size(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    });
    sizes.sum()
}
