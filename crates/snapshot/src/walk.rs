//! Walking an image's tree without following a link: what lies in it may have been put there by anybody.

use crate::manifest::{Entry, Kind};
use homing_model::RawText;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Opens a folder by its path; its last part must not be a link.
pub fn folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Opens what lies below a folder, if no link is on the way and it does not lead out of it.
pub fn below(root: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(root, path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty(), resolve)?)
}

/// Who is told of an entry, the open folder that it is in, and its name there.
pub type Each<'a> = dyn FnMut(Entry, &OwnedFd, &[u8]) -> io::Result<()> + 'a;

/// Tells `each` every entry of a tree with the open folder that it is in and its name there; the tree itself first.
///
/// # Errors
/// What reading or telling fails with, and of what.
pub fn walk(root: &OwnedFd, each: &mut Each) -> io::Result<()> {
    let stat = rustix::fs::fstat(root)?;
    each(entry(RawText(Vec::new()), &stat), root, b".")?;
    inside(root, &[], each)
}

fn inside(folder: &OwnedFd, path: &[u8], each: &mut Each) -> io::Result<()> {
    for name in names(folder)? {
        let path = if path.is_empty() { name.clone() } else { [path, b"/", &name].concat() };
        let doing = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", RawText(path.clone()).display()));
        let stat = rustix::fs::statat(folder, &name[..], AtFlags::SYMLINK_NOFOLLOW).map_err(|e| doing(e.into()))?;
        let found = entry(RawText(path.clone()), &stat);
        let is_folder = found.kind == Kind::Folder;
        each(found, folder, &name)?;
        if is_folder {
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let open = rustix::fs::openat(folder, &name[..], flags, Mode::empty()).map_err(|e| doing(e.into()))?;
            inside(&open, &path, each)?;
        }
    }
    Ok(())
}

/// All names are read before any is looked into, so that a deep tree costs one open file a level.
fn names(folder: &OwnedFd) -> io::Result<Vec<Vec<u8>>> {
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

fn entry(path: RawText, stat: &Stat) -> Entry {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Folder,
        FileType::Symlink => Kind::Link,
        _ => Kind::Other,
    };
    let size = if kind == Kind::File { stat.st_size as u64 } else { 0 };
    let mtime_ns = i128::from(stat.st_mtime) * 1_000_000_000 + stat.st_mtime_nsec as i128;
    Entry { path, kind, mode: stat.st_mode & 0o7777, uid: stat.st_uid, gid: stat.st_gid, size, mtime_ns, sha256: None }
}

/// The hash of a file's bytes or of a link's target; `None` for all else.
pub fn hash(kind: Kind, folder: &OwnedFd, name: &[u8]) -> io::Result<Option<String>> {
    match kind {
        Kind::Link => Ok(Some(hex(Sha256::digest(rustix::fs::readlinkat(folder, name, Vec::new())?.as_bytes())))),
        Kind::File => {
            let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
            hash_of(file).map(Some)
        }
        Kind::Folder | Kind::Other => Ok(None),
    }
}

/// The hash of all that a file has.
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

fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
