//! `--tasks FILE`: one JSON object a line, for programs that make work.

mod line;
mod lines;
mod links;

use crate::compose::Batch;
use crate::error::BatchError;
use crate::options::InputOptions;
use homing_graph::Makers;
use homing_model::{Task, TaskId};
use line::{Line, Setting};
use lines::Lines;
use links::Links;
use std::io::BufRead;
use std::path::PathBuf;

/// Tasks from JSON lines. Fields: `name`, `command` (string) or `argv` (list), `cwd`,
/// `env` (object), `after` (names or numbers of tasks), `inputs`, `outputs`, `cpus`,
/// `memory` (bytes, or `"2G"`), `resources` (object of numbers), `timeout` (seconds, or `"2m"`).
/// Empty lines are passed over. `name` is for messages; `-` means standard input. `again` is a
/// file with the same bytes: without one a task can depend only on tasks before it.
///
/// # Errors
/// What is wrong with a line of a file whose tasks depend on each other, or cannot be read.
pub fn tasks_file(
    reader: Box<dyn BufRead + Send>,
    again: Option<PathBuf>,
    name: &str,
    options: InputOptions,
) -> Result<Batch, BatchError> {
    let uses_stdin = name == "-";
    let name = if uses_stdin { "standard input".to_owned() } else { name.to_owned() };
    let InputOptions { cwd, functions, tag, resources, .. } = options;
    let setting = Setting { cwd, functions, resources };
    let links = match again {
        Some(path) => Links::of_file(&path, &name, &setting)?,
        None => Links::Coming(Makers::of_a_stream()),
    };
    let lines = TaskLines { lines: Lines::new(reader, name), uses_stdin, setting, links };
    Ok(Batch::of_lines(lines, tag.is_some()))
}

pub(crate) struct TaskLines {
    lines: Lines,
    uses_stdin: bool,
    setting: Setting,
    links: Links,
}

impl TaskLines {
    pub(crate) fn uses_stdin(&self) -> bool {
        self.uses_stdin
    }

    /// How many there are, where the file was read ahead.
    pub(crate) fn total(&self) -> Option<u64> {
        match self.links {
            Links::Known { tasks, .. } => Some(tasks),
            Links::None | Links::Coming(_) => None,
        }
    }

    /// Whether tasks may depend on others.
    pub(crate) fn has_links(&self) -> bool {
        !matches!(self.links, Links::None)
    }

    pub(crate) fn next(&mut self, id: TaskId) -> Result<Option<Task>, BatchError> {
        let Some(text) = self.lines.next()? else { return Ok(None) };
        let task = Line::parse(&text).and_then(|line| {
            let after = self.links.after(id, self.lines.line, &line, &self.setting)?;
            line.task(id, after, &self.setting)
        });
        task.map(Some).map_err(|reason| self.lines.wrong(reason))
    }
}
