//! Writes a file whole or not at all: the text is written beside it, and that file gets its name at the end.

use crate::folder::access::denied;
use crate::folder::beside::parent;
use crate::folder::{Existing, OpenFolder, make_file, unguessable, unwritable};
use rustix::fs::Access;
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A file that a user has named, and whose text comes later. A wrong name is an error before the work for the text
/// begins. Until the whole text is written, the file has its old text, or is not there.
///
/// Devices, pipes and links are written in place. So are files that a new one could not replace: those of other users,
/// those with several names, and those in a folder that this user cannot write. A text that does not fit is cut there.
#[derive(Debug)]
pub struct NamedFile {
    path: PathBuf,
    way: WritePlan,
}

/// The way to write a file that a user has named.
#[derive(Debug)]
enum WritePlan {
    /// In this folder, with the mode of the file that it replaces.
    Beside(OpenFolder, Option<u32>),
    InPlace(File),
}

impl NamedFile {
    /// Checks that the file can be written. A file that is written in place is emptied, all others are not touched.
    pub fn open(path: &Path) -> io::Result<NamedFile> {
        let mode = match path.symlink_metadata() {
            Ok(meta) if meta.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(meta) if !is_replaceable(path, &meta) => {
                let file = make_file(path, Existing::Empty, 0o666)?;
                return Ok(NamedFile { path: path.into(), way: WritePlan::InPlace(file) });
            }
            Ok(meta) => Some(meta.mode() & 0o7777),
            Err(e) if e.kind() == io::ErrorKind::NotFound => match unwritable(path) {
                Some(why) => return Err(why),
                None => None,
            },
            Err(e) => return Err(e),
        };
        let way = WritePlan::Beside(OpenFolder::open(parent(path))?, mode);
        Ok(NamedFile { path: path.into(), way })
    }

    /// Writes the text, and waits until the file system has it: NFS reports a full disk only then.
    pub fn write(self, text: &[u8]) -> io::Result<()> {
        let (folder, mode) = match self.way {
            WritePlan::InPlace(mut file) => return file.write_all(text),
            WritePlan::Beside(folder, mode) => (folder, mode),
        };
        let name = self.path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        let written = replace(&folder, name, mode, |file| file.write_all(text).and_then(|()| settle(file)));
        match written {
            // A file that is mounted by itself, as into a container, cannot be replaced.
            Err(e) if e.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {
                make_file(&self.path, Existing::Empty, 0o666)?.write_all(text)
            }
            written => written,
        }
    }
}

/// Writes a file that a user has named, as [`NamedFile`] does.
pub fn write_file(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    NamedFile::open(path)?.write(text.as_ref())
}

/// Writes a file whole or not at all: a reader sees the old text or the new one. `mode` is the file's mode,
/// regardless of the umask. The file is not synced: a power cut may leave the old text. A device, a pipe or a link
/// that the user has named is written in place ([`Existing::Empty`]).
pub fn write_whole(file: &Path, text: &[u8], mode: Option<u32>) -> io::Result<()> {
    let name = file.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let meta = file.symlink_metadata();
    if meta.is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return make_file(file, Existing::Empty, mode.unwrap_or(0o666))?.write_all(text);
    }
    replace(&OpenFolder::open(parent(file))?, name, mode, |new| new.write_all(text))
}

/// Whether a new file can take the place of this one, and nobody loses a way to it.
fn is_replaceable(path: &Path, meta: &Metadata) -> bool {
    meta.is_file()
        && meta.nlink() == 1
        && meta.uid() == rustix::process::geteuid().as_raw()
        && denied(path, Access::WRITE_OK).is_none()
        && denied(parent(path), Access::WRITE_OK | Access::EXEC_OK).is_none()
}

/// Makes a file, fills it and gives it the name. If one of these fails, the file of that name is as before, and
/// nothing is left beside it.
fn replace(
    folder: &OpenFolder,
    name: &OsStr,
    mode: Option<u32>,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let fresh = OsString::from(format!(".homing-{}", unguessable()?));
    let mut new = folder.file(&fresh, Existing::Refuse, 0o666)?;
    let permitted = mode.map_or(Ok(()), |mode| new.set_permissions(Permissions::from_mode(mode)));
    let written = permitted.and_then(|()| fill(&mut new)).and_then(|()| folder.rename(&fresh, name));
    written.inspect_err(|_| drop(folder.remove(&fresh)))
}

/// Waits until the file system has the bytes, where it has a way to wait.
fn settle(file: &File) -> io::Result<()> {
    match file.sync_data() {
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        settled => settled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("record.json");
        write_whole(&file, b"old and longer", None).unwrap();
        write_whole(&file, b"new", Some(0o604)).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o604);
        // A folder cannot be replaced by a file. The new file is removed, too.
        assert!(write_whole(folder.path(), b"x", None).is_err());
        let names = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 1);
    }

    #[test]
    fn a_text_that_does_not_fit_leaves_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.html");
        write_file(&file, "old").unwrap();
        let open = OpenFolder::open(folder.path()).unwrap();
        let full = |new: &mut File| new.write_all(b"half").and(Err(io::ErrorKind::StorageFull.into()));
        let failed = replace(&open, OsStr::new("page.html"), None, full).unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::StorageFull);
        assert_eq!((fs::read(&file).unwrap(), fs::read_dir(folder.path()).unwrap().count()), (b"old".to_vec(), 1));
    }

    #[test]
    fn a_file_has_its_old_text_and_mode_until_the_new_text_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.json");
        assert!(NamedFile::open(&file).is_ok() && !file.exists());
        fs::write(&file, "old and longer").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        let named = NamedFile::open(&file).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"old and longer");
        named.write(b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn other_ways_to_a_file_stay() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "old").unwrap();
        symlink("file", at("link")).unwrap();
        write_file(&at("link"), "by the link").unwrap();
        assert_eq!(fs::read(at("file")).unwrap(), b"by the link");
        assert!(at("link").symlink_metadata().unwrap().is_symlink());
        fs::hard_link(at("file"), at("second")).unwrap();
        // The folder belongs to this user alone, so the second name is no trap.
        write_file(&at("second"), "by the second name").unwrap();
        assert_eq!(fs::read(at("file")).unwrap(), b"by the second name");
        write_file(Path::new("/dev/null"), "x").unwrap();
        assert_eq!(write_file(Path::new("/dev/full"), "x").unwrap_err().kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_name_that_cannot_be_written_is_an_error_before_the_text_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let kind = |path: &Path| NamedFile::open(path).unwrap_err().kind();
        assert_eq!(kind(folder.path()), io::ErrorKind::IsADirectory);
        assert_eq!(kind(&folder.path().join("gone/page.html")), io::ErrorKind::NotFound);
        fs::write(folder.path().join("file"), "").unwrap();
        assert_eq!(kind(&folder.path().join("file/page.html")), io::ErrorKind::NotADirectory);
    }
}
