//! Counts slots in use.

use super::JobView;
use crate::Storage;
use std::collections::{BTreeMap, HashMap};

/// Slots in use, as limits count them.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    pub(super) queue: HashMap<String, u32>,
    pub(super) user: HashMap<(u32, String), u32>,
    pub(super) host: HashMap<(String, Option<String>), u32>,
    /// Running elements of each job.
    pub(super) elements: HashMap<(u32, u64), u32>,
    /// Slots on this machine of each user's elements of each queue.
    here: HashMap<(u32, String), u32>,
    /// Graphics processors of this machine that running elements take, in parts of one.
    pub(super) gpu_parts: u64,
    /// Running elements that use a storage server.
    storage: HashMap<Storage, u32>,
    /// The leases of storage servers, and of queues whose slots are counted over all hosts.
    leases: BTreeMap<Storage, Leased>,
}

/// The part of a storage server or a queue that a user's jobs on a machine may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leased {
    /// The most elements at once; for a queue slots.
    pub may_use: u32,
    /// Its present users, for people.
    pub why: String,
}

impl Usage {
    /// Sets these leases; a server or queue without an entry has no limit.
    pub fn with(self, leases: BTreeMap<Storage, Leased>) -> Usage {
        Usage { leases, ..self }
    }
    /// Returns the leases of a storage server or a queue; `None`: there is no limit.
    pub(super) fn leased(&self, storage: &Storage) -> Option<&Leased> {
        self.leases.get(storage)
    }
    /// Returns the number of running elements that use a storage server.
    pub(super) fn at(&self, storage: &Storage) -> u32 {
        self.storage.get(storage).copied().unwrap_or(0)
    }
    /// Returns the slots of a user's elements of a queue on this machine.
    pub(super) fn here(&self, uid: u32, queue: &str) -> u32 {
        self.here.get(&(uid, queue.into())).copied().unwrap_or(0)
    }
    /// Counts the running ones of these, and those that may start at any moment because their host was requested to
    /// start them.
    pub fn of<'a>(views: impl IntoIterator<Item = &'a JobView>) -> Usage {
        let mut usage = Usage::default();
        views.into_iter().filter(|v| v.state.is_running() || v.asks).for_each(|v| usage.start(v));
        usage
    }
    /// Adds an element that runs.
    pub fn start(&mut self, it: &JobView) {
        self.add(it.uid, &it.queue, &it.host, it.slots);
        *self.elements.entry((it.uid, it.id)).or_default() += 1;
        if it.host.is_none() {
            self.gpu_parts = self.gpu_parts.saturating_add(it.gpu_parts);
        }
        if let Some(storage) = it.storage.as_ref().filter(|_| it.host.is_none()) {
            *self.storage.entry(storage.clone()).or_default() += 1;
        }
    }
    /// Adds slots of a user, as that user's runner reports them.
    pub fn add(&mut self, uid: u32, queue: &str, host: &Option<String>, slots: u32) {
        if host.is_none() {
            let here = self.here.entry((uid, queue.into())).or_default();
            *here = here.saturating_add(slots);
        }
        let sums = [
            self.queue.entry(queue.into()).or_default(),
            self.user.entry((uid, queue.into())).or_default(),
            self.host.entry((queue.into(), host.clone())).or_default(),
        ];
        sums.into_iter().for_each(|sum| *sum = sum.saturating_add(slots));
    }
}
