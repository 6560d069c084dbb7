//! Tasks that run after others. They wait here until the last task that they need has succeeded. Only then are their
//! inputs located, because only then do they exist.

use super::Core;
use super::ending::unstarted;
use super::types::{Action, AttemptRecord};
use homing_model::graph::{TaskReadiness, TaskWaits};
use homing_model::{Outcome, Task, TaskId};
use std::collections::{HashMap, HashSet};

/// The tasks that wait for others, and the tasks whose inputs are being located.
#[derive(Debug, Default)]
pub(super) struct After {
    waits: TaskWaits,
    tasks: HashMap<TaskId, Task>,
    away: HashSet<TaskId>,
    /// The labels of failed tasks in messages, if they have one.
    labels: HashMap<TaskId, String>,
}

impl After {
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of tasks that are to run and are in no queue yet.
    pub fn len(&self) -> usize {
        self.tasks.len() + self.away.len()
    }
}

/// A task that does not run in this part of the run.
#[derive(Clone, Debug)]
pub struct Skipped {
    /// The number of the task.
    pub task: TaskId,
    /// Its label in messages.
    pub label: String,
    /// The reason; `None` if an earlier part of the run has reported it.
    pub reason: Option<String>,
    /// Whether it has failed, and is left out all the same.
    pub failed: bool,
}

/// The end of a task, for the tasks that wait for it.
pub(super) enum DependencyEnd {
    Well,
    Badly {
        /// Its label in messages.
        label: String,
    },
}

impl AttemptRecord {
    /// Returns the end of the task for others, if this is one. A killed task runs again in another part of the run,
    /// and tasks that need it continue to wait.
    pub(super) fn settles(&self) -> Option<DependencyEnd> {
        let well = self.outcome.is_success();
        let end = || if well { DependencyEnd::Well } else { DependencyEnd::Badly { label: self.task.label() } };
        (self.last && self.outcome != Outcome::Killed).then(end)
    }
}

impl Core {
    /// Adds a task that runs after others. Some of these may not be known yet.
    pub fn wait_for(&mut self, mut task: Task) {
        let after = std::mem::take(&mut task.after);
        match self.after.waits.add(task.id, &after) {
            TaskReadiness::Ready => self.locate(task),
            TaskReadiness::Waits => drop(self.after.tasks.insert(task.id, task)),
            TaskReadiness::Never(root) => self.give_up(task, root),
        }
    }

    fn locate(&mut self, task: Task) {
        self.after.away.insert(task.id);
        self.actions.push(Action::Locate(Box::new(task)));
    }

    fn give_up(&mut self, task: Task, root: TaskId) {
        let label = self.after.labels.get(&root).cloned().unwrap_or_else(|| format!("task {root}"));
        self.conclude(unstarted(task, 1, Outcome::NotRun(format!("needs {label}, which failed"))));
    }

    /// Records that the inputs of the task were located.
    pub(super) fn arrived(&mut self, task: TaskId) {
        self.after.away.remove(&task);
    }

    /// Continues or gives up the tasks that wait for this one.
    pub(super) fn settled(&mut self, task: TaskId, end: DependencyEnd) {
        self.arrived(task);
        let of_its_own = self.after.waits.root(task).is_none();
        let ended = self.after.waits.ended(task, matches!(end, DependencyEnd::Well));
        if let DependencyEnd::Badly { label } = end
            && of_its_own
        {
            self.tell_not_run(&label, &ended.never);
            self.after.labels.insert(task, label);
        }
        for id in ended.ready {
            self.after.tasks.remove(&id).into_iter().for_each(|task| self.locate(task));
        }
        for id in ended.never {
            let root = self.after.waits.root(id).unwrap_or(task);
            self.after.tasks.remove(&id).into_iter().for_each(|task| self.give_up(task, root));
        }
    }

    /// Reports the tasks that a failure keeps from running, in one note.
    fn tell_not_run(&mut self, label: &str, never: &[TaskId]) {
        let Some(first) = never.first().and_then(|id| self.after.tasks.get(id)) else { return };
        let who = match never.len() - 1 {
            0 => first.label(),
            1 => format!("{} and 1 more task", first.label()),
            more => format!("{} and {more} more tasks", first.label()),
        };
        self.actions.push(Action::Note(format!("{who} not run: needs {label}, which failed")));
    }
}
