//! Folders of one user in a place where all users may make folders (/tmp, /var/tmp).
//!
//! The first user of a name owns it, so a stranger could block a user by making that user's folder. Therefore a
//! folder has several possible names, and the first one that is the user's own is used.

mod access;
mod beside;
mod kept;
pub mod lock;
mod plain;
mod reserve;
pub mod shared;
mod state;
mod unguessable;
mod vacant;
mod whole;

pub use crate::names::make_folder;
pub use access::{unreadable, unwritable};
pub use beside::{Existing, OpenFolder, make_file, make_folders};
pub use kept::RecordFile;
pub use plain::{open_plain, open_plain_as};
pub use reserve::Reserve;
pub use state::{cluster_state, cluster_state_of, state, state_from};
pub use unguessable::unguessable;
pub use vacant::move_if_free;
pub use whole::{NamedFile, write_file, write_whole};

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The number of further names beside the usual one.
const OTHERS: u32 = 20;

/// Returns the possible names of such a folder: `NAME`, `NAME.1` to `NAME.20`.
pub fn names<'a>(place: &'a Path, name: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
    std::iter::once(place.join(name)).chain((1..=OTHERS).map(move |n| place.join(format!("{name}.{n}"))))
}

/// Whether it is a folder of that user with no more permissions than `mode`.
pub fn is_own(folder: &Path, uid: u32, mode: u32) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|m| m.is_dir() && m.uid() == uid && m.mode() & 0o777 & !mode == 0)
}

/// Returns the users who have a folder of that name, by the names `NAME-UID` alone. [`is_own`] shows whose it is.
pub fn users(place: &Path, name: &str) -> BTreeSet<u32> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let user = |entry: OsString| entry.to_str()?.strip_prefix(name)?.strip_prefix('-')?.split('.').next()?.parse().ok();
    entries.filter_map(user).collect()
}

/// Returns this user's folder of that name, and makes it with `mode` if there is none. `place` must have the sticky
/// bit, so that no other user can replace its folders. Fails if the place cannot be written, or other users have all
/// names.
pub fn own(place: &Path, name: &str, mode: u32) -> io::Result<PathBuf> {
    let uid = rustix::process::geteuid().as_raw();
    // An existing folder is kept in use, even after a stranger's folder with an earlier name was removed.
    if let Some(found) = names(place, name).find(|folder| is_own(folder, uid, mode)) {
        return Ok(found);
    }
    for folder in names(place, name) {
        match DirBuilder::new().mode(mode).create(&folder) {
            // The mode must not depend on the umask.
            Ok(()) => return fs::set_permissions(&folder, Permissions::from_mode(mode)).map(|()| folder),
            // Another process of this user may have come first.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && is_own(&folder, uid, mode) => return Ok(folder),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::other(format!(
        "neither it nor its names with .1 to .{OTHERS} at the end are private folders of this user (mode {mode:o}): \
         another user has made them; root must remove them"
    )))
}

/// Returns a folder above `path` in which another user could replace the checked file. Links are followed. A folder's
/// owner can always do that; other users can if they may write there and there is no sticky bit.
pub fn who_could_swap(path: &Path) -> io::Result<Option<PathBuf>> {
    let own = rustix::process::geteuid().as_raw();
    for folder in path.canonicalize()?.ancestors() {
        let meta = fs::symlink_metadata(folder)?;
        let shared = meta.mode() & 0o022 != 0 && meta.mode() & 0o1000 == 0;
        if shared || ![0, own].contains(&meta.uid()) {
            return Ok(Some(folder.to_path_buf()));
        }
    }
    Ok(None)
}

/// Returns a folder for files that no other user may replace, such as a socket. It is `$XDG_RUNTIME_DIR`, else the
/// folder for temporary files. `$XDG_RUNTIME_DIR` is not used if it belongs to another user, as after `su`, or if
/// others may write to a folder above it. Fails if another user could replace files in the folder for temporary files
/// as well.
pub fn place() -> io::Result<PathBuf> {
    // A link on the way could belong to another user, who could change it after the check.
    let real = |path: PathBuf| path.canonicalize().ok();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).and_then(real).filter(|path| path.is_dir());
    if let Some(runtime) = runtime.filter(|path| matches!(who_could_swap(path), Ok(None))) {
        return Ok(runtime);
    }
    let temporary = std::env::temp_dir().canonicalize()?;
    match who_could_swap(&temporary)? {
        None => Ok(temporary),
        Some(folder) => Err(io::Error::other(format!(
            "others could replace files in {}: {} is another user's, or others may write there without a sticky bit; \
             set TMPDIR to a folder of your own",
            temporary.display(),
            folder.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_somebody_else_has_made_is_passed_over_and_ones_own_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let own = || own(dir.path(), "x", 0o700);
        symlink("/", dir.path().join("x")).unwrap();
        fs::create_dir(dir.path().join("x.1")).unwrap();
        fs::set_permissions(dir.path().join("x.1"), Permissions::from_mode(0o755)).unwrap();
        let second = dir.path().join("x.2");
        assert_eq!(own().unwrap(), second);
        assert_eq!(fs::metadata(&second).unwrap().mode() & 0o777, 0o700);
        fs::remove_file(dir.path().join("x")).unwrap();
        assert_eq!(own().unwrap(), second, "what lies in it is found again");
        fs::remove_dir(&second).unwrap();
        assert_eq!(own().unwrap(), dir.path().join("x"));
    }

    #[test]
    fn without_a_name_that_is_left_the_way_out_is_said() {
        let dir = tempfile::tempdir().unwrap();
        names(dir.path(), "x").for_each(|name| fs::write(name, "").unwrap());
        assert!(own(dir.path(), "x", 0o700).unwrap_err().to_string().contains("root must remove them"));
        assert_eq!(own(&dir.path().join("none"), "x", 0o700).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn many_who_come_at_once_get_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let come = || own(dir.path(), "x", 0o755).unwrap();
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(come)).collect();
            all.into_iter().for_each(|one| assert_eq!(one.join().unwrap(), dir.path().join("x")));
        });
    }
}
