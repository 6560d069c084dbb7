//! Waiting tasks, grouped by all that placement distinguishes: a million
//! tasks without inputs are one group and a queue of numbers.

use crate::{HostIx, ServerIx};
use homing_model::TaskId;
use std::collections::VecDeque;

/// What the tasks of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Usable hosts with most bytes, ascending; none when it does not matter where.
    pub holders: Vec<HostIx>,
    /// The one of them that has the first claim.
    pub writer: Option<HostIx>,
    /// Hosts on which it may not run, ascending.
    pub excluded: Vec<HostIx>,
    /// Slots.
    pub cpus: u32,
    /// The server that it reads from, wherever it runs.
    pub server: Option<ServerIx>,
    /// See [`crate::Need::reads`].
    pub reads: bool,
    /// See [`crate::Need`].
    pub kind: u8,
    /// See [`crate::Need`].
    pub takes: Vec<u64>,
}

impl Key {
    /// Whether a task may find a host with a free slot and still not fit there.
    pub fn is_wide(&self) -> bool {
        self.cpus > 1 || !self.takes.is_empty()
    }

    /// Whether a free slot of any host will do.
    pub fn is_plain(&self) -> bool {
        !self.is_wide() && self.excluded.is_empty() && self.server.is_none()
    }
}

/// The waiting tasks of one group, by number.
#[derive(Debug, Default)]
pub struct Class {
    queue: VecDeque<TaskId>,
    /// The host that keeps slots free for the next, wide task of the group.
    pub reserved: Option<HostIx>,
}

impl Class {
    /// In order of numbers; a task that comes again finds its old place.
    pub fn insert(&mut self, task: TaskId) {
        match self.queue.back() {
            Some(&last) if last >= task => {
                if let Err(at) = self.queue.binary_search(&task) {
                    self.queue.insert(at, task);
                }
            }
            _ => self.queue.push_back(task),
        }
    }

    /// Takes `task` out; whether it was there.
    pub fn remove(&mut self, task: TaskId) -> bool {
        if self.queue.front() == Some(&task) {
            return self.queue.pop_front().is_some();
        }
        self.queue.binary_search(&task).ok().and_then(|at| self.queue.remove(at)).is_some()
    }

    pub fn front(&self) -> Option<TaskId> {
        self.queue.front().copied()
    }

    pub fn tasks(&self) -> impl DoubleEndedIterator<Item = TaskId> + '_ {
        self.queue.iter().copied()
    }

    pub fn len(&self) -> usize {
        self.queue.len()
    }
}
