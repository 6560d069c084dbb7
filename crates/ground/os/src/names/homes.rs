//! Makes folders below a home. homing never makes a missing home. A run of root would make `/nonexistent`, and later
//! programs would use it as the home of all accounts without one.

use crate::names::home;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Home of an account without one, as Debian's password file has it: never made.
pub const NO_HOME: &str = "/nonexistent";

/// Makes a folder for files of the user, and its missing parents, with `mode` (lowered by the umask). Fails with
/// [`io::ErrorKind::NotFound`] if the home above it does not exist.
pub fn make_folder(folder: &Path, mode: u32) -> io::Result<()> {
    match missing_home(folder) {
        Some(home) => Err(no_home(&home)),
        None => DirBuilder::new().recursive(true).mode(mode).create(folder),
    }
}

/// Returns the home above a folder if that home does not exist.
pub fn missing_home(folder: &Path) -> Option<PathBuf> {
    missing(folder, home())
}

fn missing(folder: &Path, home: Option<PathBuf>) -> Option<PathBuf> {
    let none = PathBuf::from(NO_HOME);
    let homes = [home.filter(|home| home.is_absolute() && home.parent().is_some()), Some(none)];
    homes.into_iter().flatten().find(|home| folder.starts_with(home) && !home.is_dir())
}

/// Returns the error of a missing home.
pub fn no_home(home: &Path) -> io::Error {
    let home = home.display();
    let why = format!("the home {home} does not exist, and homing does not make it; set HOME to a folder that exists");
    io::Error::new(io::ErrorKind::NotFound, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn nothing_is_made_in_a_home_that_is_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let (home, below) = (dir.path().join("home"), dir.path().join("home/.local/state"));
        assert_eq!(missing(&below, Some(home.clone())), Some(home.clone()));
        assert_eq!(missing(&home, Some(home.clone())), Some(home.clone()), "nor the home itself");
        assert_eq!(missing(&dir.path().join("homes"), Some(home.clone())), None);
        std::fs::create_dir(&home).unwrap();
        assert_eq!(missing(&below, Some(home)), None);
        for home in [None, Some("/".into()), Some("".into())] {
            assert_eq!(missing(&Path::new(NO_HOME).join("x"), home.clone()), Some(NO_HOME.into()));
            assert_eq!(missing(&below, home), None);
        }
        let made = make_folder(&Path::new(NO_HOME).join(".cache"), 0o700).unwrap_err();
        assert!(made.kind() == io::ErrorKind::NotFound && made.to_string().contains("set HOME"), "{made}");
        assert!(!Path::new(NO_HOME).exists());
    }

    #[test]
    fn a_folder_is_made_with_its_parents_for_those_who_may() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b");
        make_folder(&folder, 0o700).unwrap();
        make_folder(&folder, 0o700).unwrap();
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}
