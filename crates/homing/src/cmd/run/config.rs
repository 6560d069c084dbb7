//! The user's defaults: options that `homing run` and `homing plan` are given before those of the command line,
//! which count more.

use super::args::args_of;
use homing_cluster::defaults;
use homing_model::Failure;
use std::ffi::OsString;
use std::sync::OnceLock;

static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// The words of the command line, with the user's defaults among them; of a command that has none, as they were typed.
pub fn words() -> Vec<OsString> {
    WORDS.get().cloned().unwrap_or_else(|| std::env::args_os().collect())
}

/// Puts the user's defaults behind the name of a command that has any.
pub fn with_defaults(mut words: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    if words.get(1).is_some_and(|word| word == "run" || word == "plan") {
        words.splice(2..2, defaults::own(&|words| args_of(words).map(drop).map_err(|e| e.message))?);
        let _ = WORDS.set(words.clone());
    }
    Ok(words)
}
