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

/// Words of the user's defaults: options, and the beginning of the command.
#[derive(Default)]
struct DefaultWords {
    options: Vec<OsString>,
    command: Vec<OsString>,
}

/// Returns GNU parallel's defaults: the words of `~/.parallel/config`, or of the profiles of `-J`, then those of
/// `$PARALLEL`.
fn of_parallel(typed: &[OsString]) -> Result<DefaultWords, Failure> {
    let folder = std::env::var_os("PARALLEL_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let folder = folder.or_else(|| Some(homing_os::names::home()?.join(".parallel")));
    let has_any = std::env::var_os("PARALLEL").is_some() || folder.as_ref().is_some_and(|folder| folder.exists());
    // Parsing costs every run about a millisecond, and most users have no defaults.
    if !has_any && !typed.iter().any(|word| may_name_profile(word)) {
        return Ok(DefaultWords::default());
    }
    let given = args_of(typed).map(|args| args.parallel).unwrap_or_default();
    if given.plain {
        return Ok(DefaultWords::default());
    }
    let mut all = DefaultWords::default();
    let usual = vec!["config".to_string()];
    for name in if given.profile.is_empty() { &usual } else { &given.profile } {
        let Some(path) = folder.as_ref().map(|folder| folder.join(name)) else { continue };
        match std::fs::read_to_string(&path) {
            Ok(text) => all.add(&text, &path.display().to_string())?,
            Err(_) if given.profile.is_empty() => {}
            Err(e) => return Err(Failure::usage(format!("cannot read the profile {}: {e}", path.display()))),
        }
    }
    if let Ok(text) = std::env::var("PARALLEL") {
        all.add(&text, "$PARALLEL")?;
    }
    Ok(all)
}

/// Whether a word can be `-J`, alone or among other letters, or `--profile` or its beginning.
fn may_name_profile(word: &OsStr) -> bool {
    let word = word.as_encoded_bytes();
    word.starts_with(b"--p") || word.starts_with(b"-") && !word.starts_with(b"--") && word.contains(&b'J')
}

impl DefaultWords {
    /// Adds the words of a file or variable, line by line. A line that begins with `#` is a comment.
    fn add(&mut self, text: &str, from: &str) -> Result<(), Failure> {
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let wrong = |why: String| {
            Failure::usage(format!("reading GNU parallel's defaults in {from}: {why}")).hint("--plain ignores them")
        };
        let words =
            lines.map(|line| shlex::split(line).ok_or_else(|| wrong(format!("{line:?} has a quote without an end"))));
        let words = words.collect::<Result<Vec<_>, _>>()?.concat();
        let mut options: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        let command = args_of(&options).map_err(|e| wrong(e.message))?.words.len();
        self.command.extend(options.split_off(options.len() - command));
        self.options.extend(options);
        Ok(())
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
    let DefaultWords { options, command } = of_parallel(&words[2..])?;
    if !command.is_empty() {
        let typed = args_of(&words[2..]).map_or(0, |args| args.words.len());
        let at = words.len() - typed;
        words.splice(at..at, command);
    }
    words.splice(2..2, [options, own].concat());
    Ok(number_lines(join_json(words)))
}
