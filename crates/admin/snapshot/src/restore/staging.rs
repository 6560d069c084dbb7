//! Private folders in which a restore is made beside the names that it is for: rsync opens what it finds under a name,
//! also a pipe that another user has put there a moment ago, and its last rename replaces what has the name by then.
//! [`Placement`] moves what is complete to its place, where nothing has the name.

use super::placement::Placement;
use super::{TOLD, failures};
use crate::ask::Restored;
use crate::destination::{Examiner, is_beneath, parts};
use crate::place::Place;
use crate::remove;
use crate::rsync::{self, At};
use crate::run::{Cleanup, Reins};
use crate::walk;
use homing_model::RawText;
use homing_os::folder::{OpenFolder, move_if_free, unguessable};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How the names of such folders begin; [`unguessable`] makes the rest.
const HEAD: &str = ".homing-restore-";
/// The folder in it that stands for the destination, and one that is moved to find out how far moves reach.
const TREE: &str = "tree";
const PROBE: &str = "probe";

/// A private folder, removed when dropped.
pub(super) struct Staging {
    /// The folder that it is in.
    beside: OwnedFd,
    name: OsString,
    folder: OwnedFd,
    /// Names of what it gets, for rsync.
    list: tempfile::NamedTempFile,
    /// Behind the others: the end of the channel waits for what is dropped before.
    _cleanup: Cleanup,
}

impl Staging {
    fn new(beside: OwnedFd, reins: &Reins) -> io::Result<Staging> {
        let cleanup = reins.cleanup();
        let (name, list) = (OsString::from(format!("{HEAD}{}", unguessable()?)), tempfile::NamedTempFile::new()?);
        rustix::fs::mkdirat(&beside, &name, Mode::RWXU)?;
        // Without CLOEXEC: rsync inherits it, and reaches the folder by this number, whatever its name means by then.
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::NOFOLLOW;
        let open = || {
            let folder = rustix::fs::openat(&beside, &name, flags, Mode::empty())?;
            // As rsync makes folders that only lead to something.
            rustix::fs::mkdirat(&folder, TREE, Mode::RWXU | Mode::RWXG | Mode::RWXO).map(|()| folder)
        };
        let folder = open().inspect_err(|_| {
            let _ = rustix::fs::unlinkat(&beside, &name, AtFlags::REMOVEDIR);
        })?;
        Ok(Staging { beside, name, folder, list, _cleanup: cleanup })
    }

    /// Moves an empty folder to another one and back. [`Errno::XDEV`]: another mount, or a quota of its own.
    fn reaches(&self, other: BorrowedFd) -> io::Result<()> {
        match rustix::fs::mkdirat(&self.folder, PROBE, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
        let name = OsString::from(format!("{HEAD}{}", unguessable()?));
        move_if_free(self.folder.as_fd(), OsStr::new(PROBE), other, &name)?;
        // A folder that somebody has taken away meanwhile is made anew the next time.
        let _ = rustix::fs::renameat(other, &name, &self.folder, PROBE);
        Ok(())
    }

    /// A path that this program and rsync find.
    fn inside(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.folder.as_raw_fd()))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // By the open folder: its name may mean another one by now.
        for name in [TREE, PROBE] {
            let _ = remove::delete(&self.inside(name));
        }
        let _ = rustix::fs::unlinkat(&self.beside, &self.name, AtFlags::REMOVEDIR);
    }
}

/// The private folders of one restore: one for each part of the destination that files cannot be moved out of.
pub(super) struct Stagings<'a> {
    into: &'a At,
    reins: &'a Reins,
    /// The destination; `None`: it is not there, and is moved into place with all that is in it.
    root: Option<OwnedFd>,
    all: Vec<Staging>,
    /// Which of them serves a folder of the destination; `None`: none can be made there.
    serving: HashMap<RawText, Option<usize>>,
    /// These folders, and those above them: they are in the destination.
    leading: HashSet<RawText>,
    /// The last missing entry of a folder that is there, and what serves it.
    top: Option<(RawText, Option<usize>)>,
    refused: Vec<String>,
}

