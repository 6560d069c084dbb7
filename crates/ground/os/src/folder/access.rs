//! Finds out whether a file could be read or written, without opening it: opening a pipe may block, and makes a file.

use rustix::fs::Access;
use std::io;
use std::path::Path;

/// Returns why this user cannot read a file.
pub fn unreadable(path: &Path) -> Option<io::Error> {
    denied(path, Access::READ_OK)
}

/// Returns why this user can neither extend a file nor make it in its folder. A missing folder is not made.
pub fn unwritable(path: &Path) -> Option<io::Error> {
    match path.metadata() {
        Ok(known) if known.is_dir() => Some(io::ErrorKind::IsADirectory.into()),
        Ok(_) => denied(path, Access::WRITE_OK),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            match folder.metadata() {
                Ok(known) if !known.is_dir() => Some(io::ErrorKind::NotADirectory.into()),
                Ok(_) => denied(folder, Access::WRITE_OK | Access::EXEC_OK),
                Err(error) => Some(error),
            }
        }
        Err(error) => Some(error),
    }
}

/// Returns why this user has no such access.
pub(super) fn denied(path: &Path, access: Access) -> Option<io::Error> {
    rustix::fs::access(path, access).err().map(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_for_a_file_is_an_existing_folder_or_file() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "").unwrap();
        let kind = |error: Option<io::Error>| error.map(|error| error.kind());
        assert_eq!((kind(unwritable(&at("file"))), kind(unwritable(&at("new")))), (None, None));
        assert!(!at("new").exists(), "nothing is made");
        assert_eq!(kind(unwritable(&at("gone/new"))), Some(io::ErrorKind::NotFound));
        assert_eq!(kind(unwritable(&at("file/new"))), Some(io::ErrorKind::NotADirectory));
        assert_eq!(kind(unwritable(dir.path())), Some(io::ErrorKind::IsADirectory));
        assert_eq!(
            (kind(unreadable(&at("file"))), kind(unreadable(&at("new")))),
            (None, Some(io::ErrorKind::NotFound))
        );
    }
}
