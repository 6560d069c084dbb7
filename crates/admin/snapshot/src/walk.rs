//! Walks an image's tree without following a link: any user may have put its content there.

use crate::manifest::{ImageEntry, ManifestKind};
use homing_model::RawText;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Opens a folder by its path; its last part must not be a link.
pub fn folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Opens an entry below a folder, if no link is on the way and the path does not lead out of the folder.
pub fn below(root: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(root, path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty(), resolve)?)
}

/// Returns why an entry of an image cannot be opened, in plain words.
pub fn found_no(e: &io::Error) -> String {
    match e.raw_os_error() {
        Some(libc::ENOENT) => "it is not in this image".into(),
        Some(libc::ELOOP) => {
            "it is a symbolic link, or has one in its path; homing follows no links in an image".into()
        }
        _ => e.to_string(),
    }
}

/// Receives an entry, the open folder that it is in, and its name there.
pub type Each<'a> = dyn FnMut(ImageEntry, &OwnedFd, &[u8]) -> io::Result<()> + 'a;

/// Passes every entry of a tree to `each`, with the open folder that it is in and its name there; the tree itself
/// first.
///
/// # Errors
/// The error of reading or of `each`, with the path.
pub fn walk(root: &OwnedFd, each: &mut Each) -> io::Result<()> {
    let mut each =
        |path: &RawText, stat: &Stat, folder: &OwnedFd, name: &[u8]| each(entry(path.clone(), stat), folder, name);
    let stat = rustix::fs::fstat(root)?;
    each(&RawText(Vec::new()), &stat, root, b".")?;
    inside(root, &RawText(Vec::new()), &mut each, &mut |_, e| Err(e))
}

/// Receives lstat's result for an entry, the open folder that it is in, and its name there.
pub type EachStat<'a> = dyn FnMut(&RawText, &Stat, &OwnedFd, &[u8]) -> io::Result<()> + 'a;
/// Receives the path of an entry that could not be read, and the error; an error that it returns ends the walk.
pub type EachUnread<'a> = dyn FnMut(&RawText, io::Error) -> io::Result<()> + 'a;

/// Passes all entries below a folder to `each`, a folder before its entries. `path`: the folder's own path, which
/// begins the path of each entry.
///
/// # Errors
/// The error of `each` or `unread`.
pub fn inside(folder: &OwnedFd, path: &RawText, each: &mut EachStat, unread: &mut EachUnread) -> io::Result<()> {
    let names = match names(folder) {
        Ok(names) => names,
        Err(e) => return unread(path, e),
    };
    for name in names {
        let path = join(path, &name);
        let doing = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
        let stat = match rustix::fs::statat(folder, &name[..], AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(e) => {
                unread(&path, doing(e.into()))?;
                continue;
            }
        };
        each(&path, &stat, folder, &name)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            match open_inside(folder, OsStr::from_bytes(&name)) {
                Ok(open) => inside(&open, &path, each, unread)?,
                Err(e) => unread(&path, doing(e))?,
            }
        }
    }
    Ok(())
}

/// Opens a folder of an open one, to read it.
pub fn open_inside(folder: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(folder, name, flags, Mode::empty())?)
}

/// Returns the path of a name in a folder; that of the root is empty.
pub fn join(folder: &RawText, name: &[u8]) -> RawText {
    RawText(if folder.0.is_empty() { name.to_vec() } else { [&folder.0[..], b"/", name].concat() })
}

/// Reads all names before any entry is opened: a deep tree costs one open file a level.
pub fn names(folder: &OwnedFd) -> io::Result<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    for found in Dir::read_from(folder)? {
        let name = found?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            all.push(name);
        }
    }
    all.sort_unstable();
    Ok(all)
}

fn entry(path: RawText, stat: &Stat) -> ImageEntry {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => ManifestKind::File,
        FileType::Directory => ManifestKind::Folder,
        FileType::Symlink => ManifestKind::Link,
        _ => ManifestKind::Other,
    };
    let size = if kind == ManifestKind::File { stat.st_size as u64 } else { 0 };
    let mtime_ns = i128::from(stat.st_mtime) * 1_000_000_000 + stat.st_mtime_nsec as i128;
    let (mode, uid, gid) = (stat.st_mode & 0o7777, stat.st_uid, stat.st_gid);
    ImageEntry { path, kind, mode, uid, gid, size, mtime_ns, sha256: None, xattrs: None, first_name: None }
}

/// Returns the hash of a file's bytes or of a link's target; `None` for other kinds.
pub fn hash(kind: ManifestKind, folder: &OwnedFd, name: &[u8]) -> io::Result<Option<String>> {
    match kind {
        ManifestKind::Link => {
            Ok(Some(hex(Sha256::digest(rustix::fs::readlinkat(folder, name, Vec::new())?.as_bytes()))))
        }
        ManifestKind::File => {
            let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
            hash_of(file).map(Some)
        }
        ManifestKind::Folder | ManifestKind::Other => Ok(None),
    }
}

/// Returns the hash of a file's content.
pub fn hash_of(mut file: impl Read) -> io::Result<String> {
    let (mut hash, mut bytes) = (Sha256::new(), vec![0; 1 << 17]);
    loop {
        match file.read(&mut bytes) {
            Ok(0) => return Ok(hex(hash.finalize())),
            Ok(n) => hash.update(&bytes[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Hexadecimal digits.
pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