impl<'a> Stagings<'a> {
    /// For a destination on this host.
    pub fn new(into: &'a At, examiner: &Examiner, reins: &'a Reins) -> io::Result<Stagings<'a>> {
        let (root, all, serving, leading) = (examiner.root()?, Vec::new(), HashMap::new(), HashSet::new());
        Ok(Stagings { into, reins, root, all, serving, leading, top: None, refused: Vec::new() })
    }

    /// Takes an entry that the destination lacks, a folder before what is in it.
    ///
    /// # Errors
    /// That the list of names cannot be written, or that the restore has been ended.
    pub fn add(&mut self, path: &RawText) -> io::Result<()> {
        if self.reins.has_ended() {
            return Err(io::Error::other("the restore was ended"));
        }
        let at = match &self.top {
            Some((top, at)) if is_beneath(path, top) => *at,
            _ => {
                let folder = parts(&path.0).0;
                let mut above = folder;
                // Nothing leads to the destination itself.
                while !path.0.is_empty() && self.leading.insert(RawText(above.to_vec())) {
                    above = parts(above).0;
                }
                let at = self.serve(folder);
                self.top = Some((path.clone(), at));
                at
            }
        };
        at.map_or(Ok(()), |at| self.all[at].list.write_all(&rsync::listed(path)))
    }

    /// The one that serves a folder of the destination, made where none does.
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
                let above = self.into.path.as_path().parent().unwrap_or(Path::new("/"));
                OpenFolder::make(above, 0o777)?.into()
            }
            None => return Ok(0),
        };
        // Most often the last one does.
        for (at, staging) in self.all.iter().enumerate().rev() {
            match staging.reaches(beside.as_fd()) {
                Ok(()) => return Ok(at),
                Err(e) if e.raw_os_error() == Some(Errno::XDEV.raw_os_error()) => {}
                Err(e) => return Err(e),
            }
        }
        self.all.push(Staging::new(beside, self.reins)?);
        Ok(self.all.len() - 1)
    }

    fn refusal(&self, folder: &RawText, e: &io::Error) -> String {
        let folder = self.into.path.as_path().join(folder.as_path());
        format!("{}: a folder for what is restored there: {e}", folder.display())
    }

    /// Has rsync write all entries, each to the folder that serves it.
    ///
    /// # Errors
    /// Why rsync ended; what it has written until then is there.
    pub fn fetch(&mut self, place: &Place, ssh: &str, done: &mut Restored) -> Result<(), String> {
        done.failed.extend(self.refused.drain(..).take(TOLD));
        for staging in &mut self.all {
            staging.list.flush().map_err(|e| format!("the list of what is to be restored: {e}"))?;
            let tree = staging.inside(TREE);
            let to = At { host: None, path: tree.as_path().into() };
            let words = rsync::restore_words(Some(staging.list.path()), &place.name, &to, ssh, false);
            let (leading, mut written) = (&self.leading, 0);
            let ended = place.run(words, self.into, self.reins, &mut |code, path| {
                // Folders of the destination only lead to what is missing.
                written += u64::from(!code.starts_with('.') && !leading.contains(&path));
                Ok(())
            });
            done.written += written;
            let private = tree.display().to_string();
            let public = |text: String| text.replace(&private, &self.into.path.display());
            failures(ended.map_err(public)?.map(public), done);
        }
        Ok(())
    }

    /// Moves what has come to its place.
    pub fn place(&self, done: &mut Restored) -> Result<(), String> {
        let mut placement = Placement { done, reins: self.reins, leading: &self.leading };
        for staging in &self.all {
            let (tree, top) = ((staging.folder.as_fd(), OsStr::new(TREE)), RawText(Vec::new()));
            match (&self.root, self.into.path.as_path().file_name()) {
                (Some(root), _) => {
                    let open = walk::open_inside(tree.0, tree.1);
                    let open = open.map_err(|e| format!("what is restored to {}: {e}", self.into.path.display()))?;
                    placement.put_all(&open, root.as_fd(), &top)?;
                }
                (None, Some(name)) => {
                    // rsync has not counted it: it was there for rsync.
                    placement.done.written += u64::from(!self.leading.contains(&top));
                    placement.put(tree, (staging.beside.as_fd(), name), &top)?;
                }
                (None, None) => return Err(format!("{} is not there", self.into.path.display())),
            }
        }
        Ok(())
    }
}

/// The folder of the destination, or the one above it that is still there.
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
