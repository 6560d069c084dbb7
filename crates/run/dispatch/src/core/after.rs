//! Tasks that run after others. They wait here, and what they read is looked
//! for when it is there: when the last that they wait for has ended well.

use super::Core;
use super::ending::unstarted;
use super::terms::{Action, Record};
use homing_model::graph::{Place, Waits};
use homing_model::{Outcome, Task, TaskId};
use std::collections::{HashMap, HashSet};

/// Those that wait for others, and those on their way to be looked at.
#[derive(Debug, Default)]
pub(super) struct After {
    waits: Waits,
    tasks: HashMap<TaskId, Task>,
    away: HashSet<TaskId>,
    /// How messages call tasks that failed, where that is not by their number.
    labels: HashMap<TaskId, String>,
}

impl After {
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tasks that are to run and are in no queue yet.
    pub fn len(&self) -> usize {
        self.tasks.len() + self.away.len()
    }
}

/// A task that does not run in this part of the run.
#[derive(Clone, Debug)]
pub struct Skipped {
    /// Which.
    pub task: TaskId,
    /// How messages call it.
    pub label: String,
    /// Why; `None` when an earlier part of the run already said so.
    pub reason: Option<String>,
    /// It is left out although it has failed.
    pub failed: bool,
}

/// How a task ended, for those that wait for it.
pub(super) enum End {
    Well,
    Badly {
        /// How messages call it.
        label: String,
    },
}

impl Record {
    /// What its end is for others, if it is one. One that was killed will run again in another part of the run: who
    /// waits for it goes on waiting.
    pub(super) fn settles(&self) -> Option<End> {
        let well = self.outcome.is_success();
        let end = || if well { End::Well } else { End::Badly { label: self.task.label() } };
        (self.last && self.outcome != Outcome::Killed).then(end)
    }
}

impl Core {
    /// A task that runs after others, of which some may not be known yet.
    pub fn wait_for(&mut self, mut task: Task) {
        let after = std::mem::take(&mut task.after);
        match self.after.waits.add(task.id, &after) {
            Place::Ready => self.locate(task),
            Place::Waits => drop(self.after.tasks.insert(task.id, task)),
            Place::Never(root) => self.give_up(task, root),
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

    /// It has come back from being looked at.
    pub(super) fn arrived(&mut self, task: TaskId) {
        self.after.away.remove(&task);
    }

    /// Tells those that wait for it.
    pub(super) fn settled(&mut self, task: TaskId, end: End) {
        self.arrived(task);
        let of_its_own = self.after.waits.root(task).is_none();
        let ended = self.after.waits.ended(task, matches!(end, End::Well));
        if let End::Badly { label } = end
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

    /// Once for all that a failure keeps from running.
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
