//! The user's defaults: options that `homing run` and `homing plan` are given before those of the command line,
//! which count more.

use super::args::args_of;
use crate::cluster::{config_folder, line_of, text_of};
use crate::failure::Failure;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;
use toml::{Spanned, Value};

static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// The words of the command line, with the user's defaults among them; of a command that has none, as they were typed.
pub fn words() -> Vec<OsString> {
    WORDS.get().cloned().unwrap_or_else(|| std::env::args_os().collect())
}

/// Puts the user's defaults behind the name of a command that has any.
pub fn with_defaults(mut words: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    if words.get(1).is_some_and(|word| word == "run" || word == "plan") {
        words.splice(2..2, own()?);
        let _ = WORDS.set(words.clone());
    }
    Ok(words)
}

/// The options of the file that `$HOMING_CONFIG` names (empty: of none), else of `~/.config/homing/config.toml`.
fn own() -> Result<Vec<OsString>, Failure> {
    let named = std::env::var_os("HOMING_CONFIG").map(PathBuf::from);
    let usual = named.is_none();
    let path = named.or_else(|| config_folder().map(|folder| folder.join("config.toml")));
    let Some(path) = path.filter(|path| !path.as_os_str().is_empty()) else { return Ok(Vec::new()) };
    match text_of(&path) {
        Ok(text) => options(&text).map_err(|(line, why)| {
            Failure::usage(format!("config file {}, line {line}: {why}", path.display()))
                .hint("correct that line; HOMING_CONFIG= reads none; homing run --help lists the options")
        }),
        Err(e) if usual && matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(e) => Err(Failure::usage(format!("cannot read the config file {}: {e}", path.display()))),
    }
}

/// The options that stand in `[run]`, as words of a command line; else the line, from 1, and what is wrong there.
fn options(text: &str) -> Result<Vec<OsString>, (usize, String)> {
    type File = std::collections::BTreeMap<String, Spanned<std::collections::BTreeMap<String, Spanned<Value>>>>;
    let file: File = toml::from_str(text)
        .map_err(|e| (line_of(text, e.span().map_or(0, |span| span.start)), e.message().to_string()))?;
    let mut all = Vec::new();
    for (table, keys) in file {
        if table != "run" {
            let line = line_of(text, keys.span().start);
            return Err((line, format!("unknown table [{table}]; there is [run], for homing run and homing plan")));
        }
        for (key, value) in keys.into_inner() {
            let line = line_of(text, value.span().start);
            let words = option(&key, value.into_inner()).map_err(|why| (line, format!("{key}: {why}")))?;
            args_of(&words).map_err(|e| (line, format!("{key}: {}", e.message)))?;
            all.extend(words);
        }
    }
    Ok(all)
}

/// One key as options: `quiet = true` is --quiet, a list is an option for each of its values.
fn option(key: &str, value: Value) -> Result<Vec<OsString>, String> {
    match value {
        Value::Boolean(true) => Ok(vec![format!("--{key}").into()]),
        Value::Boolean(false) => Ok(Vec::new()),
        Value::String(text) => Ok(vec![format!("--{key}={text}").into()]),
        Value::Integer(n) => Ok(vec![format!("--{key}={n}").into()]),
        Value::Float(n) => Ok(vec![format!("--{key}={n}").into()]),
        Value::Array(values) => {
            let each: Result<Vec<_>, _> = values.into_iter().map(|value| option(key, value)).collect();
            Ok(each?.concat())
        }
        Value::Table(_) | Value::Datetime(_) => Err("it takes true, a text, a number or a list".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_options_and_a_mistake_names_its_line_and_key() {
        let text = "[run]\nquiet = true\njobs = 4\nhosts = \"n[1-4]\"\nenv = [\"A\", \"B\"]\ntag = false\n";
        let words = options(text).unwrap();
        assert_eq!(words, ["--env=A", "--env=B", "--hosts=n[1-4]", "--jobs=4", "--quiet"]);
        for (text, line, said) in [
            ("[run]\n\njobz = 4\n", 3, "jobz"),
            ("[run]\non = \"mars\"\n", 2, "mars"),
            ("[run]\nquiet = 3\n", 2, "quiet"),
            ("[run]\njobs = { a = 1 }\n", 2, "jobs: it takes"),
            ("[run]\nquiet = yes\n", 2, ""),
            ("[ran]\nquiet = true\n", 1, "[run]"),
        ] {
            let (at, why) = options(text).unwrap_err();
            assert!(at == line && why.contains(said), "{text}: line {at}: {why}");
        }
    }
}
