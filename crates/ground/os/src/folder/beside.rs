//! Makes files and folders beside names that others may have chosen. It is the only place where homing does so.
//!
//! A name is opened with `O_EXCL | O_NOFOLLOW` in a folder that is held open. An existing file is used only if it can
//! be no trap. Links of another user are not followed, pipes are not waited for, and a file that another user may
//! have put there is not written. The kernel's `fs.protected_symlinks`, `protected_hardlinks`, `protected_regular`
//! and `protected_fifos` are the same rules. But they hold only in sticky folders, and not on every host.

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// The most links that one path may follow, as in the kernel (MAXSYMLINKS).
const HOPS: u32 = 40;
/// The number of attempts at a name that other processes keep making and removing.
const TRIES: u32 = 100;

/// How to treat an existing file that has the name of the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Fails with [`io::ErrorKind::AlreadyExists`] for any kind of file.
    Refuse,
    /// Removes it and makes a new file. A folder is an error.
    Replace,
    /// Writes at its end. Devices, own pipes with a reader and own links are used, because users name those.
    Append,
    /// As `Append`, but empties a regular file.
    Empty,
}

/// A folder that is held open, because its name may lead to another one later.
#[derive(Debug)]
pub struct OpenFolder(OwnedFd);

/// Makes a file. `mode` is subject to the umask.
pub fn make_file(path: &Path, existing: Existing, mode: u32) -> io::Result<File> {
    let name = path.file_name().ok_or_else(|| io::Error::from(Errno::ISDIR))?;
    OpenFolder::open(parent(path))?.file(name, existing, mode)
}

/// Makes a folder and its missing parents, as [`OpenFolder::make`] does.
pub fn make_folders(path: &Path) -> io::Result<()> {
    OpenFolder::make(path, 0o777).map(drop)
}

/// Returns the folder of a path; the current one for a bare name.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl OpenFolder {
    /// Opens a folder. Links of other users in folders that all may write are not followed, anywhere in the path.
    pub fn open(path: &Path) -> io::Result<OpenFolder> {
        walk(path, None).map(OpenFolder)
    }

    /// As [`OpenFolder::open`], and makes missing folders. `mode` is subject to the umask.
    pub fn make(path: &Path, mode: u32) -> io::Result<OpenFolder> {
        walk(path, Some(Mode::from_raw_mode(mode))).map(OpenFolder)
    }

    /// Makes a file of that plain name here. A new file is opened for reading and writing, an existing one only for
    /// writing.
    pub fn file(&self, name: &OsStr, existing: Existing, mode: u32) -> io::Result<File> {
        let mode = Mode::from_raw_mode(mode);
        let append = if existing == Existing::Append { OFlags::APPEND } else { OFlags::empty() };
        let (mut folder, mut name, mut hops) = (self.0.try_clone()?, name.to_os_string(), 0);
        for _ in 0..TRIES {
            let fresh = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC | append;
            match rustix::fs::openat(&folder, &*name, fresh, mode) {
                Ok(file) => return Ok(file.into()),
                Err(Errno::EXIST) if existing == Existing::Refuse => return Err(Errno::EXIST.into()),
                Err(Errno::EXIST) if existing == Existing::Replace => match remove(&folder, &name) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(e) => return Err(e.into()),
                },
                Err(Errno::EXIST) => match open_existing(&folder, &name, append)? {
                    There::File(file, meta) => {
                        if existing == Existing::Empty && FileType::from_raw_mode(meta.st_mode).is_file() {
                            file.set_len(0)?;
                        }
                        return Ok(file);
                    }
                    There::LinkTo(target) => {
                        hops += 1;
                        if hops > HOPS {
                            return Err(Errno::LOOP.into());
                        }
                        name = target.file_name().ok_or_else(|| io::Error::from(Errno::ISDIR))?.to_os_string();
                        folder = walk_from(folder, parent(&target), None)?;
                    }
                    There::Gone => {}
                },
                Err(e) => return Err(e.into()),
            }
        }
        Err(io::Error::other("it keeps changing"))
    }

    /// Renames a file within this folder, and replaces an existing file of the new name.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    /// Removes a file; a folder is an error.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(remove(&self.0, name)?)
    }
}

impl From<OpenFolder> for OwnedFd {
    /// The handle, for names only (`O_PATH` on Linux).
    fn from(folder: OpenFolder) -> OwnedFd {
        folder.0
    }
}

fn remove(folder: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    rustix::fs::unlinkat(folder, name, AtFlags::empty())
}

