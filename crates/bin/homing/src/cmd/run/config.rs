//! Puts the user's defaults, GNU parallel's and homing's own, before the options of `homing run` and `homing plan`.
//! The command line wins over them.

use super::args::{args_of, join_json, number_lines};
use homing_cluster::defaults;
use homing_model::Failure;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::OnceLock;

static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Returns the words of the command line, with the user's defaults among them. The words of a command without
/// defaults are returned as they were typed.
pub fn words() -> Vec<OsString> {
    WORDS.get().cloned().unwrap_or_else(|| std::env::args_os().collect())
}

/// Returns GNU parallel's defaults: the options of `~/.parallel/config`, or of the profiles of `-J`, then those of
/// `$PARALLEL`.
fn of_parallel(typed: &[OsString]) -> Result<Vec<OsString>, Failure> {
    let folder = std::env::var_os("PARALLEL_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let folder = folder.or_else(|| Some(homing_os::names::home()?.join(".parallel")));
    let has_any = std::env::var_os("PARALLEL").is_some() || folder.as_ref().is_some_and(|folder| folder.exists());
    // Parsing costs every run about a millisecond, and most users have no defaults.
    if !has_any && !typed.iter().any(|word| may_name_profile(word)) {
        return Ok(Vec::new());
    }
    let given = args_of(typed).map(|args| args.parallel).unwrap_or_default();
    if given.plain {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    let usual = vec!["config".to_string()];
    for name in if given.profile.is_empty() { &usual } else { &given.profile } {
        let Some(path) = folder.as_ref().map(|folder| folder.join(name)) else { continue };
        match std::fs::read_to_string(&path) {
            Ok(text) => all.extend(words_of(&text, &path.display().to_string())?),
            Err(_) if given.profile.is_empty() => {}
            Err(e) => return Err(Failure::usage(format!("cannot read the profile {}: {e}", path.display()))),
        }
    }
    if let Ok(text) = std::env::var("PARALLEL") {
        all.extend(words_of(&text, "$PARALLEL")?);
    }
    Ok(all)
}

/// Whether a word can be `-J`, alone or among other letters, or `--profile` or its beginning.
fn may_name_profile(word: &OsStr) -> bool {
    let word = word.as_encoded_bytes();
    word.starts_with(b"--p") || word.starts_with(b"-") && !word.starts_with(b"--") && word.contains(&b'J')
}

/// Parses the options in a file or variable line by line. A line that begins with `#` is a comment.
fn words_of(text: &str, from: &str) -> Result<Vec<OsString>, Failure> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let wrong = |why: String| {
        Failure::usage(format!("reading GNU parallel's defaults in {from}: {why}")).hint("--plain ignores them")
    };
    let words =
        lines.map(|line| shlex::split(line).ok_or_else(|| wrong(format!("{line:?} has a quote without an end"))));
    let words: Vec<OsString> = words.collect::<Result<Vec<_>, _>>()?.concat().into_iter().map(OsString::from).collect();
    match args_of(&words) {
        Ok(args) if args.words.is_empty() => Ok(words),
        Ok(args) => Err(wrong(format!("{:?} is not an option", args.words[0]))),
        Err(e) => Err(wrong(e.message)),
    }
}

/// Puts the user's defaults behind the name of a command that has any.
pub fn with_defaults(mut words: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    if words.get(1).is_some_and(|word| word == "run" || word == "plan") {
        words = merged(words)?;
        let _ = WORDS.set(words.clone());
    }
    Ok(words)
}

/// Puts the user's defaults behind the first two words of a command line, `homing run`.
pub fn merged(mut words: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    let own = defaults::own(&|words| args_of(words).map(drop).map_err(|e| e.message))?;
    let defaults = [of_parallel(&words[2..])?, own].concat();
    words.splice(2..2, defaults);
    Ok(number_lines(join_json(words)))
}
