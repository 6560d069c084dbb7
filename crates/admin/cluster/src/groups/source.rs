//! One group source: commands that print groups (`map`, `all`, `list`, `reverse`), or a table from a file.

use super::conf::substitute;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The origin of a source's groups.
#[derive(Debug)]
pub enum GroupSource {
    /// Commands of `groups.conf`, run by /bin/sh in its folder.
    Upcalls {
        /// `map`, `all`, `list`, `reverse`.
        commands: BTreeMap<String, String>,
        /// The folder that replaces `$CFGDIR`.
        folder: PathBuf,
    },
    /// Group names and node sets.
    Table(BTreeMap<String, String>),
}

impl GroupSource {
    /// Returns the nodes of a group; `None` if there is no such group.
    pub fn group(&self, own: &str, name: &str) -> Result<Option<String>, String> {
        if let GroupSource::Table(groups) = self {
            return Ok(groups.get(name).cloned());
        }
        let nodes = self.upcall(own, "map", &[("GROUP", name)])?.unwrap_or_default();
        if !nodes.is_empty() {
            return Ok(Some(nodes));
        }
        // No output may mean an empty group, or a missing one.
        let known = self.list(own)?.is_some_and(|names| names.iter().any(|n| n == name));
        Ok(known.then_some(nodes))
    }

    /// Returns all nodes; `None` if the source does not list them.
    pub fn all(&self, own: &str) -> Result<Option<String>, String> {
        match self {
            GroupSource::Table(groups) => Ok(groups.get("all").cloned()),
            GroupSource::Upcalls { .. } => self.upcall(own, "all", &[]),
        }
    }

    /// Returns the names of the groups, in the source's order; `None` if the source does not list them.
    pub fn list(&self, own: &str) -> Result<Option<Vec<String>>, String> {
        match self {
            GroupSource::Table(groups) => Ok(Some(groups.keys().cloned().collect())),
            GroupSource::Upcalls { .. } => Ok(self.upcall(own, "list", &[])?.map(|t| words(&t))),
        }
    }

    /// Returns the groups of one node; `None` if the source has no such query.
    pub fn reverse(&self, own: &str, node: &str) -> Result<Option<Vec<String>>, String> {
        match self {
            GroupSource::Table(_) => Ok(None),
            GroupSource::Upcalls { .. } => Ok(self.upcall(own, "reverse", &[("NODE", node)])?.map(|t| words(&t))),
        }
    }

    /// Returns the words that a command printed, joined by commas; `None` if there is no such command.
    fn upcall(&self, own: &str, which: &str, values: &[(&str, &str)]) -> Result<Option<String>, String> {
        let GroupSource::Upcalls { commands, folder } = self else { return Ok(None) };
        let Some(template) = commands.get(which) else { return Ok(None) };
        for (what, value) in values {
            harmless(what, value)?;
        }
        let folder_text = folder.display().to_string();
        let mut all = vec![("CFGDIR", folder_text.as_str()), ("SOURCE", own)];
        all.extend(values);
        let line = substitute(template, &all);
        run(&line, folder).map(Some).map_err(|e| format!("group source {own:?}: {which}: {e}"))
    }
}

/// Checks a value that becomes part of a shell command.
fn harmless(what: &str, value: &str) -> Result<(), String> {
    let fine = |c: char| c.is_alphanumeric() || "_.:+=@%/-".contains(c);
    if !value.is_empty() && value.chars().all(fine) {
        return Ok(());
    }
    Err(format!("{value:?} cannot be the name of a {}", what.to_lowercase()))
}

fn run(line: &str, folder: &Path) -> Result<String, String> {
    let output = Command::new("/bin/sh")
        .args(["-c", line])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("starting {line:?}: {e}"))?;
    if !output.status.success() {
        return Err(format!("{line:?} ended with {}", output.status));
    }
    Ok(words(&String::from_utf8_lossy(&output.stdout)).join(","))
}

fn words(text: &str) -> Vec<String> {
    text.split([',', ' ', '\n', '\t', '\r']).filter(|w| !w.is_empty()).map(String::from).collect()
}
