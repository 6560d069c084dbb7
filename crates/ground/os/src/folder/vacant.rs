//! Moves entries to names that are free. It never replaces an entry.

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::{Errno, Result};
use rustix::path::Arg;
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;

/// Renames unless the new name is taken ([`Errno::EXIST`]). Some file systems cannot ([`cannot_rename_if_free`]).
#[cfg(not(target_os = "freebsd"))]
pub(super) fn rename_if_free(from: BorrowedFd, name: impl Arg, to: BorrowedFd, new: impl Arg) -> Result<()> {
    rustix::fs::renameat_with(from, name, to, new, rustix::fs::RenameFlags::NOREPLACE)
}

/// FreeBSD has no such rename.
#[cfg(target_os = "freebsd")]
pub(super) fn rename_if_free(_: BorrowedFd, _: impl Arg, _: BorrowedFd, _: impl Arg) -> Result<()> {
    Err(Errno::NOSYS)
}

/// Whether the error means that the file system has no such rename, like network file systems and old ZFS.
pub(super) fn cannot_rename_if_free(e: Errno) -> bool {
    matches!(e, Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
}

/// Moves an entry of an open folder to a free name of another one.
///
/// # Errors
/// [`Errno::EXIST`] if the name is taken; [`Errno::XDEV`] if the folders are of two file systems or mounts.
pub fn move_if_free(from: BorrowedFd, name: &OsStr, to: BorrowedFd, new: &OsStr) -> Result<()> {
    match rename_if_free(from, name, to, new) {
        Err(e) if cannot_rename_if_free(e) => claim_and_move(from, name, to, new),
        moved => moved,
    }
}

/// Does the same without such a rename: by a second link, else by an empty entry that claims the name and is replaced.
/// Other users can take the claimed name only if they may write the folder and it has no sticky bit.
fn claim_and_move(from: BorrowedFd, name: &OsStr, to: BorrowedFd, new: &OsStr) -> Result<()> {
    let stat = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_folder = FileType::from_raw_mode(stat.st_mode).is_dir();
    if is_folder {
        rustix::fs::mkdirat(to, new, Mode::RWXU)?;
    } else {
        match rustix::fs::linkat(from, name, to, new, AtFlags::empty()) {
            Ok(()) => return rustix::fs::unlinkat(from, name, AtFlags::empty()),
            // The file system has no second links, or has none of this entry.
            Err(Errno::PERM | Errno::NOSYS | Errno::NOTSUP | Errno::MLINK) => {}
            Err(e) => return Err(e),
        }
        let claim = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        drop(rustix::fs::openat(to, new, claim, Mode::RUSR | Mode::WUSR)?);
    }
    let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    rustix::fs::renameat(from, name, to, new).inspect_err(|_| {
        let _ = rustix::fs::unlinkat(to, new, flags);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::fd::AsFd;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    const KINDS: [&str; 3] = ["file", "link", "folder"];

    fn make(kind: &str, at: &Path) {
        match kind {
            "file" => fs::write(at, at.as_os_str().as_encoded_bytes()).unwrap(),
            "link" => symlink(at, at).unwrap(),
            _ => fs::create_dir(at).unwrap(),
        }
    }

    #[test]
    fn a_free_name_is_taken_and_another_is_left_with_and_without_the_kernels_own_rename() {
        for ways in [move_if_free, claim_and_move] {
            let dir = tempfile::tempdir().unwrap();
            let [from, to] = ["from", "to"].map(|name| dir.path().join(name));
            [&from, &to].into_iter().for_each(|folder| fs::create_dir(folder).unwrap());
            let [open_from, open_to] = [&from, &to].map(|folder| File::open(folder).unwrap());
            let go =
                |name: &str, new: &str| ways(open_from.as_fd(), OsStr::new(name), open_to.as_fd(), OsStr::new(new));
            for (number, kind) in KINDS.into_iter().enumerate() {
                make(kind, &from.join(kind));
                for there in KINDS {
                    let taken = to.join(format!("{number}.{there}"));
                    make(there, &taken);
                    let before = fs::symlink_metadata(&taken).unwrap();
                    assert_eq!(go(kind, &format!("{number}.{there}")), Err(Errno::EXIST), "{kind} {there}");
                    let after = fs::symlink_metadata(&taken).unwrap();
                    assert_eq!((before.file_type(), before.modified().unwrap()), {
                        (after.file_type(), after.modified().unwrap())
                    });
                }
                let before = fs::symlink_metadata(from.join(kind)).unwrap();
                assert_eq!(go(kind, &format!("new.{kind}")), Ok(()), "{kind}");
                let after = fs::symlink_metadata(to.join(format!("new.{kind}"))).unwrap();
                assert_eq!((before.file_type(), before.len()), (after.file_type(), after.len()), "{kind}");
            }
            assert_eq!(fs::read_dir(&from).unwrap().count(), 0);
            assert_eq!(go("none", "x"), Err(Errno::NOENT));
            assert!(!to.join("x").exists());
        }
    }
}
