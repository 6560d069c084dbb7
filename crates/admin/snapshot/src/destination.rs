//! Looks up the entries at the destination of a restore: by lstat, below an open folder, no link followed.
//!
//! rsync's itemised output cannot answer this: it calls an entry new even if an entry of another kind has its name.

use crate::walk;
use homing_model::RawText;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// The most entries that are examined in one message.
pub const AT_ONCE: usize = 2000;
/// The most bytes of their names: a message stays far below [`homing_launch::wire::MAX_FRAME`], however its names are
/// written.
pub const BYTES_AT_ONCE: usize = 1 << 20;

/// The kind of an entry, by lstat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, whatever it leads to.
    Link,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device of characters or blocks.
    Device,
}

impl EntryKind {
    fn of(stat: &Stat) -> EntryKind {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Folder,
            FileType::Symlink => EntryKind::Link,
            FileType::Fifo => EntryKind::Pipe,
            FileType::Socket => EntryKind::Socket,
            _ => EntryKind::Device,
        }
    }

    /// Returns the name for users.
    pub fn name(self) -> &'static str {
        match self {
            EntryKind::File => "a file",
            EntryKind::Folder => "a folder",
            EntryKind::Link => "a link",
            EntryKind::Pipe => "a pipe",
            EntryKind::Socket => "a socket",
            EntryKind::Device => "a device",
        }
    }
}

/// An entry of an image that is to be restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreEntry {
    /// Path below the folder that gets it; empty for that folder itself.
    pub path: RawText,
    /// Its kind.
    pub kind: EntryKind,
    /// Compared if the kind is the same: bytes and time of a file, the number of a device.
    mark: (u64, i128),
    /// The target of a link.
    target: Option<RawText>,
}

impl RestoreEntry {
    /// Describes an entry of an open folder.
    ///
    /// # Errors
    /// A link's target that cannot be read.
    pub fn of(path: &RawText, stat: &Stat, folder: impl AsFd, name: &[u8]) -> io::Result<RestoreEntry> {
        let kind = EntryKind::of(stat);
        let time = i128::from(stat.st_mtime) * 1_000_000_000 + stat.st_mtime_nsec as i128;
        let mark = match kind {
            EntryKind::File => (stat.st_size as u64, time),
            EntryKind::Device => (stat.st_rdev, i128::from(stat.st_mode & libc::S_IFMT)),
            _ => (0, 0),
        };
        let link = kind == EntryKind::Link;
        let target = link.then(|| rustix::fs::readlinkat(folder, name, Vec::new())).transpose()?;
        let target = target.map(|target| RawText(target.into_bytes()));
        Ok(RestoreEntry { path: path.clone(), kind, mark, target })
    }

    /// Bytes of its names.
    pub fn bytes(&self) -> usize {
        self.path.0.len() + self.target.as_ref().map_or(0, |target| target.0.len())
    }
}

/// The state of the destination under an entry's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// No entry: it can be written.
    Missing,
    /// The same kind; a file also has the same size and time.
    Same,
    /// The same kind with other bytes, another target or another device.
    Differs,
    /// An entry of another kind.
    InTheWay(EntryKind),
    /// Nothing can be written there: an entry that is no folder has the name of a folder above.
    Beneath,
    /// It cannot be examined, for this reason in the system's words.
    Unknown(String),
}

/// Answers for entries in the order of a walk: a folder before its entries.
pub struct Examiner {
    /// The folder that gets the files; `None`: it does not exist yet.
    root: Option<OwnedFd>,
    /// The folder of the last entry, held open; `None`: it could not be opened.
    parent: Option<(RawText, Result<OwnedFd, io::ErrorKind>)>,
    /// A folder of the image that the destination lacks.
    lacking: Option<RawText>,
    /// A folder of the image whose name another kind of entry has.
    blocked: Option<RawText>,
}

