//! Writes an image's manifest when it is copied. The hashes of shared files are taken from the manifest of the image
//! before.

use crate::attributes;
use crate::manifest::{self, ImageEntry, ManifestKind, NAME};
use crate::walk;
use rustix::fs::{AtFlags, Mode, OFlags, SeekFrom};
use sha2::{Digest, Sha256};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufReader, BufWriter, Write};
use std::iter::Peekable;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The figures of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Entries, the tree itself included.
    pub entries: u64,
    /// Bytes of regular files; a file with several names counts once.
    pub bytes: u64,
    /// The part of these bytes that it does not share with the image before; holes are not counted.
    pub own_bytes: u64,
    /// SHA-256 of the manifest, in hexadecimal digits.
    pub manifest: String,
}

/// Writes the manifest of a tree to `to`, and syncs it to disk. `before`: the folder of the image whose files it
/// shares.
pub fn write_manifest(tree: &Path, before: Option<&Path>, to: &Path) -> io::Result<Tally> {
    let root = walk::folder(tree)?;
    let mut shared = ReferenceTree::of(before);
    let mut out = BufWriter::new(Hashed { to: private(to)?, hash: Sha256::new() });
    let (mut tally, mut links) = (Tally::default(), FirstNames::default());
    walk::walk(&root, &mut |mut entry, folder, name| {
        let (is_shared, taken) = shared.as_mut().map_or((false, None), |shared| shared.find(&entry, folder, name));
        entry.first_name = links.of(&entry, tally.entries, folder, name)?;
        entry.xattrs = attributes::hash(folder, name)?;
        tally.entries += 1;
        if entry.first_name.is_none() {
            tally.bytes += entry.size;
            tally.own_bytes += if is_shared { 0 } else { stored(&entry, folder, name)? };
        }
        entry.sha256 = match taken {
            Some(known) => Some(known),
            None => walk::hash(entry.kind, folder, name)?,
        };
        serde_json::to_writer(&mut out, &entry)?;
        out.write_all(b"\n")
    })?;
    let out = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    out.to.sync_all()?;
    tally.manifest = walk::hex(out.hash.finalize());
    Ok(tally)
}

/// A file whose bytes are hashed as they are written.
struct Hashed {
    to: File,
    hash: Sha256,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Returns the bytes that a file takes: holes take none. A file system that packs bytes, or has not placed them yet,
/// may count fewer blocks than there are bytes. In that case the file's map of data decides.
fn stored(entry: &ImageEntry, folder: &OwnedFd, name: &[u8]) -> io::Result<u64> {
    if entry.kind != ManifestKind::File {
        return Ok(0);
    }
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    // st_blocks counts units of 512 bytes (inode(7)).
    if (stat.st_blocks as u64).saturating_mul(512) >= entry.size {
        return Ok(entry.size);
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    let (mut data, mut at) = (0, 0);
    while at < entry.size {
        let Ok(begin) = rustix::fs::seek(&file, SeekFrom::Data(at)) else { break };
        let end = rustix::fs::seek(&file, SeekFrom::Hole(begin)).unwrap_or(entry.size).min(entry.size);
        data += end.saturating_sub(begin);
        at = end.max(begin + 1);
    }
    Ok(data)
}

/// Makes a file that only its owner may read, because it has names of users' files.
pub fn private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // The file may be left from an interrupted copy, with another mode.
    file.set_permissions(Permissions::from_mode(0o600)).map(|()| file)
}

/// Whether files of a folder keep times to the nanosecond. Not all file systems do: ext4 with small inodes keeps
/// seconds. There a copy that compares nanoseconds would share nothing with the one before.
pub fn keeps_nanoseconds(folder: &Path) -> io::Result<bool> {
    let file = tempfile::tempfile_in(folder)?;
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::new(1, 123_456_789))?;
    Ok(file.metadata()?.mtime_nsec() == 123_456_789)
}

/// Lines of the manifest with the first names of files that may have more than one in the tree, by inode.
#[derive(Default)]
pub struct FirstNames(HashMap<u64, u64>);

impl FirstNames {
    /// Returns the line of a file's first name; `None`: this `line` has the first one.
    pub fn of(&mut self, entry: &ImageEntry, line: u64, folder: &OwnedFd, name: &[u8]) -> io::Result<Option<u64>> {
        if entry.kind != ManifestKind::File {
            return Ok(None);
        }
        let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        // The map also keeps a file whose other names are only in an image before, without need.
        if stat.st_nlink == 1 {
            return Ok(None);
        }
        let first = *self.0.entry(stat.st_ino).or_insert(line);
        Ok((first != line).then_some(first))
    }
}

/// The image before, read in step with the tree.
struct ReferenceTree {
    tree: OwnedFd,
    /// Empty if dirvish has made it.
    entries: Peekable<Box<dyn Iterator<Item = io::Result<ImageEntry>>>>,
}

impl ReferenceTree {
    fn of(before: Option<&Path>) -> Option<ReferenceTree> {
        let tree = walk::folder(&before?.join("tree")).ok()?;
        let file = File::open(before?.join(NAME)).ok().map(|file| BufReader::with_capacity(1 << 16, file));
        let entries: Box<dyn Iterator<Item = _>> = Box::new(file.into_iter().flat_map(manifest::read));
        Some(ReferenceTree { tree, entries: entries.peekable() })
    }

    /// Returns whether a file is the very same there, by device and inode, and its hash, if that is known.
    fn find(&mut self, entry: &ImageEntry, folder: &OwnedFd, name: &[u8]) -> (bool, Option<String>) {
        let old = self.previous_entry(entry);
        if entry.kind != ManifestKind::File {
            return (false, None);
        }
        let then =
            walk::below(&self.tree, entry.path.as_path(), OFlags::PATH).and_then(|fd| Ok(rustix::fs::fstat(fd)?));
        let now = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
        let same = then.is_ok_and(|then| now.is_ok_and(|now| (then.st_dev, then.st_ino) == (now.st_dev, now.st_ino)));
        let untouched = old.filter(|old| same && (old.size, old.mtime_ns) == (entry.size, entry.mtime_ns));
        (same, untouched.and_then(|old| old.sha256))
    }

    /// Returns the entry of the manifest before with this name.
    fn previous_entry(&mut self, entry: &ImageEntry) -> Option<ImageEntry> {
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
