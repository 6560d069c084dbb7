//! Slots in use.

use super::View;
use std::collections::HashMap;

/// Slots in use, as limits count them.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    pub(super) queue: HashMap<String, u32>,
    pub(super) user: HashMap<(u32, String), u32>,
    pub(super) host: HashMap<(String, Option<String>), u32>,
    /// Running elements of each job.
    pub(super) elements: HashMap<(u32, u64), u32>,
}

impl Usage {
    /// Those of what runs among these, or may any moment because its host was asked.
    pub fn of<'a>(views: impl IntoIterator<Item = &'a View>) -> Usage {
        let mut usage = Usage::default();
        views.into_iter().filter(|v| v.state.is_running() || v.asks).for_each(|v| usage.start(v));
        usage
    }
    /// One more runs.
    pub fn start(&mut self, it: &View) {
        self.add(it.uid, &it.queue, &it.host, it.slots);
        *self.elements.entry((it.uid, it.id)).or_default() += 1;
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
