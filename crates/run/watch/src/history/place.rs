//! The folder of the history, on a disk of the host itself.

use homing_mounts::{FileSystemKind, MountLine, identified};
use std::io;
use std::path::{Path, PathBuf};

/// The folder for long-lived files of all users.
const FOR_ALL: &str = "/var/tmp";

/// Returns the folder of this user's histories, and makes it if it is missing. It is the user's state folder. If that
/// is on a file server, each minute's sample would wait for the server. Then it is a folder of the user's own below
/// `/var/tmp`.
pub fn folder() -> io::Result<PathBuf> {
    let state = homing_os::folder::state().join("history");
    match is_on_network(&state, &homing_mounts::read().unwrap_or_default()) {
        false => homing_os::folder::make_folder(&state, 0o777).map(|()| state),
        true => {
            let name =
                format!("homing-history-{}", std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self")?));
            homing_os::folder::own(Path::new(FOR_ALL), &name, 0o700)
        }
    }
}

/// Returns the file of a host. It has the host's name, because homes may be shared in ways that no mount table shows.
pub fn file(folder: &Path, host: &str) -> PathBuf {
    folder.join(host.replace('/', "_") + ".ring")
}

/// Decides by the mount table alone, because a hanging file server would block any other test.
fn is_on_network(path: &Path, lines: &[MountLine]) -> bool {
    homing_mounts::holding(lines, path).is_some_and(|line| FileSystemKind::of(&identified(line)).is_network())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_on_a_file_server_is_no_place_for_it() {
        let table = b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 0:40 / /home rw - nfs4 s:/home rw\n\
                      24 23 8:2 / /home/b rw - xfs /dev/sdb rw\n";
        let lines = homing_mounts::parse(table);
        let on = |path: &str| is_on_network(Path::new(path), &lines);
        assert!(on("/home/a/.local/state/homing/history"));
        assert!(!on("/root/.local/state/homing/history") && !on("/home/b/state") && !on("/homes"));
        assert_eq!(file(Path::new("/h"), "a/b"), Path::new("/h/a_b.ring"));
    }
}
