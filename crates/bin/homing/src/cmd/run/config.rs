//! The user's defaults: options that `homing run` and `homing plan` are given before those of the command line,
//! which count more.

use super::args::{args_of, join_json};
use homing_cluster::defaults;
use homing_model::Failure;
use std::ffi::OsString;
use std::sync::OnceLock;

static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// The words of the command line, with the user's defaults among them; of a command that has none, as they were typed.
pub fn words() -> Vec<OsString> {
    WORDS.get().cloned().unwrap_or_else(|| std::env::args_os().collect())
}

/// A note where GNU parallel's own defaults are set, which homing does not read. A user with defaults for homing knows.
pub fn note_of_parallels(quiet: bool) {
    if quiet || !defaults::are_unset() {
        return;
    }
    let variable = std::env::var_os("PARALLEL").is_some_and(|options| !options.is_empty());
    let file = homing_os::names::home().map(|home| home.join(".parallel/config"));
    let file = file.is_some_and(|path| path.metadata().is_ok_and(|known| known.len() > 0));
    let named = match (variable, file) {
        (true, _) => "$PARALLEL",
        (_, true) => "~/.parallel/config",
        _ => return,
    };
    eprintln!("homing: {named} is not read; [run] in ~/.config/homing/config.toml has options that are always wanted");
}

/// Puts the user's defaults behind the name of a command that has any.
pub fn with_defaults(mut words: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    if words.get(1).is_some_and(|word| word == "run" || word == "plan") {
        words.splice(2..2, defaults::own(&|words| args_of(words).map(drop).map_err(|e| e.message))?);
        words = join_json(words);
        let _ = WORDS.set(words.clone());
    }
    Ok(words)
}
