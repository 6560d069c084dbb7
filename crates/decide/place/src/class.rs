//! Waiting tasks, grouped by all properties that placement distinguishes: a million tasks without inputs are one
//! group and a queue of numbers.

use crate::{HostIx, ServerIx};
use homing_model::TaskId;
use std::collections::VecDeque;

/// The properties that the tasks of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupKey {
    /// Usable hosts with most bytes, ascending; empty if the task may run anywhere.
    pub holders: Vec<HostIx>,
    /// The holder that has the first claim.
    pub writer: Option<HostIx>,
    /// Hosts on which it may not run, ascending.
    pub excluded: Vec<HostIx>,
    /// The number of slots that it occupies.
    pub cpus: u32,
    /// The server that it reads from on any host.
    pub server: Option<ServerIx>,
    /// See [`crate::Need::reads`].
    pub reads: bool,
    /// See [`crate::Need`].
    pub kind: u8,
    /// See [`crate::Need`].
    pub takes: Vec<u64>,
}

impl GroupKey {
    /// Whether a task may find a host with a free slot and still not fit there.
    pub fn is_wide(&self) -> bool {
        self.cpus > 1 || !self.takes.is_empty()
    }

    /// Whether a free slot of any host will do.
    pub fn is_plain(&self) -> bool {
        !self.is_wide() && self.excluded.is_empty() && self.server.is_none()
    }
}

/// The waiting tasks of one group, by number. Most of a million groups have one task, which needs no allocation.
#[derive(Debug, Default)]
pub struct Class {
    first: Option<TaskId>,
    /// The further tasks; empty if there is no first.
    others: VecDeque<TaskId>,
    /// The host that keeps slots free for the next, wide task of the group.
    pub reserved: Option<HostIx>,
}

impl Class {
    /// Inserts in order of numbers; a task that comes again gets its old place.
    pub fn insert(&mut self, task: TaskId) {
        match (self.first, self.others.back()) {
            (None, _) => self.first = Some(task),
            (Some(first), _) if task < first => {
                self.others.push_front(first);
                self.first = Some(task);
            }
            (Some(first), _) if task == first => {}
            (_, Some(&last)) if last >= task => {
                if let Err(at) = self.others.binary_search(&task) {
                    self.others.insert(at, task);
                }
            }
            _ => self.others.push_back(task),
        }
    }

    /// Removes `task`, and returns whether it was there.
    pub fn remove(&mut self, task: TaskId) -> bool {
        if self.first == Some(task) {
            self.first = self.others.pop_front();
            return true;
        }
        self.others.binary_search(&task).ok().and_then(|at| self.others.remove(at)).is_some()
    }

    pub fn front(&self) -> Option<TaskId> {
        self.first
    }

    pub fn tasks(&self) -> impl DoubleEndedIterator<Item = TaskId> + '_ {
        self.first.into_iter().chain(self.others.iter().copied())
    }

    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_stand_in_the_order_of_their_numbers() {
        let mut class = Class::default();
        for task in [7, 3, 9, 3, 5, 9, 7] {
            class.insert(task);
        }
        assert_eq!((class.tasks().collect::<Vec<_>>(), class.len()), (vec![3, 5, 7, 9], 4));
        assert!(class.remove(5) && !class.remove(5) && class.remove(3));
        assert_eq!((class.front(), class.tasks().rev().collect::<Vec<_>>()), (Some(7), vec![9, 7]));
        assert!(class.remove(7) && class.remove(9));
        assert_eq!((class.front(), class.len()), (None, 0));
    }
}
