//! Finds programs beside this one: `homing-admin` is in the folder of `homing`, or in PATH.

use homing_model::Failure;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Commands that are in `homing-admin`.
pub const ADMIN: [&str; 11] =
    ["up", "down", "check", "volume", "snapshot", "bench", "tune", "topology", "power", "cache", "lab"];
const NAME: &str = "homing-admin";

/// Returns the version for people, `1.2.3+COMMIT`. The commit is that of a package, or that of the tree which was
/// built. Only a copy without a repository has none.
pub fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| match (homing_launch::wire::release(), option_env!("HOMING_TREE")) {
        (release, Some(commit)) if !release.contains('+') => format!("{release}+{commit}"),
        (release, _) => release.into(),
    })
}

/// Returns whether a command line is for `homing-admin`: one of its commands, `help` for one, or metrics of hosts.
fn is_for_admin(words: &[OsString]) -> bool {
    let word = |at: usize| words.get(at).and_then(|word| word.to_str()).unwrap_or_default();
    match word(1) {
        "help" => ADMIN.contains(&word(2)),
        // The metrics include those of volumes.
        "hosts" => words.iter().any(|word| word.as_encoded_bytes().starts_with(b"--prometheus")),
        command => ADMIN.contains(&command),
    }
}

/// Returns whether a command line is for `homing-admin` if that is installed: it has the grammar of all commands.
fn is_better_there(words: &[OsString]) -> bool {
    let word = |at: usize| words.get(at).and_then(|word| word.to_str()).unwrap_or_default();
    word(1) == "man" || ["complete", "describe"].contains(&word(1)) && ADMIN.contains(&word(2))
}

/// Becomes `homing-admin` if that is installed and these words are for it. Returns the reason why it cannot. `None`
/// means that the words are for this program, as a single file with all commands needs no other.
pub fn hand_over(words: &[OsString]) -> Option<Failure> {
    let is_for_admin = is_for_admin(words);
    let found = if is_for_admin || is_better_there(words) { find() } else { None };
    match found {
        Some(program) => Some(start(&program, words)),
        None => (is_for_admin && !cfg!(feature = "admin")).then(|| missing(words)),
    }
}

/// Becomes `homing-admin` with these words. Returns only if it cannot, with the reason.
#[cfg(not(feature = "admin"))]
pub fn become_admin(words: &[OsString]) -> Failure {
    find().map_or_else(|| missing(words), |program| start(&program, words))
}

fn start(program: &Path, words: &[OsString]) -> Failure {
    let error = std::process::Command::new(program).arg0("homing").args(&words[1..]).exec();
    Failure::system(format!("cannot start {}: {error}", program.display()))
}

/// Returns the failure of a command whose program is not installed.
fn missing(words: &[OsString]) -> Failure {
    let command = words.get(1).map_or_else(String::new, |word| word.display().to_string());
    let why = format!("homing {command} needs {NAME}, which is neither in homing's folder nor in PATH");
    let hint = "install the whole package `homing`; from source: cargo build --release, or cargo install --path crates/bin/homing";
    Failure::system(why).hint(hint)
}

/// Returns the path of this program, for processes that it starts.
pub fn own_path() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|e| Failure::system(format!("cannot find the path of this program: {e}")))
}

/// Returns the path of `homing`. `homing-admin` returns the one beside it, so that later processes have the name that
/// users know.
pub fn homing() -> std::io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let beside = own.with_file_name("homing");
    let is_admin = own.file_name().is_some_and(|name| name == NAME);
    Ok(if is_admin && is_program(&beside) { beside } else { own })
}

/// Returns the path of `homing-admin`.
fn find() -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(|folder| folder.join(NAME));
    let path = std::env::var_os("PATH").unwrap_or_default();
    // An empty or relative folder of PATH would let the current one choose the program.
    let named = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).map(|folder| folder.join(NAME));
    beside.into_iter().chain(named).find(|program| is_program(program))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let text = missing(&words("homing check -w n1")).to_string();
        for part in ["homing check", "homing-admin", "neither in homing's folder nor in PATH", "package `homing`"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn administrative_commands_are_told_apart() {
        for (line, there) in [
            ("homing check -w n1", true),
            ("homing help check", true),
            ("homing hosts --prometheus=f", true),
            ("homing hosts --json", false),
            ("homing run check ::: a", false),
            ("homing help run", false),
            ("homing", false),
        ] {
            assert_eq!(is_for_admin(&words(line)), there, "{line}");
        }
    }

    #[test]
    fn each_of_them_is_a_command() {
        use clap::CommandFactory;
        let grammar = crate::grammar::Cli::command();
        let unknown: Vec<_> = ADMIN.iter().filter(|name| grammar.find_subcommand(name).is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
