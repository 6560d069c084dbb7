//! The waiting tasks of a run, and the effect of a task's end on them.

use crate::TaskId;
use std::collections::{BTreeSet, HashMap};

/// Tasks that wait for others. Of tasks without waiters it keeps one bit: whether they succeeded.
#[derive(Debug, Default)]
pub struct TaskWaits {
    /// A bit for each task that succeeded.
    well: Vec<u64>,
    /// Tasks that will never succeed, each with the failed task that is the reason: itself or another.
    never: HashMap<TaskId, TaskId>,
    /// How many tasks each one still waits for.
    left: HashMap<TaskId, usize>,
    /// The tasks that wait for a task.
    waiters: HashMap<TaskId, Vec<TaskId>>,
}

/// Whether a task may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskReadiness {
    /// It may run.
    Ready,
    /// [`TaskWaits::ended`] will name it.
    Waits,
    /// It cannot run any more, because this task has failed. It has ended, and the caller must report that to
    /// [`TaskWaits::ended`].
    Never(TaskId),
}

/// The effect of a task's end on other tasks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TaskEndEffect {
    /// These may run now, by number.
    pub ready: Vec<TaskId>,
    /// These will never run, by number, because of [`TaskWaits::root`].
    pub never: Vec<TaskId>,
}

impl TaskWaits {
    /// Adds a task that runs after the tasks of `after` have succeeded.
    pub fn add(&mut self, task: TaskId, after: &[TaskId]) -> TaskReadiness {
        if let Some(root) = after.iter().find_map(|other| self.never.get(other)).copied() {
            self.never.insert(task, root);
            return TaskReadiness::Never(root);
        }
        let mut open: Vec<TaskId> = after.iter().copied().filter(|other| !self.is_well(*other)).collect();
        open.sort_unstable();
        open.dedup();
        if open.is_empty() {
            return TaskReadiness::Ready;
        }
        self.left.insert(task, open.len());
        open.into_iter().for_each(|other| self.waiters.entry(other).or_default().push(task));
        TaskReadiness::Waits
    }

    /// Records the end of a task.
    pub fn ended(&mut self, task: TaskId, well: bool) -> TaskEndEffect {
        if !well {
            let never = self.give_up(task);
            return TaskEndEffect { never, ..TaskEndEffect::default() };
        }
        let (word, bit) = ((task / 64) as usize, 1 << (task % 64));
        if word >= self.well.len() {
            self.well.resize(word + 1, 0);
        }
        self.well[word] |= bit;
        let mut ready = self.waiters.remove(&task).unwrap_or_default();
        ready.retain(|waiter| self.is_free(*waiter));
        ready.sort_unstable();
        TaskEndEffect { ready, ..TaskEndEffect::default() }
    }

    /// Returns the failure because of which a task failed or was never run.
    pub fn root(&self, task: TaskId) -> Option<TaskId> {
        self.never.get(&task).copied()
    }

    /// Returns the number of waiting tasks.
    pub fn waiting(&self) -> usize {
        self.left.len()
    }

    fn is_well(&self, task: TaskId) -> bool {
        self.well.get((task / 64) as usize).is_some_and(|bits| bits & (1 << (task % 64)) != 0)
    }

    /// Counts one success that the task waited for. Returns whether it was the last.
    fn is_free(&mut self, waiter: TaskId) -> bool {
        let Some(left) = self.left.get_mut(&waiter) else { return false };
        *left -= 1;
        let free = *left == 0;
        if free {
            self.left.remove(&waiter);
        }
        free
    }

    /// Gives up all tasks that wait for this one, directly or through others. Returns them.
    fn give_up(&mut self, task: TaskId) -> Vec<TaskId> {
        let root = *self.never.entry(task).or_insert(task);
        let (mut given_up, mut todo) = (BTreeSet::new(), vec![task]);
        while let Some(task) = todo.pop() {
            for waiter in self.waiters.remove(&task).unwrap_or_default() {
                if self.left.remove(&waiter).is_some() {
                    self.never.insert(waiter, root);
                    given_up.insert(waiter);
                    todo.push(waiter);
                }
            }
        }
        given_up.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_ready_when_the_last_that_it_waits_for_has_ended_well() {
        let mut waits = TaskWaits::default();
        assert_eq!(waits.add(1, &[]), TaskReadiness::Ready);
        assert_eq!(waits.add(3, &[1, 2, 1]), TaskReadiness::Waits);
        assert_eq!(waits.ended(1, true), TaskEndEffect::default());
        assert_eq!(waits.ended(2, true), TaskEndEffect { ready: vec![3], never: vec![] });
        assert_eq!((waits.add(4, &[2]), waits.waiting()), (TaskReadiness::Ready, 0));
    }

    #[test]
    fn what_waits_for_a_failure_names_it_however_far_off() {
        let mut waits = TaskWaits::default();
        assert_eq!(waits.add(2, &[1]), TaskReadiness::Waits);
        assert_eq!(waits.add(3, &[2, 9]), TaskReadiness::Waits);
        assert_eq!(waits.ended(1, false), TaskEndEffect { ready: vec![], never: vec![2, 3] });
        assert_eq!(waits.add(6, &[4]), TaskReadiness::Waits);
        assert_eq!((waits.add(4, &[3]), waits.root(3)), (TaskReadiness::Never(1), Some(1)));
        assert_eq!(waits.ended(4, false), TaskEndEffect { ready: vec![], never: vec![6] });
        assert_eq!((waits.root(4), waits.root(6), waits.root(9)), (Some(1), Some(1), None));
        assert_eq!((waits.ended(9, true), waits.waiting()), (TaskEndEffect::default(), 0));
    }
}
