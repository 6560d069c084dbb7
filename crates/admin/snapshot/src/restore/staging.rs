//! Private folders in the destination, into which rsync writes. In the destination itself rsync would open a pipe that
//! another user puts under a name, and wait for ever. Its last rename would replace an entry that has appeared
//! meanwhile. [`Placement`] moves complete entries to names that are free.

use super::TOLD;
use super::placement::Placement;
use super::tops::Tops;
use crate::ask::{Restored, StagedFolder, Staging};
use crate::destination::{Examiner, parts};
use crate::remove;
use crate::rsync;
use crate::run::{Cleanup, Reins};
use crate::walk;
use homing_model::RawText;
use homing_os::folder::{OpenFolder, move_if_free, unguessable};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The start of the names of private folders; [`unguessable`] makes the rest.
const HEAD: &str = ".homing-restore-";
/// The folder in a private folder in place of the destination, and an empty one for [`PrivateFolder::reaches`].
const TREE: &str = "tree";
const PROBE: &str = "probe";

/// Tries of the removal, and the time between them.
const REMOVALS: u32 = 100;
const REMOVAL: Duration = Duration::from_millis(50);

/// A private folder, removed when dropped.
pub(super) struct PrivateFolder {
    /// The folder that contains it.
    beside: OwnedFd,
    name: OsString,
    folder: OwnedFd,
    /// The names of its entries, for rsync.
    list: tempfile::NamedTempFile,
    /// The last field: it is dropped after the folder has been removed.
    _cleanup: Cleanup,
}

impl PrivateFolder {
    fn new(beside: OwnedFd, reins: &Reins) -> io::Result<PrivateFolder> {
        let cleanup = reins.cleanup();
        let (name, list) = (OsString::from(format!("{HEAD}{}", unguessable()?)), tempfile::NamedTempFile::new()?);
        rustix::fs::mkdirat(&beside, &name, Mode::RWXU)?;
        // Without CLOEXEC: rsync inherits the descriptor, and finds the folder by it even if another one has its name.
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::NOFOLLOW;
        let open = || {
            let folder = rustix::fs::openat(&beside, &name, flags, Mode::empty())?;
            // The mode with which rsync makes the folders above an entry.
            rustix::fs::mkdirat(&folder, TREE, Mode::RWXU | Mode::RWXG | Mode::RWXO).map(|()| folder)
        };
        let folder = open().inspect_err(|_| {
            let _ = rustix::fs::unlinkat(&beside, &name, AtFlags::REMOVEDIR);
        })?;
        Ok(PrivateFolder { beside, name, folder, list, _cleanup: cleanup })
    }

    /// Checks whether entries can be moved to another folder: moves an empty folder there and back.
    ///
    /// # Errors
    /// [`Errno::XDEV`] if the other folder is on another mount, or has a quota of its own.
    fn reaches(&self, other: BorrowedFd) -> io::Result<()> {
        match rustix::fs::mkdirat(&self.folder, PROBE, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
        let name = OsString::from(format!("{HEAD}{}", unguessable()?));
        move_if_free(self.folder.as_fd(), OsStr::new(PROBE), other, &name)?;
        // If another user has taken it away, the next call makes a new one.
        let _ = rustix::fs::renameat(other, &name, &self.folder, PROBE);
        Ok(())
    }

    /// Returns the path of a name in it. `process`: the process that has it open, as a name in `/proc`.
    fn inside(&self, process: &str, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{process}/fd/{}/{name}", self.folder.as_raw_fd()))
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        for _ in 0..REMOVALS {
            // By the open folder: another one may have its name.
            for name in [TREE, PROBE] {
                let _ = remove::delete(&self.inside("self", name));
            }
            match rustix::fs::unlinkat(&self.beside, &self.name, AtFlags::REMOVEDIR) {
                // An rsync on this host may still write after the connection to it has ended.
                Err(Errno::NOTEMPTY | Errno::EXIST) => std::thread::sleep(REMOVAL),
                _ => return,
            }
        }
    }
}

/// The private folders of one restore: one for each part of the destination across whose border no file can be moved.
pub(super) struct Stagings {
    into: PathBuf,
    reins: Reins,
    /// The destination; `None`: it does not exist, and is moved to its place with all its entries.
    root: Option<OwnedFd>,
    all: Vec<PrivateFolder>,
    /// The private folder of each folder with missing entries; `None`: none can be made.
    serving: HashMap<RawText, Option<usize>>,
    tops: Tops,
    /// The private folder of the last top.
    at: Option<usize>,
    refused: Vec<String>,
}

impl Stagings {
    /// Returns the state for a destination on this host, with no private folder yet.
    pub fn new(into: &Path, examiner: &Examiner, reins: &Reins) -> io::Result<Stagings> {
        let (into, reins, root) = (into.to_path_buf(), reins.clone(), examiner.root()?);
        let (all, serving, tops) = (Vec::new(), HashMap::new(), Tops::default());
        Ok(Stagings { into, reins, root, all, serving, tops, at: None, refused: Vec::new() })
    }

