//! Keeps the output of tasks that are recorded as ended and not printed yet. It is written to the run's folder before
//! the end is journalled. Thus neither the death of a coordinator nor a full standard output loses it.
//! `homing resume` prints it.
//!
//! The file has JSON lines, and is emptied whenever no output in it waits. Output that was printed just before the
//! death of a coordinator may be printed once more.

use homing_model::{RawText, TaskId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The name of the file in the folder of a run.
pub const FILE: &str = "unprinted.jsonl";

/// One stream of a task's output.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutputContent {
    /// The whole output.
    Bytes(RawText),
    /// A file in the run's folder that holds the output.
    File(PathBuf),
}

/// The output of a task.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskOutput {
    /// The task.
    pub task: TaskId,
    /// The text that `--tag` puts before its lines.
    pub tag: RawText,
    /// Its standard output.
    pub out: OutputContent,
    /// Its error output.
    pub err: OutputContent,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum UnprintedLine {
    Kept(TaskOutput),
    Printed(TaskId),
}

/// The file of one run.
pub(crate) struct Unprinted {
    path: PathBuf,
    file: Option<File>,
    open: BTreeSet<TaskId>,
}

impl Unprinted {
    /// Opens the file in the folder `dir`, and returns the output that an earlier part of the run left.
    pub fn open(dir: &Path) -> io::Result<(Unprinted, BTreeMap<TaskId, TaskOutput>)> {
        let path = dir.join(FILE);
        let left = read(&path)?;
        let open = left.keys().copied().collect();
        Ok((Unprinted { path, file: None, open }, left))
    }

    fn append(&mut self, lines: &[UnprintedLine]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            empty => empty.insert(File::options().append(true).create(true).mode(0o600).open(&self.path)?),
        };
        let mut bytes = Vec::new();
        for line in lines {
            // A newline first: an earlier part may have ended within a line.
            bytes.push(b'\n');
            serde_json::to_writer(&mut bytes, line)?;
        }
        bytes.push(b'\n');
        file.write_all(&bytes)
    }

    /// Keeps output. Called before the end of these tasks is journalled.
    pub fn keep(&mut self, kept: Vec<TaskOutput>) -> io::Result<()> {
        if kept.is_empty() {
            return Ok(());
        }
        self.open.extend(kept.iter().map(|k| k.task));
        self.append(&kept.into_iter().map(UnprintedLine::Kept).collect::<Vec<_>>())
    }

    /// Records that the output of these tasks was printed.
    pub fn printed(&mut self, tasks: &[TaskId]) -> io::Result<()> {
        let known: Vec<UnprintedLine> =
            tasks.iter().filter(|t| self.open.remove(t)).map(|t| UnprintedLine::Printed(*t)).collect();
        match (known.is_empty(), self.open.is_empty(), &self.file) {
            (true, ..) => Ok(()),
            (false, true, Some(file)) => file.set_len(0),
            (false, true, None) => fs::write(&self.path, ""),
            (false, false, _) => self.append(&known),
        }
    }

    /// Removes the file at the end of the run, if all output was printed.
    pub fn close(&self) {
        if self.open.is_empty() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Reads the file. A torn line or a missing file keeps no output.
fn read(path: &Path) -> io::Result<BTreeMap<TaskId, TaskOutput>> {
    let mut left = BTreeMap::new();
    let file = match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(left),
        file => file?,
    };
    for line in BufReader::new(file).split(b'\n') {
        match serde_json::from_slice(&line?) {
            Ok(UnprintedLine::Kept(kept)) => drop(left.insert(kept.task, kept)),
            Ok(UnprintedLine::Printed(task)) => drop(left.remove(&task)),
            Err(_) => {}
        }
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(task: TaskId) -> TaskOutput {
        let bytes = |text: &[u8]| OutputContent::Bytes(RawText(text.to_vec()));
        TaskOutput { task, tag: "a".into(), out: bytes(b"two\nlines \xff"), err: bytes(b"") }
    }

    #[test]
    fn what_was_not_printed_is_there_again_whatever_was_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let (mut file, left) = Unprinted::open(dir.path()).unwrap();
        assert!(left.is_empty());
        file.keep(vec![kept(1), kept(2), kept(3)]).unwrap();
        file.printed(&[2]).unwrap();
        let path = dir.path().join(FILE);
        let mut torn = fs::read(&path).unwrap();
        torn.extend(b"\n{\"kept\":{\"ta");
        fs::write(&path, torn).unwrap();
        let (mut file, left) = Unprinted::open(dir.path()).unwrap();
        assert_eq!(left, BTreeMap::from([(1, kept(1)), (3, kept(3))]));
        file.keep(vec![kept(4)]).unwrap();
        file.printed(&[1, 3]).unwrap();
        assert_eq!(Unprinted::open(dir.path()).unwrap().1, BTreeMap::from([(4, kept(4))]));
        file.printed(&[4]).unwrap();
        file.close();
        assert!(!path.exists());
    }
}
