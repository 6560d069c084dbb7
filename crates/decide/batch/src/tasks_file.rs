//! `--tasks FILE`: one JSON object on each line, for programs that generate work.

mod line;
mod lines;
mod links;

use crate::error::BatchError;
use crate::options::InputOptions;
use homing_model::graph::Makers;
use homing_model::{Task, TaskId};
pub use line::offered;
use line::{Line, Setting};
use lines::Lines;
use links::Links;
use std::io::BufRead;
use std::path::PathBuf;

pub(crate) struct TaskLines {
    lines: Lines,
    uses_stdin: bool,
    setting: Setting,
    links: Links,
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
        let setting = Setting { cwd, functions, resources };
        let links = match again {
            Some(path) => Links::of_file(&path, &name, &setting)?,
            None => Links::Coming(Makers::of_a_stream()),
        };
        Ok(TaskLines { lines: Lines::new(reader, name), uses_stdin, setting, links })
    }

    pub(crate) fn uses_stdin(&self) -> bool {
        self.uses_stdin
    }

    /// Returns the number of tasks, if the file was read ahead.
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
