//! A folder in which every user may make files, and only remove their own.

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// All may write, and the sticky bit.
const MODE: u32 = 0o1777;

/// Makes it, unless something has that name, whatever it is: who comes to it looks whether it will do. True when it
/// was made here. It appears with its mode: two who make it at once would find the other's half made, and refuse it.
pub fn make(dir: &Path) -> io::Result<bool> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    if fs::symlink_metadata(dir).is_ok() {
        return Ok(false);
    }
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut name = dir.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".new.{host}.{}.{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed)));
    let fresh = dir.with_file_name(name);
    make_dir(&fresh)?;
    let placed = place(&fresh, dir);
    // Where it was not renamed.
    let _ = fs::remove_dir(&fresh);
    placed
}

/// Whatever the umask is.
fn make_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().mode(MODE).create(dir)?;
    fs::set_permissions(dir, Permissions::from_mode(MODE))
}

/// Whether the folder got that name; not where something else has it.
fn place(fresh: &Path, dir: &Path) -> io::Result<bool> {
    match rustix::fs::renameat_with(CWD, fresh, CWD, dir, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        // Network file systems and old ZFS have no such rename. The bit that all look for is there from
        // the beginning, and another user may be refused for the moment until all may write. A plain rename
        // takes the folder away from whoever is about to make a file in it: one in some thousands was told
        // that there is none.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match make_dir(dir) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            made => made.map(|()| true),
        },
        Err(e) => Err(e.into()),
    }
}
