//! Chooses the files of `--results` for the output of each task, like GNU parallel.

use crate::error::BatchError;
use crate::strings::{Replacements, Strings};
use crate::template::{Filling, TextTemplate};
use homing_model::{RawText, Task};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Longest name of a file on the file systems of Linux, bytes.
const NAME_MAX: usize = 255;

/// The result files of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultPaths {
    /// Standard output.
    pub stdout: PathBuf,
    /// Standard error.
    pub stderr: PathBuf,
    /// The file with the task's number.
    pub seq: PathBuf,
}

/// The value of `--results`.
#[derive(Clone, Debug)]
pub struct ResultsOption {
    text: RawText,
    template: Option<TextTemplate>,
    columns: Vec<RawText>,
}

impl ResultsOption {
    /// Reads a directory, or a template with replacement strings: `out/{1}.txt` names a file, `out/{1}/` a directory.
    /// `columns` are the names from [`crate::Batch::columns`].
    pub fn parse(text: &RawText, columns: &[RawText]) -> Result<Self, BatchError> {
        if text.0.is_empty() {
            return Err(BatchError::value("--results", "", "name a directory, or a file like out/{1}"));
        }
        let names = columns.iter().map(|name| name.0.clone()).collect();
        let template = TextTemplate::parse(text, &Strings::new(&Replacements::default(), names, None)?)?;
        let template = Some(template).filter(TextTemplate::has_replacement);
        Ok(ResultsOption { text: text.clone(), template, columns: columns.to_vec() })
    }

    /// Returns the folder of all results, if there is one for all tasks.
    pub fn folder(&self) -> Option<PathBuf> {
        self.template.is_none().then(|| self.text.to_path())
    }

    /// Returns the files of `task`; creates nothing. Fails if a value leads out of the folder that the template
    /// names, because another user may have written the list of values. A template that begins with a value names no
    /// folder.
    pub fn paths(&self, task: &Task) -> Result<ResultPaths, BatchError> {
        let Some(template) = &self.template else {
            return Ok(in_directory(self.tree(task)));
        };
        let path = template.fill(Filling { args: &task.args, seq: task.id, total: None });
        if !self.text.0.starts_with(b"{") && ways_up(&path) > ways_up(&self.text) {
            return Err(BatchError::LeadsOut { results: self.text.clone(), path });
        }
        if path.0.ends_with(b"/") {
            return Ok(in_directory(path.to_path()));
        }
        let with = |suffix: &[u8]| PathBuf::from(OsString::from_vec([&path.0, suffix].concat()));
        Ok(ResultPaths { stdout: with(b""), stderr: with(b".err"), seq: with(b".seq") })
    }

    /// Returns `DIR/1/VALUE/2/VALUE`: name or number of the source, then its value. The tasks of a task file have no
    /// values, and use `DIR/NUMBER`.
    fn tree(&self, task: &Task) -> PathBuf {
        let mut path = self.text.to_path();
        if task.args.is_empty() {
            path.push(task.id.to_string());
        }
        for i in in_order_of_names(&self.columns, task.args.len()) {
            let value = &task.args[i];
            let named = self.columns.get(i).filter(|name| !name.0.is_empty());
            path.push(match named {
                Some(name) => OsString::from_vec(file_name(&name.0)),
                None => (i + 1).to_string().into(),
            });
            // An empty value adds no level, as in GNU parallel.
            path.push(OsString::from_vec(file_name(&value.0)));
        }
        path
    }
}

/// Returns the positions of the values by the names of their columns, as GNU parallel orders them: first by the number
/// with which a name begins. A column without a name has its number as its name; without any name the order stays.
fn in_order_of_names(columns: &[RawText], values: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values).collect();
    if columns.iter().all(|name| name.0.is_empty()) {
        return order;
    }
    let name = |i: &usize| match columns.get(*i).filter(|name| !name.0.is_empty()) {
        Some(name) => name.0.clone(),
        None => (i + 1).to_string().into_bytes(),
    };
    order.sort_by_cached_key(|i| (leading_number(&name(i)), name(i)));
    order
}

/// Returns the number with which a name begins, 0 without one.
fn leading_number(name: &[u8]) -> u64 {
    let digits = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&name[..digits]).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Counts how often a path goes to the parent folder.
