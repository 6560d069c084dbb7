//! An image's manifest: made when it is copied, with the hashes of files that it shares taken over.

use crate::manifest::{self, Entry, Kind, NAME};
use crate::walk;
use rustix::fs::{AtFlags, OFlags};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufReader, BufWriter, Write};
use std::iter::Peekable;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// What an image holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Entries, the tree itself included.
    pub entries: u64,
    /// Bytes of regular files, each counted once whatever number of names it has.
    pub bytes: u64,
    /// Of these, bytes that it does not share with the image before.
    pub own_bytes: u64,
}

/// Writes the manifest of a tree to `to`, and has it on disk. `before`: the folder of the image whose files it shares.
pub fn write_manifest(tree: &Path, before: Option<&Path>, to: &Path) -> io::Result<Tally> {
    let root = walk::folder(tree)?;
    let mut shared = Shared::of(before);
    let mut out = BufWriter::new(private(to)?);
    let (mut tally, mut links) = (Tally::default(), HashSet::new());
    walk::walk(&root, &mut |mut entry, folder, name| {
        let (is_shared, taken) = shared.as_mut().map_or((false, None), |shared| shared.find(&entry, folder, name));
        let first = entry.kind != Kind::File || first_name(&mut links, folder, name)?;
        tally.entries += 1;
        tally.bytes += if first { entry.size } else { 0 };
        tally.own_bytes += if first && !is_shared { entry.size } else { 0 };
        entry.sha256 = match taken {
            Some(known) => Some(known),
            None => walk::hash(entry.kind, folder, name)?,
        };
        serde_json::to_writer(&mut out, &entry)?;
        out.write_all(b"\n")
    })?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(tally)
}

/// Makes a file that only its owner may read: names of files are their owners' affair.
pub fn private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // Of an interrupted copy.
    file.set_permissions(Permissions::from_mode(0o600)).map(|()| file)
}

/// Whether files of a folder keep the time that they are given, which not all file systems can: ext4 with small inodes
/// has seconds. A copy that were told so would share nothing with the one before.
pub fn keeps_nanoseconds(folder: &Path) -> io::Result<bool> {
    let file = tempfile::tempfile_in(folder)?;
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::new(1, 123_456_789))?;
    Ok(file.metadata()?.mtime_nsec() == 123_456_789)
}

/// Whether a file was not seen by another of its names.
fn first_name(links: &mut HashSet<u64>, folder: &OwnedFd, name: &[u8]) -> io::Result<bool> {
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    // In one tree: a file of an image before, which has names there, too, is kept for nothing.
    Ok(stat.st_nlink == 1 || links.insert(stat.st_ino))
}

/// The image before, walked in step.
struct Shared {
    tree: OwnedFd,
    /// Empty where dirvish has made it.
    entries: Peekable<Box<dyn Iterator<Item = io::Result<Entry>>>>,
}

impl Shared {
    fn of(before: Option<&Path>) -> Option<Shared> {
        let tree = walk::folder(&before?.join("tree")).ok()?;
        let file = File::open(before?.join(NAME)).ok().map(|file| BufReader::with_capacity(1 << 16, file));
        let entries: Box<dyn Iterator<Item = _>> = Box::new(file.into_iter().flat_map(manifest::read));
        Some(Shared { tree, entries: entries.peekable() })
    }

    /// Whether a file is the very same there, by device and inode, and its hash, if that is known.
    fn find(&mut self, entry: &Entry, folder: &OwnedFd, name: &[u8]) -> (bool, Option<String>) {
        let old = self.told(entry);
        if entry.kind != Kind::File {
            return (false, None);
        }
        let then =
            walk::below(&self.tree, entry.path.as_path(), OFlags::PATH).and_then(|fd| Ok(rustix::fs::fstat(fd)?));
        let now = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
        let same = then.is_ok_and(|then| now.is_ok_and(|now| (then.st_dev, then.st_ino) == (now.st_dev, now.st_ino)));
        let untouched = old.filter(|old| same && (old.size, old.mtime_ns) == (entry.size, entry.mtime_ns));
        (same, untouched.and_then(|old| old.sha256))
    }

    /// What the manifest before says of an entry of this name.
    fn told(&mut self, entry: &Entry) -> Option<Entry> {
        while let Some(Ok(old)) = self.entries.peek() {
            match manifest::order(&old.path, &entry.path) {
                Ordering::Less => drop(self.entries.next()),
                Ordering::Greater => return None,
                Ordering::Equal => return self.entries.next()?.ok(),
            }
        }
        None
    }
}
