//! make's arguments, as far as homing has to know them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Options of `homing make` that take a value, and those that do not.
const WITH_VALUE: [&str; 7] = ["--hosts", "--cluster", "--lab", "--tree", "--trace", "--gateway", "--program"];
const ALONE: [&str; 5] = ["--assume-shared", "--no-evidence", "--no-fence", "--help", "-h"];

/// Ours first, wherever they stand among make's: `homing make -j8 --hosts n[1-4]`.
pub fn own_first(words: Vec<OsString>) -> Vec<OsString> {
    let (mut own, mut others) = (Vec::new(), Vec::new());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        let joined = text.split_once('=').is_some_and(|(name, _)| WITH_VALUE.contains(&name));
        match () {
            () if WITH_VALUE.contains(&text.as_str()) => own.extend([Some(word), words.next()].into_iter().flatten()),
            () if joined || ALONE.contains(&text.as_str()) => own.push(word),
            () => others.push(word),
        }
    }
    own.push("--".into());
    own.extend(others);
    own
}

/// The folder in which make will work, after its `-C` options.
pub fn folder(make: &[OsString], cwd: &Path) -> PathBuf {
    let mut at = cwd.to_path_buf();
    let mut words = make.iter().map(|w| w.to_string_lossy().into_owned());
    while let Some(word) = words.next() {
        let value = match word.as_str() {
            "-C" | "--directory" => words.next(),
            _ => word.strip_prefix("--directory=").or(word.strip_prefix("-C")).map(String::from),
        };
        at = value.map_or(at.clone(), |v| at.join(v));
    }
    at.canonicalize().unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn os(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn own_options_are_found_among_makes() {
        let sorted = own_first(os(&["-j8", "--hosts", "n[1-4]", "-k", "--trace=t", "all", "V=1"]));
        assert_eq!(sorted, os(&["--hosts", "n[1-4]", "--trace=t", "--", "-j8", "-k", "all", "V=1"]));
    }

    #[test]
    fn no_option_is_taken_for_one_of_makes() {
        let command = <crate::cmd::make::Args as clap::Args>::augment_args(clap::Command::new("make"));
        let options = command.get_arguments().filter_map(|arg| Some((format!("--{}", arg.get_long()?), arg)));
        for (name, arg) in options {
            let known = if arg.get_action().takes_values() { &WITH_VALUE[..] } else { &ALONE[..] };
            assert!(known.contains(&name.as_str()), "{name}");
        }
    }

    #[test]
    fn the_folder_is_the_one_of_all_changes_of_folder() {
        let at = folder(&os(&["-C", "a", "-Cb", "--directory=c", "x"]), Path::new("/p"));
        assert_eq!(at, Path::new("/p/a/b/c"));
    }
}
