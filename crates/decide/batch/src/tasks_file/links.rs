//! Finds which tasks of a file run after which. A file is read ahead as a whole. A task may name one of a later line,
//! and a mistake on any line is an error before anything runs. In a stream, a task knows only the lines before its
//! own.

use super::line::{TaskDefaults, TaskFileLine};
use super::lines::TaskFileReader;
use crate::error::BatchError;
use homing_model::graph::{Clash, Maker, Makers, Other, UnknownTask, circle};
use homing_model::{RawText, TaskId};
use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::hash::BuildHasher;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The known links.
pub(super) enum TaskLinks {
    /// There are none.
    None,
    /// All links are known, and the number of tasks.
    Known { after: HashMap<TaskId, Vec<TaskId>>, tasks: u64 },
    /// Links become known as the lines arrive.
    Coming(Makers),
}

impl TaskLinks {
    /// Reads the links of a file, to its end.
    pub fn of_file(path: &Path, name: &str, setting: &TaskDefaults) -> Result<TaskLinks, BatchError> {
        let open = || {
            let opened = File::open(path).map_err(|source| BatchError::Read { name: name.into(), source })?;
            Ok(TaskFileReader::new(Box::new(BufReader::with_capacity(1 << 16, opened)), name.into()))
        };
        if !needs_all_lines(open()?, setting)? {
            return Ok(TaskLinks::None);
        }
        let (mut all, mut makers, mut lines) = (open()?, Makers::default(), Vec::new());
        while let Some(line) = all.next()? {
            let task = lines.len() as TaskId + 1;
            let known = TaskFileLine::parse(&line).and_then(|line| line.known(task, all.line, &mut makers, setting));
            lines.push((all.line, known.map_err(|reason| all.wrong(reason))?));
        }
        let mut after = HashMap::new();
        for (task, (line, wants)) in (1..).zip(&lines) {
            all.line = *line;
            let needs = wants.needs(task, &makers).map_err(|reason| all.wrong(reason))?;
            if !needs.is_empty() {
                after.insert(task, needs);
            }
        }
        if let Some(way) = circle(&after) {
            let called = |task: &TaskId| makers.name(*task).map_or_else(|| format!("task {task}"), RawText::display);
            (all.line, _) = lines[way[0] as usize - 1];
            return Err(all.wrong(in_a_circle(&way.iter().map(called).collect::<Vec<_>>())));
        }
        Ok(if after.is_empty() { TaskLinks::None } else { TaskLinks::Known { after, tasks: lines.len() as u64 } })
    }

    /// Returns the tasks that task `task`, on this line, runs after.
    pub fn after(
        &mut self,
        task: TaskId,
        at: u64,
        line: &TaskFileLine,
        setting: &TaskDefaults,
    ) -> Result<Vec<TaskId>, String> {
        match self {
            TaskLinks::None => Ok(Vec::new()),
            TaskLinks::Known { after, .. } => Ok(after.remove(&task).unwrap_or_default()),
            TaskLinks::Coming(_) if !line.may_link() => Ok(Vec::new()),
            TaskLinks::Coming(makers) => {
                let needs = line.wants(setting).needs(task, makers)?;
                line.add_to(makers, Maker { task, line: at }, setting)?;
                Ok(needs)
            }
        }
    }
}

impl TaskFileLine {
    /// Adds it to the known tasks, and checks whether it makes a task.
    fn known(self, task: TaskId, at: u64, makers: &mut Makers, setting: &TaskDefaults) -> Result<Wants, String> {
        self.add_to(makers, Maker { task, line: at }, setting)?;
        let wants = self.wants(setting);
        self.task(task, Vec::new(), setting).map(|_| wants)
    }

    fn wants(&self, setting: &TaskDefaults) -> Wants {
        Wants { after: self.after(), inputs: self.inputs(&setting.cwd) }
    }

    fn add_to(&self, makers: &mut Makers, maker: Maker, setting: &TaskDefaults) -> Result<(), String> {
        let outputs: Vec<PathBuf> = self.outputs(&setting.cwd);
        makers.add(maker, self.name.as_ref(), outputs.iter().map(PathBuf::as_path)).map_err(|clash| match clash {
            Clash::Name(name, first) => {
                format!("the task on line {} has the name {:?} too", first.line, name.display())
            }
            Clash::Output(path, first) => {
                format!("{} is an output of the task on line {} too", path.display(), first.line)
            }
        })
    }
}

/// The tasks and files that a task needs from others.
struct Wants {
    after: Vec<Other>,
    inputs: Vec<PathBuf>,
}

impl Wants {
    fn needs(&self, task: TaskId, makers: &Makers) -> Result<Vec<TaskId>, String> {
        let inputs = self.inputs.iter().map(PathBuf::as_path);
        makers.needs(task, &self.after, inputs).map_err(|UnknownTask(other)| match other {
            Other::Name(name) => format!("'after' names {:?}, but no task has this name", name.display()),
            Other::Number(number) => format!("'after' names task {number}, but no task has this number"),
        })
    }
}

fn in_a_circle(names: &[String]) -> String {
    let [first, rest @ ..] = names else { return String::new() };
    let on = rest.iter().chain([first]).map(|name| format!(" runs after {name}"));
    format!("these tasks could never run: {first}{}", on.collect::<Vec<_>>().join(", which"))
}

/// Reads a file to its end before anything runs. Fails at the first line that makes no task; returns whether some
/// task may be linked with another, or may have the name of another.
///
/// It keeps only hashes of names, eight bytes each, because a file may have millions of lines. Two names with one
/// hash lead to the reading of all lines, which compares the names.
fn needs_all_lines(mut all: TaskFileReader, setting: &TaskDefaults) -> Result<bool, BatchError> {
    let (mut some, mut names, hashes) = (false, HashSet::new(), RandomState::new());
    while let Some(text) = all.next()? {
        let task = TaskFileLine::parse(&text).and_then(|line| {
            let named = line.name.as_ref().map(|name| hashes.hash_one(name));
            some = some || line.waits_or_makes() || named.is_some_and(|hash| !names.insert(hash));
            line.task(1, Vec::new(), setting)
        });
        task.map_err(|reason| all.wrong(reason))?;
    }
    Ok(some)
}
