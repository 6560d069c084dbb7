//! A folder in which every user may make files, and only remove their own.

use crate::folder::names;
use crate::folder::vacant::{cannot_rename_if_free, rename_if_free};
use rustix::fs::CWD;
use rustix::io::Errno;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Mode of the folder: all may write, with the sticky bit.
const MODE: u32 = 0o1777;
/// The longest time between the two calls that make such a folder.
const HALF_MADE: Duration = Duration::from_secs(1);

/// Returns the folder below which the users of this machine share their queue and its leases: `$HOMING_QUEUE`, or
/// /var/tmp, which unlike /tmp outlives a restart.
pub fn base() -> PathBuf {
    std::env::var_os("HOMING_QUEUE").map_or_else(|| "/var/tmp".into(), PathBuf::from)
}

/// Returns [`base`], and makes it if the environment names it. The error has the folder.
pub fn make_base() -> Result<PathBuf, (PathBuf, io::Error)> {
    let base = base();
    match std::env::var_os("HOMING_QUEUE").map_or(Ok(false), |_| make(&base)) {
        Ok(_) => Ok(base),
        Err(error) => Err((base, error)),
    }
}

/// Makes the folder, unless the name exists as any kind of file; its users check whether it is suitable. Returns true
/// if it was made here. The folder appears with its final mode. Otherwise two processes that make it at once would
/// find and refuse each other's unfinished folder.
pub fn make(dir: &Path) -> io::Result<bool> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    if fs::symlink_metadata(dir).is_ok() {
        return Ok(false);
    }
    let host = crate::names::own_name();
    let mut name = dir.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".new.{host}.{}.{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed)));
    let fresh = dir.with_file_name(name);
    make_dir(&fresh)?;
    let placed = place(&fresh, dir);
    // Removes it if it was not renamed.
    let _ = fs::remove_dir(&fresh);
    placed
}

/// Returns the folder of that name that is open to all users, and makes it if there is none. As in
/// [`crate::folder::own`], unsuitable files under such a name are skipped, so that all processes use the next name.
/// Fails if the place cannot be written, or no name is left.
pub fn open(place: &Path, name: &str) -> io::Result<PathBuf> {
    // An existing folder is kept in use, even after a stranger's folder with an earlier name was removed.
    if let Some(found) = names(place, name).find(|dir| is_for_all(dir)) {
        return Ok(found);
    }
    for dir in names(place, name) {
        make(&dir)?;
        if is_for_all(&dir) {
            return Ok(dir);
        }
    }
    Err(io::Error::other(
        "neither it nor its names with .1 and so on at the end are folders with the sticky bit in which all may write \
         (chmod 1777): root must remove them",
    ))
}

/// Whether it is such a folder. Where folders cannot be renamed, a half-made one already has the sticky bit; this
/// waits for the rest.
pub fn is_for_all(dir: &Path) -> bool {
    let until = Instant::now() + HALF_MADE;
    loop {
        match fs::symlink_metadata(dir) {
            Ok(meta) if meta.is_dir() && meta.mode() & MODE == MODE => return true,
            Ok(meta) if meta.is_dir() && meta.mode() & 0o1000 != 0 && Instant::now() < until => sleep(HALF_MADE / 50),
            _ => return false,
        }
    }
}

/// Makes a folder whose mode does not depend on the umask.
fn make_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().mode(MODE).create(dir)?;
    fs::set_permissions(dir, Permissions::from_mode(MODE))
}

/// Gives the folder that name. Returns false if the name exists.
fn place(fresh: &Path, dir: &Path) -> io::Result<bool> {
    match rename_if_free(CWD, fresh, CWD, dir) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        // Network file systems and old ZFS have no such rename, so the folder is made in place. It has the sticky bit
        // from the beginning; another user may be refused until all may write. A plain rename would take the folder
        // away from a process that makes a file in it. One attempt in some thousands failed then, because the folder
        // was missing.
        Err(e) if cannot_rename_if_free(e) => match make_dir(dir) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            // GlusterFS returns this error to one of two clients that make it at once.
            Err(e) if e.raw_os_error() == Some(Errno::STALE.raw_os_error()) && fs::symlink_metadata(dir).is_ok() => {
                Ok(false)
            }
            made => made.map(|()| true),
        },
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_folder_for_all_is_passed_over_by_all_alike() {
        let dir = tempfile::tempdir().unwrap();
        let open = || open(dir.path(), "x");
        fs::write(dir.path().join("x"), "").unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("x.1")).unwrap();
        fs::create_dir(dir.path().join("x.2")).unwrap();
        fs::create_dir(dir.path().join("x.3")).unwrap();
        fs::set_permissions(dir.path().join("x.3"), Permissions::from_mode(0o1700)).unwrap();
        let fourth = dir.path().join("x.4");
        assert_eq!((open().unwrap(), open().unwrap()), (fourth.clone(), fourth.clone()));
        fs::remove_file(dir.path().join("x")).unwrap();
        assert_eq!(open().unwrap(), fourth, "what lies in it is found again");
        names(dir.path(), "y").for_each(|name| fs::write(name, "").unwrap());
        assert!(super::open(dir.path(), "y").unwrap_err().to_string().contains("root must remove them"));
    }
}
