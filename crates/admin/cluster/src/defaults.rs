//! Reads the user's defaults: options of `homing run` and `homing plan` in a file.

use crate::{config_folder, line_of, text_of};
use homing_model::Failure;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use toml::{Spanned, Value};

/// Checks words of a command line, and returns the fault.
type ArgumentCheck<'a> = &'a dyn Fn(&[OsString]) -> Result<(), String>;

/// Returns the options of the file that `$HOMING_CONFIG` names, else of `~/.config/homing/config.toml`; an empty
/// `$HOMING_CONFIG` means no file. `check` is applied to the words of each option.
pub fn own(check: ArgumentCheck) -> Result<Vec<OsString>, Failure> {
    let named = std::env::var_os("HOMING_CONFIG").map(PathBuf::from);
    let usual = named.is_none();
    let path = named.or_else(|| config_folder().map(|folder| folder.join("config.toml")));
    let Some(path) = path.filter(|path| !path.as_os_str().is_empty()) else { return Ok(Vec::new()) };
    match text_of(&path) {
        Ok(text) => options(&text, check).map_err(|(line, why)| {
            Failure::usage(format!("config file {}, line {line}: {why}", path.display()))
                .hint("correct that line; HOMING_CONFIG= reads no config file; homing run --help lists the options")
        }),
        Err(e) if usual && matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(e) => Err(Failure::usage(format!("cannot read the config file {}: {e}", path.display()))),
    }
}

/// Returns the options in `[run]`, as words of a command line; else the line, from 1, and its fault.
fn options(text: &str, check: ArgumentCheck) -> Result<Vec<OsString>, (usize, String)> {
    type File = std::collections::BTreeMap<String, Spanned<std::collections::BTreeMap<String, Spanned<Value>>>>;
    let file: File = toml::from_str(text)
        .map_err(|e| (line_of(text, e.span().map_or(0, |span| span.start)), e.message().to_string()))?;
    let mut all = Vec::new();
    for (table, keys) in file {
        if table != "run" {
            let line = line_of(text, keys.span().start);
            return Err((
                line,
                format!("unknown table [{table}]; the only one is [run], for homing run and homing plan"),
            ));
        }
        for (key, value) in keys.into_inner() {
            let line = line_of(text, value.span().start);
            let value = value.into_inner();
            // A switch with the value false gives no word, but its option must exist all the same.
            let checked = if value == Value::Boolean(false) { Value::Boolean(true) } else { value.clone() };
            let wrong = |why| (line, format!("{key}: {why}"));
            option(&key, checked).and_then(|words| check(&words)).map_err(wrong)?;
            all.extend(option(&key, value).map_err(wrong)?);
        }
    }
    Ok(all)
}

/// Converts one key to options: `quiet = true` is --quiet, a list is an option for each of its values.
fn option(key: &str, value: Value) -> Result<Vec<OsString>, String> {
    match value {
        Value::Boolean(true) => Ok(vec![format!("--{key}").into()]),
        Value::Boolean(false) => Ok(Vec::new()),
        Value::String(text) => Ok(vec![format!("--{key}={text}").into()]),
        Value::Integer(n) => Ok(vec![format!("--{key}={n}").into()]),
        Value::Float(n) => Ok(vec![format!("--{key}={n}").into()]),
        Value::Array(values) if values.is_empty() => Err("an empty list sets no option; remove the line".into()),
        Value::Array(values) => {
            let each: Result<Vec<_>, _> = values.into_iter().map(|value| option(key, value)).collect();
            Ok(each?.concat())
        }
        Value::Table(_) | Value::Datetime(_) => Err("the value must be true, a text, a number or a list".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_options_and_a_mistake_names_its_line_and_key() {
        let text = "[run]\nquiet = true\njobs = 4\nhosts = \"n[1-4]\"\nenv = [\"A\", \"B\"]\ntag = false\n";
        let known = |words: &[OsString]| {
            let odd = words.iter().find(|word| {
                ["--jobz", "--on=mars", "--quiet=3"].iter().any(|bad| word.to_str().unwrap().starts_with(bad))
            });
            odd.map_or(Ok(()), |word| Err(format!("{word:?} is not understood")))
        };
        let words = options(text, &known).unwrap();
        assert_eq!(words, ["--env=A", "--env=B", "--hosts=n[1-4]", "--jobs=4", "--quiet"]);
        for (text, line, said) in [
            ("[run]\n\njobz = 4\n", 3, "jobz"),
            ("[run]\non = \"mars\"\n", 2, "mars"),
            ("[run]\nquiet = 3\n", 2, "quiet"),
            ("[run]\njobs = { a = 1 }\n", 2, "jobs: the value must be"),
            ("[run]\nquiet = yes\n", 2, ""),
            ("[run]\n\njobz = false\n", 3, "jobz"),
            ("[run]\njobz = []\n", 2, "empty list"),
            ("[ran]\nquiet = true\n", 1, "[run]"),
        ] {
            let (at, why) = options(text, &known).unwrap_err();
            assert!(at == line && why.contains(said), "{text}: line {at}: {why}");
        }
    }
}
