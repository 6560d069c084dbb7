//! Slots in use.

use super::View;
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
    /// Running elements that use a storage server.
    storage: HashMap<Storage, u32>,
    /// Elements that may use it.
    leases: BTreeMap<Storage, Leased>,
}

/// What a user's jobs on a machine may use of a storage server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leased {
    /// Elements at once.
    pub may_use: u32,
    /// Who uses it now, for people.
    pub why: String,
}

impl Usage {
    /// With these leases; a server that is not among them has no limit.
    pub fn with(self, leases: BTreeMap<Storage, Leased>) -> Usage {
        Usage { leases, ..self }
    }
    /// Who uses a server, where no other element that does may start.
    pub(super) fn full(&self, storage: &Storage) -> Option<String> {
        let leased = self.leases.get(storage)?;
        let used = self.storage.get(storage).copied().unwrap_or(0);
        (used >= leased.may_use).then(|| leased.why.clone())
    }
    /// Those of what runs among these, or may any moment because its host was asked.
    pub fn of<'a>(views: impl IntoIterator<Item = &'a View>) -> Usage {
        let mut usage = Usage::default();
        views.into_iter().filter(|v| v.state.is_running() || v.asks).for_each(|v| usage.start(v));
        usage
    }
    /// Servers that serve as many as may use them, and who does.
    pub fn full_servers(&self) -> BTreeMap<String, String> {
        let full = self.leases.keys().filter_map(|storage| Some((storage, self.full(storage)?)));
        full.map(|(storage, why)| (storage.name.clone(), why)).collect()
    }
    /// One more runs.
    pub fn start(&mut self, it: &View) {
        self.add(it.uid, &it.queue, &it.host, it.slots);
        *self.elements.entry((it.uid, it.id)).or_default() += 1;
        if let Some(storage) = it.storage.as_ref().filter(|_| it.host.is_none()) {
            *self.storage.entry(storage.clone()).or_default() += 1;
        }
    }
    /// Slots of a user, as told by that user.
    pub fn add(&mut self, uid: u32, queue: &str, host: &Option<String>, slots: u32) {
        let sums = [
            self.queue.entry(queue.into()).or_default(),
            self.user.entry((uid, queue.into())).or_default(),
            self.host.entry((queue.into(), host.clone())).or_default(),
        ];
        sums.into_iter().for_each(|sum| *sum = sum.saturating_add(slots));
    }
}
