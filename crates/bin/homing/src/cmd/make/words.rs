//! Parses make's arguments, as far as homing must know them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Options of `homing make` with a value, and those without. GNU make has none of these names. An abbreviation is
/// always an option of make.
const WITH_VALUE: [&str; 7] = ["--hosts", "--cluster", "--lab", "--tree", "--trace-file", "--gateway", "--program"];
const ALONE: [&str; 3] = ["--assume-shared", "--no-evidence", "--no-fence"];

/// Options of make whose value may be the next word.
const SHORT_WITH_VALUE: &str = "CEIWfo";
const LONG_WITH_VALUE: [&str; 10] = [
    "directory",
    "file",
    "makefile",
    "include-dir",
    "old-file",
    "assume-old",
    "what-if",
    "new-file",
    "assume-new",
    "eval",
];
/// Other long options of make. They decide whether an abbreviation is ambiguous.
const LONG_ALONE: [&str; 29] = [
    "always-make",
    "debug",
    "environment-overrides",
    "help",
    "ignore-errors",
    "jobs",
    "keep-going",
    "load-average",
    "max-load",
    "check-symlink-times",
    "just-print",
    "dry-run",
    "recon",
    "output-sync",
    "print-data-base",
    "question",
    "no-builtin-rules",
    "no-builtin-variables",
    "silent",
    "quiet",
    "no-silent",
    "no-keep-going",
    "stop",
    "touch",
    "trace",
    "version",
    "print-directory",
    "no-print-directory",
    "warn-undefined-variables",
];

/// Moves homing's own options before those of make: `homing make -j8 --hosts 'n[1-4]'`. A word behind `--`, and the
/// value of an option of make, is not homing's. A `--` with only homing's options before it ends these and is not
/// passed to make.
pub fn own_first(words: Vec<OsString>) -> Vec<OsString> {
    let (mut own, mut others) = (Vec::new(), Vec::new());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        let joined = text.split_once('=').is_some_and(|(name, _)| WITH_VALUE.contains(&name));
        match () {
            () if text == "--" => {
                if own.is_empty() || !others.is_empty() {
                    others.push(word);
                }
                others.extend(words.by_ref());
            }
            () if WITH_VALUE.contains(&text.as_str()) => own.extend([Some(word), words.next()].into_iter().flatten()),
            () if joined || ALONE.contains(&text.as_str()) => own.push(word),
            () => {
                others.push(word);
                others.extend(option(&text).filter(|option| option.value.is_none()).and_then(|_| words.next()));
            }
        }
    }
    own.push("--".into());
    own.extend(others);
    own
}

/// An option of make that has a value.
struct Valued<'a> {
    is_folder: bool,
    /// The value in the same word; `None` if it is the next word.
    value: Option<&'a str>,
}

/// Parses a word of make. Returns `None` for an option without a value, a goal or a variable.
fn option(word: &str) -> Option<Valued<'_>> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        let named = LONG_WITH_VALUE.iter().find(|full| full.starts_with(name))?;
        let is_other = !LONG_WITH_VALUE.contains(&name) && LONG_ALONE.iter().any(|full| full.starts_with(name));
        return (!name.is_empty() && !is_other).then_some(Valued { is_folder: *named == "directory", value });
    }
    let letters = word.strip_prefix('-')?;
    // The rest of such a word is a value as well: `-j4`, `-Otarget`.
    let (at, letter) =
        letters.char_indices().find(|(_, letter)| "jlOd".contains(*letter) || SHORT_WITH_VALUE.contains(*letter))?;
    let value = Some(&letters[at + letter.len_utf8()..]).filter(|value| !value.is_empty());
    SHORT_WITH_VALUE.contains(letter).then_some(Valued { is_folder: letter == 'C', value })
}

/// Returns the folder in which make will work, after its `-C` options.
pub fn folder(make: &[OsString], cwd: &Path) -> PathBuf {
    let mut at = cwd.to_path_buf();
    let mut words = make.iter().map(|w| w.to_string_lossy().into_owned());
    while let Some(word) = words.next().filter(|word| word != "--") {
        let Some(Valued { is_folder, value }) = option(&word) else { continue };
        if let Some(value) = value.map(String::from).or_else(|| words.next()).filter(|_| is_folder) {
            at.push(value);
        }
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
        let sorted = own_first(os(&["-j8", "--hosts", "n[1-4]", "-k", "--trace-file=t", "all", "V=1"]));
        assert_eq!(sorted, os(&["--hosts", "n[1-4]", "--trace-file=t", "--", "-j8", "-k", "all", "V=1"]));
    }

    #[test]
    fn makes_own_options_stay_makes() {
        for words in [
            &["--trace", "prog"][..],
            &["-h"],
            &["--help"],
            &["-w", "--version"],
            &["--no-e", "--host", "--trac"],
            &["-f", "--hosts", "x"],
            &["-kC", "--no-evidence"],
            &["--dir", "--no-fence", "--eval", "--hosts"],
            &["--", "--hosts"],
            &["-k", "--", "--hosts", "n1"],
        ] {
            assert_eq!(own_first(os(words)), [os(&["--"]), os(words)].concat());
        }
    }

    #[test]
    fn two_dashes_behind_own_options_alone_end_them() {
        let sorted = own_first(os(&["--hosts", "n1", "--", "--trace-file", "--", "x"]));
        assert_eq!(sorted, os(&["--hosts", "n1", "--", "--trace-file", "--", "x"]));
        let sorted = own_first(os(&["--hosts", "n1", "-k", "--", "--no-fence"]));
        assert_eq!(sorted, os(&["--hosts", "n1", "--", "-k", "--", "--no-fence"]));
    }

    #[test]
    fn no_option_is_taken_for_one_of_makes() {
        let command = <crate::cmd::make::Args as clap::Args>::augment_args(clap::Command::new("make"));
        let options = command.get_arguments().filter_map(|arg| Some((arg.get_long()?.to_string(), arg)));
        for (name, arg) in options {
            let known = if arg.get_action().takes_values() { &WITH_VALUE[..] } else { &ALONE[..] };
            assert!(known.contains(&format!("--{name}").as_str()), "{name}");
            let of_make = LONG_ALONE.iter().chain(&LONG_WITH_VALUE);
            assert!(of_make.clone().all(|full| !full.starts_with(&name)), "{name} is make's");
        }
    }

    #[test]
    fn the_folder_is_the_one_of_all_changes_of_folder() {
        let of = |words: &[&str]| folder(&os(words), Path::new("/p"));
        assert_eq!(of(&["-C", "a", "-Cb", "--directory=c", "x"]), Path::new("/p/a/b/c"));
        assert_eq!(of(&["-kC", "a", "--dir", "b", "-fC", "-f", "-Cx", "-j", "-Otarget"]), Path::new("/p/a/b"));
        assert_eq!(of(&["-C", "a", "--", "-Cb"]), Path::new("/p/a"));
    }
}
