//! Folders for trial restores. They are removed when the trial ends; if it was killed, at the vault's next use.

use crate::remove;
use crate::vault::Vault;
use homing_os::folder::lock::FileLock;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The beginning of the names of such folders.
const HEAD: &str = "verify-";
/// The number of random characters after it.
const RANDOM: usize = 6;
/// The ending of the name of a folder that is being removed.
const GONE: &str = ".gone";
/// The most tries, in case that another process takes the new folder for an abandoned one and removes it.
const TRIES: usize = 100;

/// A folder of a trial, removed when dropped.
pub struct Scratch {
    path: PathBuf,
    _held: FileLock,
}

impl Scratch {
    /// Makes one in the vault.
    pub fn new(vault: &Vault) -> io::Result<Scratch> {
        for _ in 0..TRIES {
            let made = tempfile::Builder::new().prefix(HEAD).rand_bytes(RANDOM).tempdir_in(vault.own())?;
            if let Some(held) = hold(made.path())? {
                let scratch = Scratch { path: made.keep(), _held: held };
                DirBuilder::new().mode(0o700).create(scratch.tree())?;
                return Ok(scratch);
            }
        }
        Err(io::Error::other("another process removed each new folder"))
    }

    /// Returns the folder for the restored files.
    pub fn tree(&self) -> PathBuf {
        self.path.join("tree")
    }

    /// Returns the path of a file for the names of the restored files.
    pub fn names(&self) -> PathBuf {
        self.path.join("names")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = remove::delete(&self.path);
    }
}

/// Locks a folder. `None`: another process holds it, or has removed it.
fn hold(folder: &Path) -> io::Result<Option<FileLock>> {
    match FileLock::try_take(&folder.join("lock")) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other,
    }
}

/// Removes the folders that no process uses. It ignores errors: a user who may not remove a folder has not left it,
/// and the next call tries again.
pub fn sweep(vault: &Vault) {
    for entry in fs::read_dir(vault.own()).into_iter().flatten().flatten() {
        let folder = entry.path();
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        match left(&entry.file_name()) {
            Some(true) => drop(remove::delete(&folder)),
            Some(false) => drop(take_away(&folder)),
            None => {}
        }
    }
}

/// Returns whether a folder of that name is being removed; `None`: it is no such folder.
fn left(name: &OsStr) -> Option<bool> {
    let rest = name.to_str()?.strip_prefix(HEAD)?;
    let random = rest.strip_suffix(GONE).unwrap_or(rest);
    let known = random.len() == RANDOM && random.bytes().all(|b| b.is_ascii_alphanumeric());
    known.then_some(random != rest)
}

/// Renames the folder first: a process that has just made it then finds no place for its lock.
fn take_away(folder: &Path) -> io::Result<()> {
    let Some(_held) = hold(folder)? else { return Ok(()) };
    let mut gone = folder.as_os_str().to_owned();
    gone.push(GONE);
    fs::rename(folder, &gone)?;
    remove::delete(Path::new(&gone))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(vault: &Vault) -> Vec<String> {
        let entries = fs::read_dir(vault.own()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_used_stays_what_was_left_goes_and_other_names_are_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let vault = Vault { path: dir.path().into() };
        for name in ["verify-abc123/d", "verify-Abc123.gone/d", "verify-this-bank", "verify-abc12", "mine"] {
            fs::create_dir_all(vault.own().join(name)).unwrap();
        }
        let file = vault.own().join("verify-abc124");
        fs::write(&file, "").unwrap();
        let used = Scratch::new(&vault).unwrap();
        fs::write(used.tree().join("x"), "x").unwrap();
        sweep(&vault);
        assert!(used.tree().join("x").exists());
        let own = used.path.file_name().unwrap().to_str().unwrap().to_string();
        let mut stay =
            vec!["mine".to_string(), own, "verify-abc12".into(), "verify-abc124".into(), "verify-this-bank".into()];
        stay.sort();
        assert_eq!(names(&vault), stay);
        drop(used);
        assert_eq!(names(&vault), ["mine", "verify-abc12", "verify-abc124", "verify-this-bank"]);
    }
}