fn ways_up(path: &RawText) -> usize {
    path.0.split(|byte| *byte == b'/').filter(|name| *name == b"..").count()
}

fn in_directory(dir: PathBuf) -> ResultPaths {
    ResultPaths { stdout: dir.join("stdout"), stderr: dir.join("stderr"), seq: dir.join("seq") }
}

/// Returns a value as one file name: `/` is `\_`, tab `\t`, backslash `\\`, cut at the longest name. `.` and `..` get
/// a backslash: no value leads out.
fn file_name(value: &[u8]) -> Vec<u8> {
    if matches!(value, b"." | b"..") {
        return [b"\\", value].concat();
    }
    let mut name = Vec::with_capacity(value.len());
    for &byte in value {
        match byte {
            b'\\' => name.extend_from_slice(b"\\\\"),
            b'\t' => name.extend_from_slice(b"\\t"),
            b'/' => name.extend_from_slice(b"\\_"),
            _ => name.push(byte),
        }
    }
    name.truncate(NAME_MAX);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(results: &str, args: &[&str]) -> Result<ResultPaths, BatchError> {
        let args = args.iter().map(|a| RawText::from(*a)).collect();
        let task = Task { id: 7, args, ..Task::of(homing_model::Command::Shell("x".into())) };
        ResultsOption::parse(&results.into(), &[]).unwrap().paths(&task)
    }

    fn stdout(results: &str, args: &[&str]) -> String {
        paths(results, args).unwrap().stdout.to_str().unwrap().to_owned()
    }

    #[test]
    fn paths_as_gnu_parallel_makes_them() {
        assert_eq!(stdout("R", &["a/b", "3"]), "R/1/a\\_b/2/3/stdout");
        assert_eq!(stdout("R", &[]), "R/7/stdout");
        assert_eq!(stdout("R", &["tab\tb"]), "R/1/tab\\tb/stdout");
        assert_eq!(stdout("R", &["a\\b"]), "R/1/a\\\\b/stdout");
        assert_eq!(stdout("R", &["", "x"]), "R/1/2/x/stdout");
        assert_eq!(stdout("R", &[&"a".repeat(300)]), format!("R/1/{}/stdout", "a".repeat(255)));
        assert_eq!(stdout("R/{1}/x", &["a"]), "R/a/x");
        assert_eq!(stdout("R/{#}/", &["a"]), "R/7/stdout");
    }

    #[test]
    fn the_tree_is_ordered_by_the_names_of_columns() {
        let task =
            Task { id: 1, args: vec!["x".into(), "y".into()], ..Task::of(homing_model::Command::Shell("c".into())) };
        let stdout = |names: [&str; 2]| {
            let results = ResultsOption::parse(&"R".into(), &names.map(RawText::from)).unwrap();
            results.paths(&task).unwrap().stdout
        };
        assert_eq!(stdout(["b", "a"]), PathBuf::from("R/a/y/b/x/stdout"));
        assert_eq!(stdout(["11a", "2a"]), PathBuf::from("R/2a/y/11a/x/stdout"));
        assert_eq!(stdout(["b", ""]), PathBuf::from("R/b/x/2/y/stdout"));
        assert_eq!(stdout(["", ""]), PathBuf::from("R/1/x/2/y/stdout"));
    }

    #[test]
    fn no_value_leads_out_of_the_tree() {
        assert_eq!(stdout("R", &["..", "."]), "R/1/\\../2/\\./stdout");
        assert_eq!(stdout("R", &["/etc/x"]), "R/1/\\_etc\\_x/stdout");
        let leads_out = "--results ../../res/{} leads to ../../res/../../../tmp/x, out of its folder";
        let refused = paths("../../res/{}", &["../../../tmp/x"]).unwrap_err().to_string();
        assert!(refused.starts_with(leads_out), "{refused}");
        assert!(paths("res/{1}/", &[".."]).is_err());
        assert_eq!(stdout("../res/{}", &["a..b/c"]), "../res/a..b/c");
        assert_eq!(stdout("{.}.log", &["../data/a.txt"]), "../data/a.log", "it is beside its input, and in no folder");
    }
}
