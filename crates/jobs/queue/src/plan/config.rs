//! Queues and slots, as the cluster file has them.

use super::Queue;
use crate::control::{Control, Order, Target};
use crate::index::Index;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a submitting machine tells the host of a job: its cluster files are not that host's. There they add to the
/// administrator's own, and loosen nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Terms {
    /// Slots of the host, where the submitter's cluster files say them.
    pub slots: Option<u32>,
    /// The submitter's queues.
    pub queue: BTreeMap<String, Queue>,
    /// The submitter's own load indices.
    pub index: BTreeMap<String, Index>,
}

/// What the queue goes by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Slots of this machine.
    pub slots: u32,
    /// Other hosts that jobs may be sent to, with their slots where the cluster files say them. Each knows its own.
    pub host_slots: BTreeMap<String, Option<u32>>,
    /// Queues by name; never empty.
    pub queues: BTreeMap<String, Queue>,
    /// Load indices of the site's own.
    pub index: BTreeMap<String, Index>,
    /// This machine's name.
    pub name: String,
    /// What was said of queues and hosts since.
    pub control: Control,
    /// Users and the queues that they may not use, of those who were asked about.
    pub barred: BTreeSet<(u32, String)>,
    /// The minute of the week, Sunday's first being 0.
    pub minute: u32,
}

impl Config {
    /// Why a queue takes no job of a user, in LSF's words, if it does not.
    pub fn refuses(&self, queue: &str, uid: u32) -> Option<String> {
        if self.barred.contains(&(uid, queue.into())) {
            return Some("User cannot use the queue".into());
        }
        let order = self.control.shut(Target::Submission, queue).map(|order| format!("Queue has been closed {order}"));
        order.or_else(|| self.queues.get(queue).filter(|q| q.closed).map(|_| "Queue has been closed".into()))
    }
    /// The order by which a host, this machine when `None`, starts no jobs.
    pub fn closed_host(&self, host: Option<&str>) -> Option<&Order> {
        self.control.shut(Target::Host, host.unwrap_or(&self.name))
    }
    /// The queue for jobs that name none.
    pub fn default_queue(&self) -> &str {
        let marked = self.queues.iter().find(|(_, q)| q.default).map(|(name, _)| name.as_str());
        marked
            .or_else(|| self.queues.keys().find(|n| *n == "normal").map(String::as_str))
            .unwrap_or_else(|| self.queues.keys().next().map_or("normal", String::as_str))
    }
    /// Seconds that a job of the queue may run.
    pub fn limit_s(&self, queue: &str) -> Option<u64> {
        self.queues.get(queue)?.run_limit.map(|minutes| minutes.saturating_mul(60))
    }
    /// Slots of a host, where they are known here.
    pub fn slots_of(&self, host: &Option<String>) -> Option<u32> {
        host.as_ref().map_or(Some(self.slots), |h| self.host_slots.get(h).copied().flatten())
    }
}
