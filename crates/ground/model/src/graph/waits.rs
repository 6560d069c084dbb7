//! A run under way: who waits, and what the end of a task changes.

use crate::TaskId;
use std::collections::{BTreeSet, HashMap};

/// Tasks that wait for others. Of tasks that nobody waits for it keeps one bit: that they ended well.
#[derive(Debug, Default)]
pub struct Waits {
    /// A bit for each task that ended well.
    well: Vec<u64>,
    /// Tasks that will never end well, and the failure that is the reason: their own number or another's.
    never: HashMap<TaskId, TaskId>,
    /// How many tasks each one still waits for.
    left: HashMap<TaskId, usize>,
    /// Who waits for a task.
    waiters: HashMap<TaskId, Vec<TaskId>>,
}

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It may run.
    Ready,
    /// [`Waits::ended`] will name it.
    Waits,
    /// It cannot run any more: this task has failed. So it has had its last word: [`Waits::ended`] is to be told.
    Never(TaskId),
}

/// What the end of a task changes for others.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// These may run now, by number.
    pub ready: Vec<TaskId>,
    /// These never will, by number, for want of [`Waits::root`].
    pub never: Vec<TaskId>,
}

impl Waits {
    /// A task that runs after the tasks of `after` have ended well.
    pub fn add(&mut self, task: TaskId, after: &[TaskId]) -> Place {
        if let Some(root) = after.iter().find_map(|other| self.never.get(other)).copied() {
            self.never.insert(task, root);
            return Place::Never(root);
        }
        let mut open: Vec<TaskId> = after.iter().copied().filter(|other| !self.is_well(*other)).collect();
        open.sort_unstable();
        open.dedup();
        if open.is_empty() {
            return Place::Ready;
        }
        self.left.insert(task, open.len());
        open.into_iter().for_each(|other| self.waiters.entry(other).or_default().push(task));
        Place::Waits
    }

    /// A task has had its last word.
    pub fn ended(&mut self, task: TaskId, well: bool) -> Ended {
        if !well {
            let never = self.give_up(task);
            return Ended { never, ..Ended::default() };
        }
        let (word, bit) = ((task / 64) as usize, 1 << (task % 64));
        if word >= self.well.len() {
            self.well.resize(word + 1, 0);
        }
        self.well[word] |= bit;
        let mut ready = self.waiters.remove(&task).unwrap_or_default();
        ready.retain(|waiter| self.is_free(*waiter));
        ready.sort_unstable();
        Ended { ready, ..Ended::default() }
    }

    /// The failure because of which a task that failed, or was never run, did not end well.
    pub fn root(&self, task: TaskId) -> Option<TaskId> {
        self.never.get(&task).copied()
    }

    /// Tasks that wait.
    pub fn waiting(&self) -> usize {
        self.left.len()
    }

    fn is_well(&self, task: TaskId) -> bool {
        self.well.get((task / 64) as usize).is_some_and(|bits| bits & (1 << (task % 64)) != 0)
    }

    /// One that it waits for ended well; whether that was the last.
    fn is_free(&mut self, waiter: TaskId) -> bool {
        let Some(left) = self.left.get_mut(&waiter) else { return false };
        *left -= 1;
        let free = *left == 0;
        if free {
            self.left.remove(&waiter);
        }
        free
    }

    /// All that wait for the task, and all that wait for these.
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
        let mut waits = Waits::default();
        assert_eq!(waits.add(1, &[]), Place::Ready);
        assert_eq!(waits.add(3, &[1, 2, 1]), Place::Waits);
        assert_eq!(waits.ended(1, true), Ended::default());
        assert_eq!(waits.ended(2, true), Ended { ready: vec![3], never: vec![] });
        assert_eq!((waits.add(4, &[2]), waits.waiting()), (Place::Ready, 0));
    }

    #[test]
    fn what_waits_for_a_failure_names_it_however_far_off() {
        let mut waits = Waits::default();
        assert_eq!(waits.add(2, &[1]), Place::Waits);
        assert_eq!(waits.add(3, &[2, 9]), Place::Waits);
        assert_eq!(waits.ended(1, false), Ended { ready: vec![], never: vec![2, 3] });
        assert_eq!(waits.add(6, &[4]), Place::Waits);
        assert_eq!((waits.add(4, &[3]), waits.root(3)), (Place::Never(1), Some(1)));
        assert_eq!(waits.ended(4, false), Ended { ready: vec![], never: vec![6] });
        assert_eq!((waits.root(4), waits.root(6), waits.root(9)), (Some(1), Some(1), None));
        assert_eq!((waits.ended(9, true), waits.waiting()), (Ended::default(), 0));
    }
}
