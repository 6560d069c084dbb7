//! The folder of the control sockets, which is private to this user.

use rustix::fs::{Mode, OFlags};
use sha2::{Digest, Sha256};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Longest path of the folder. A socket's path has 108 bytes with its end. ssh first binds it under a longer name (a
/// dot and 16 letters), and our names have 16 hex digits.
const LONGEST_FOLDER: usize = 107 - 17 - 17;

/// Returns the folder, made if it is missing; refused if other users could write or replace it.
pub(crate) fn private(given: Option<&Path>) -> io::Result<PathBuf> {
    if let Some(folder) = given {
        return checked(folder.to_path_buf());
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(|d| PathBuf::from(d).join("homing"));
    match runtime.map(checked) {
        Some(Ok(folder)) => Ok(folder),
        _ => {
            let name = format!("homing-{}", rustix::process::geteuid().as_raw());
            let told = |e| io::Error::other(format!("/tmp/{name}: {e}"));
            checked(homing_os::folder::own(Path::new("/tmp"), &name, 0o700).map_err(told)?)
        }
    }
}

fn checked(folder: PathBuf) -> io::Result<PathBuf> {
    let told = |what: &str| io::Error::other(format!("{}: {what}", folder.display()));
    // Resolved first: a link on the way could be another user's, who could change its target after the check.
    let around = folder.parent().unwrap_or(Path::new("/")).canonicalize().map_err(|e| told(&e.to_string()))?;
    let folder = around.join(folder.file_name().unwrap_or_default());
    if folder.as_os_str().as_bytes().len() > LONGEST_FOLDER {
        return Err(told("its path is too long for a socket"));
    }
    if let Some(stranger) = homing_os::folder::who_could_swap(&around).map_err(|e| told(&e.to_string()))? {
        return Err(told(&format!("{} is another user's, or others may write there", stranger.display())));
    }
    match rustix::fs::mkdir(&folder, Mode::RWXU) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(e) => return Err(told(&io::Error::from(e).to_string())),
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let opened = rustix::fs::open(&folder, flags, Mode::empty()).map_err(|e| told(&io::Error::from(e).to_string()))?;
    let stat = rustix::fs::fstat(&opened).map_err(io::Error::from)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() || stat.st_mode & 0o077 != 0 {
        return Err(told("it is not private to this user (owner, mode 700)"));
    }
    Ok(folder)
}

/// Returns the socket's name for a way to a host: the same words give the same connection.
pub(crate) fn name(words: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for word in words {
        hash.update((word.len() as u64).to_le_bytes());
        hash.update(word);
    }
    hash.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn only_a_folder_of_ones_own_will_do() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("own");
        assert_eq!(private(Some(&own)).unwrap(), own);
        assert_eq!(private(Some(&own)).unwrap(), own);
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(private(Some(&own)).unwrap_err().to_string().contains("not private"));
        let link = dir.path().join("link");
        symlink(dir.path(), &link).unwrap();
        assert!(private(Some(&link)).is_err());
        let around = dir.path().join("around");
        symlink(dir.path(), &around).unwrap();
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(private(Some(&around.join("own"))).unwrap(), own, "a link could point elsewhere after the check");
        assert!(private(Some(&dir.path().join("x".repeat(90)))).unwrap_err().to_string().contains("too long"));
    }

    #[test]
    fn a_folder_that_another_could_swap_will_not_do() {
        let dir = tempfile::tempdir().unwrap();
        let shared = dir.path().join("shared");
        std::fs::create_dir(&shared).unwrap();
        let mode = |mode| std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(mode)).unwrap();
        mode(0o777);
        assert!(private(Some(&shared.join("own"))).unwrap_err().to_string().contains("others may write"));
        mode(0o1777);
        assert!(private(Some(&shared.join("own"))).is_ok());
        if rustix::process::geteuid().is_root() {
            mode(0o700);
            std::os::unix::fs::chown(&shared, Some(65534), None).unwrap();
            assert!(private(Some(&shared.join("own"))).unwrap_err().to_string().contains("another user's"));
        }
    }

    #[test]
    fn names_differ_with_the_words() {
        assert_eq!(name(&[b"ssh", b"n1"]).len(), 16);
        assert_ne!(name(&[b"ssh", b"n1"]), name(&[b"sshn", b"1"]));
    }
}
