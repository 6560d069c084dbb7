//! What a user keeps besides runs: where it lies, and how it is written.

use crate::beside::parent;
use crate::{Existing, OpenFolder, make_file, unguessable};
use std::ffi::OsString;
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// homing's folder for what a user keeps: `$XDG_STATE_HOME/homing`, else `~/.local/state/homing`.
pub fn state() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
    state_from(set, homing_names::home())
}

/// [`state`] for a given environment and home.
pub fn state_from(var: impl Fn(&str) -> Option<PathBuf>, home: Option<PathBuf>) -> PathBuf {
    // The XDG rules say that a relative path there is to be ignored.
    let state = var("XDG_STATE_HOME").filter(|p| p.is_absolute());
    let state =
        state.unwrap_or_else(|| home.unwrap_or_else(|| PathBuf::from(homing_names::NO_HOME)).join(".local/state"));
    state.join("homing")
}

/// Writes a file whole or not at all: a reader sees the old text or the new one, which takes its place. `mode`: who may
/// read it, whatever the umask says. It is not synced: a power cut may leave the old text. A device, a pipe or a link
/// that the user has named is written as it is ([`Existing::Empty`]).
pub fn write_whole(file: &Path, text: &[u8], mode: Option<u32>) -> io::Result<()> {
    let name = file.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let meta = file.symlink_metadata();
    if meta.is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return make_file(file, Existing::Empty, mode.unwrap_or(0o666))?.write_all(text);
    }
    let folder = OpenFolder::open(parent(file))?;
    let fresh = OsString::from(format!(".homing-{}", unguessable()?));
    let mut new = folder.file(&fresh, Existing::Refuse, 0o666)?;
    let written = new.write_all(text).and_then(|()| match mode {
        Some(mode) => new.set_permissions(Permissions::from_mode(mode)),
        None => Ok(()),
    });
    written.and_then(|()| folder.rename(&fresh, name)).inspect_err(|_| drop(folder.remove(&fresh)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("record.json");
        write_whole(&file, b"old and longer", None).unwrap();
        write_whole(&file, b"new", Some(0o604)).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o604);
        // A folder cannot be replaced by a file: the new text goes, too.
        assert!(write_whole(folder.path(), b"x", None).is_err());
        let names = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 1);
    }

    #[test]
    fn a_relative_folder_of_state_does_not_count() {
        let with = |state: &str| {
            let state = PathBuf::from(state);
            state_from(|name| (name == "XDG_STATE_HOME").then(|| state.clone()), Some("/h".into()))
        };
        assert_eq!(with("/s"), PathBuf::from("/s/homing"));
        assert_eq!(with("s"), PathBuf::from("/h/.local/state/homing"));
    }
}