    /// Adds a missing entry, a folder before its entries.
    ///
    /// # Errors
    /// That the list of names cannot be written, or that the restore has been ended.
    pub fn add(&mut self, path: &RawText) -> io::Result<()> {
        if self.reins.has_ended() {
            return Err(io::Error::other("the restore was stopped"));
        }
        if self.tops.take(path) {
            self.at = self.serve(parts(&path.0).0);
        }
        self.at.map_or(Ok(()), |at| self.all[at].list.write_all(&rsync::listed(path)))
    }

    /// Returns the private folder for a folder of the destination, and makes it if necessary.
    fn serve(&mut self, folder: &[u8]) -> Option<usize> {
        let path = RawText(folder.to_vec());
        if let Some(known) = self.serving.get(&path) {
            return *known;
        }
        let found = self.find(&path);
        let at = found.map_err(|e| self.refused.push(self.refusal(&path, &e))).ok();
        self.serving.insert(path, at);
        at
    }

    fn find(&mut self, folder: &RawText) -> io::Result<usize> {
        let beside = match &self.root {
            Some(root) => nearest(root, folder)?,
            None if self.all.is_empty() => {
                let above = self.into.parent().unwrap_or(Path::new("/"));
                OpenFolder::make(above, 0o777)?.into()
            }
            None => return Ok(0),
        };
        // The last one is the most likely.
        for (at, staging) in self.all.iter().enumerate().rev() {
            match staging.reaches(beside.as_fd()) {
                Ok(()) => return Ok(at),
                Err(e) if e.raw_os_error() == Some(Errno::XDEV.raw_os_error()) => {}
                Err(e) => return Err(e),
            }
        }
        self.all.push(PrivateFolder::new(beside, &self.reins)?);
        Ok(self.all.len() - 1)
    }

    fn refusal(&self, folder: &RawText, e: &io::Error) -> String {
        let folder = self.into.join(folder.as_path());
        format!("making a folder for the restored files beside {}: {e}", folder.display())
    }

    /// Returns the paths by which rsync finds the private folders and their lists. `process`: see
    /// [`PrivateFolder::inside`].
    ///
    /// # Errors
    /// That a list cannot be written.
    pub fn ready(&mut self, process: &str) -> Result<Staging, String> {
        let mut folders = Vec::new();
        for one in &mut self.all {
            one.list.flush().map_err(|e| format!("writing the list of files to restore: {e}"))?;
            folders.push(StagedFolder { tree: one.inside(process, TREE), list: one.list.path().into() });
        }
        Ok(Staging { folders, refused: self.refused.iter().take(TOLD).cloned().collect() })
    }

    /// Moves the restored entries to their places.
    ///
    /// # Errors
    /// That the restore has been ended, or a private folder that cannot be read.
    pub fn place(&self, done: &mut Restored) -> Result<(), String> {
        let mut placement = Placement { done, reins: &self.reins, leading: &self.tops.leading };
        for staging in &self.all {
            let (tree, top) = ((staging.folder.as_fd(), OsStr::new(TREE)), RawText(Vec::new()));
            match (&self.root, self.into.file_name()) {
                (Some(root), _) => {
                    let open = walk::open_inside(tree.0, tree.1);
                    let open =
                        open.map_err(|e| format!("opening the files restored for {}: {e}", self.into.display()))?;
                    placement.put_all(&open, root.as_fd(), &top)?;
                }
                (None, Some(name)) => {
                    // rsync found this folder, and has not counted it.
                    placement.done.written += u64::from(!self.tops.leading.contains(&top));
                    placement.put(tree, (staging.beside.as_fd(), name), &top)?;
                }
                (None, None) => return Err(format!("{} is missing", self.into.display())),
            }
        }
        Ok(())
    }
}

/// Opens the folder of the destination, or the nearest one above it that still exists.
fn nearest(root: &OwnedFd, folder: &RawText) -> io::Result<OwnedFd> {
    let mut path = &folder.0[..];
    loop {
        match walk::below(root, Path::new(OsStr::from_bytes(path)), OFlags::DIRECTORY | OFlags::PATH) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && !path.is_empty() => path = parts(path).0,
            open => return open,
        }
    }
}

#[cfg(test)]
mod tests;