impl Examiner {
    /// Opens the folder that gets the files. Its own path may have links, because a user gave it.
    ///
    /// # Errors
    /// Why it cannot be opened. A folder that does not exist is no error.
    pub fn open(into: &Path) -> Result<Examiner, String> {
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        let root = match rustix::fs::open(into, flags, Mode::empty()) {
            Ok(root) => Some(root),
            Err(rustix::io::Errno::NOENT) => None,
            Err(rustix::io::Errno::NOTDIR) => return Err(format!("{} is not a folder", into.display())),
            Err(e) => return Err(format!("{}: {}", into.display(), io::Error::from(e))),
        };
        Ok(Examiner { root, parent: None, lacking: None, blocked: None })
    }

    /// Returns the folder that gets the files, for names only; `None`: it does not exist yet.
    ///
    /// # Errors
    /// That no more files can be opened.
    pub fn root(&self) -> io::Result<Option<OwnedFd>> {
        self.root.as_ref().map(OwnedFd::try_clone).transpose()
    }

    /// Examines one name.
    pub fn examine(&mut self, entry: &RestoreEntry) -> Presence {
        if self.blocked.as_ref().is_some_and(|above| is_beneath(&entry.path, above)) {
            return Presence::Beneath;
        }
        if self.root.is_none() || self.lacking.as_ref().is_some_and(|above| is_beneath(&entry.path, above)) {
            return Presence::Missing;
        }
        if entry.path.0.is_empty() {
            return Presence::Same;
        }
        let found = self.look(entry);
        let above = (entry.kind == EntryKind::Folder).then(|| entry.path.clone());
        match found {
            Presence::Missing => self.lacking = above,
            Presence::InTheWay(_) | Presence::Unknown(_) => self.blocked = above,
            _ => {}
        }
        found
    }

    fn look(&mut self, entry: &RestoreEntry) -> Presence {
        let (folder, name) = parts(&entry.path.0);
        let parent = match self.open_parent(folder) {
            Ok(parent) => parent,
            Err(io::ErrorKind::NotFound) => return Presence::Missing,
            Err(kind) => return Presence::Unknown(io::Error::from(kind).to_string()),
        };
        presence(entry, parent, name)
    }

    fn open_parent(&mut self, folder: &[u8]) -> Result<&OwnedFd, io::ErrorKind> {
        let Some(root) = &self.root else { return Err(io::ErrorKind::NotFound) };
        if folder.is_empty() {
            return Ok(root);
        }
        if self.parent.as_ref().is_none_or(|(path, _)| path.0 != folder) {
            let path = RawText(folder.to_vec());
            let flags = OFlags::DIRECTORY | OFlags::PATH;
            let open = walk::below(root, path.as_path(), flags).map_err(|e| e.kind());
            self.parent = Some((path, open));
        }
        match &self.parent {
            Some((_, Ok(open))) => Ok(open),
            Some((_, Err(kind))) => Err(*kind),
            None => Err(io::ErrorKind::NotFound),
        }
    }
}

/// Returns the state of an open folder under the name of an entry.
pub fn presence(entry: &RestoreEntry, folder: impl AsFd, name: &[u8]) -> Presence {
    let there = match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => RestoreEntry::of(&entry.path, &stat, folder, name),
        Err(rustix::io::Errno::NOENT) => return Presence::Missing,
        Err(e) => Err(e.into()),
    };
    match there {
        Ok(there) if there.kind != entry.kind => Presence::InTheWay(there.kind),
        Ok(there) if there == *entry => Presence::Same,
        Ok(_) => Presence::Differs,
        Err(e) => Presence::Unknown(e.to_string()),
    }
}

/// The folder of a path, and the name in it.
pub fn parts(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// Whether a path is below another one.
pub fn is_beneath(path: &RawText, above: &RawText) -> bool {
    let rest = path.0.strip_prefix(&above.0[..]);
    rest.is_some_and(|rest| rest.first() == Some(&b'/') || above.0.is_empty())
}