/// The result of opening a name that exists.
enum There {
    File(File, Stat),
    LinkTo(PathBuf),
    Gone,
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

fn me() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether it belongs to this user or root, so that it is no trap.
fn trusted(meta: &Stat) -> bool {
    [0, me()].contains(&meta.st_uid)
}

fn open_existing(folder: &OwnedFd, name: &OsStr, append: OFlags) -> io::Result<There> {
    let write = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | append;
    let file = match rustix::fs::openat(folder, name, write | OFlags::NOFOLLOW, Mode::empty()) {
        // FreeBSD has another error number for a link.
        Err(Errno::LOOP | Errno::MLINK) => match read_link(folder, name)? {
            SymlinkTarget::Gone => return Ok(There::Gone),
            SymlinkTarget::To(_, meta) if !trusted(&meta) => {
                return Err(refused("it is a symbolic link of another user"));
            }
            SymlinkTarget::To(target, _) => return Ok(There::LinkTo(target)),
            // A link to a descriptor of this process, which is in no folder.
            SymlinkTarget::Magic => rustix::fs::openat(folder, name, write, Mode::empty()).map_err(unread)?,
        },
        Err(Errno::NOENT) => return Ok(There::Gone),
        opened => opened.map_err(unread)?,
    };
    let (meta, around) = (rustix::fs::fstat(&file)?, rustix::fs::fstat(folder)?);
    match FileType::from_raw_mode(meta.st_mode) {
        FileType::RegularFile => {
            let others_write = around.st_mode & 0o022 != 0 || !trusted(&around);
            if others_write && meta.st_nlink > 1 {
                return Err(refused("it has several hard links, and another user may have made this one"));
            }
            if around.st_mode & 0o1002 == 0o1002 && meta.st_uid != me() && meta.st_uid != around.st_uid {
                return Err(refused("it is a file of another user in a folder of all"));
            }
        }
        FileType::Fifo if !trusted(&meta) => return Err(refused("it is a pipe of another user")),
        FileType::Fifo | FileType::CharacterDevice => {}
        _ => return Err(refused("it is no regular file, pipe or character device")),
    }
    // Only the opening must not wait.
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(There::File(file.into(), meta))
}

/// Explains the error of opening a pipe that no process reads.
fn unread(e: Errno) -> io::Error {
    match e {
        Errno::NXIO => io::Error::new(io::ErrorKind::NotConnected, "it is a pipe or socket that no process reads"),
        e => e.into(),
    }
}

/// The result of reading a name as a link.
enum SymlinkTarget {
    To(PathBuf, Stat),
    /// A link in /proc. Opening it leads to its object, and not to the path in its text.
    Magic,
    Gone,
}

/// Reads owner and text of one and the same link.
#[cfg(target_os = "linux")]
fn read_link(folder: &OwnedFd, name: &OsStr) -> io::Result<SymlinkTarget> {
    let link = match rustix::fs::openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
    {
        Err(Errno::NOENT) => return Ok(SymlinkTarget::Gone),
        link => link?,
    };
    let meta = rustix::fs::fstat(&link)?;
    if !FileType::from_raw_mode(meta.st_mode).is_symlink() {
        return Ok(SymlinkTarget::Gone);
    }
    if rustix::fs::fstatfs(&link)?.f_type == rustix::fs::PROC_SUPER_MAGIC {
        return Ok(SymlinkTarget::Magic);
    }
    let target = rustix::fs::readlinkat(&link, "", Vec::new())?;
    Ok(SymlinkTarget::To(OsString::from_vec(target.into_bytes()).into(), meta))
}

/// Other systems cannot open a link, so owner and text are read one after the other.
#[cfg(not(target_os = "linux"))]
fn read_link(folder: &OwnedFd, name: &OsStr) -> io::Result<SymlinkTarget> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(meta) if FileType::from_raw_mode(meta.st_mode).is_symlink() => {
            let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
            Ok(SymlinkTarget::To(OsString::from_vec(target.into_bytes()).into(), meta))
        }
        Ok(_) | Err(Errno::NOENT) => Ok(SymlinkTarget::Gone),
        Err(e) => Err(e.into()),
    }
}

/// Opens folders only for looking up names, so they need not be readable.
#[cfg(target_os = "linux")]
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

fn walk(path: &Path, make: Option<Mode>) -> io::Result<OwnedFd> {
    // An absolute path starts at `/`, because the current folder may be on a server that hangs.
    let from = if path.is_absolute() { "/" } else { "." };
    walk_from(rustix::fs::open(from, FOLDER, Mode::empty())?, path, make)
}

/// Opens one name at a time, each in the folder opened before it.
fn walk_from(from: OwnedFd, path: &Path, make: Option<Mode>) -> io::Result<OwnedFd> {
    let names = |path: &Path| path.components().rev().map(name_of).collect::<Vec<OsString>>();
    let (mut folder, mut rest, mut hops, mut made) = (from, names(path), 0, 0);
    while let Some(name) = rest.pop() {
        match rustix::fs::openat(&folder, &*name, FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(next) => folder = next,
            Err(Errno::NOENT) if make.is_some() && made < TRIES => {
                made += 1;
                match rustix::fs::mkdirat(&folder, &*name, make.unwrap_or(Mode::RWXU)) {
                    Ok(()) | Err(Errno::EXIST) => rest.push(name),
                    Err(e) => return Err(e.into()),
                }
            }
            Err(Errno::LOOP | Errno::MLINK | Errno::NOTDIR) => match read_link(&folder, &name)? {
                SymlinkTarget::Gone => return Err(Errno::NOTDIR.into()),
                SymlinkTarget::Magic => folder = rustix::fs::openat(&folder, &*name, FOLDER, Mode::empty())?,
                SymlinkTarget::To(target, meta) => {
                    hops += 1;
                    if hops > HOPS {
                        return Err(Errno::LOOP.into());
                    }
                    if rustix::fs::fstat(&folder)?.st_mode & 0o002 != 0 && !trusted(&meta) {
                        let why = format!("{} on the way is a symbolic link of another user", name.display());
                        return Err(refused(&why));
                    }
                    rest.extend(names(&target));
                }
            },
            Err(e) => return Err(e.into()),
        }
    }
    Ok(folder)
}

fn name_of(component: Component) -> OsString {
    component.as_os_str().to_os_string()
}

#[cfg(test)]
mod tests;
