//! `--tasks FILE`: one JSON object on each line, for programs that generate work.

mod line;
mod lines;
mod links;
mod types;

use crate::error::BatchError;
use crate::options::InputOptions;
use homing_model::graph::Makers;
use homing_model::{Task, TaskId};
pub use line::offered;
use line::{TaskDefaults, TaskFileLine};
use lines::TaskFileReader;
use links::TaskLinks;
use std::io::BufRead;
use std::path::PathBuf;

pub(crate) struct TaskLines {
    lines: TaskFileReader,
    uses_stdin: bool,
    setting: TaskDefaults,
    links: TaskLinks,
}

impl TaskLines {
    pub(crate) fn open(
        reader: Box<dyn BufRead + Send>,
        again: Option<PathBuf>,
        name: &str,
        options: InputOptions,
    ) -> Result<TaskLines, BatchError> {
        let uses_stdin = name == "-";
        let name = if uses_stdin { "standard input".to_owned() } else { name.to_owned() };
        let InputOptions { cwd, functions, resources, .. } = options;
        let setting = TaskDefaults { cwd, functions, resources };
        let links = match again {
            Some(path) => TaskLinks::of_file(&path, &name, &setting)?,
            None => TaskLinks::Coming(Makers::of_a_stream()),
        };
        Ok(TaskLines { lines: TaskFileReader::new(reader, name), uses_stdin, setting, links })
    }

    pub(crate) fn uses_stdin(&self) -> bool {
        self.uses_stdin
    }

    /// Returns the number of tasks, if the file was read ahead.
    pub(crate) fn total(&self) -> Option<u64> {
        match self.links {
            TaskLinks::Known { tasks, .. } => Some(tasks),
            TaskLinks::None | TaskLinks::Coming(_) => None,
        }
    }

    /// Whether tasks may depend on others.
    pub(crate) fn has_links(&self) -> bool {
        !matches!(self.links, TaskLinks::None)
    }

    pub(crate) fn next(&mut self, id: TaskId) -> Result<Option<Task>, BatchError> {
        let Some(text) = self.lines.next()? else { return Ok(None) };
        let task = TaskFileLine::parse(&text).and_then(|line| {
            let after = self.links.after(id, self.lines.line, &line, &self.setting)?;
            line.task(id, after, &self.setting)
        });
        task.map(Some).map_err(|reason| self.lines.wrong(reason))
    }
}
