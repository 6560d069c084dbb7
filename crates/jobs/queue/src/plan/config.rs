//! Queues and slots, as the cluster file has them.

use super::Queue;
use crate::control::{Control, ControlOrder, Target};
use crate::index::Index;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Settings that a submitting machine sends to the host of a job, whose cluster files differ. On the host they add to
/// the administrator's own settings, and loosen nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubmitterSettings {
    /// Slots of the host, if the submitter's cluster files have them.
    pub slots: Option<u32>,
    /// The submitter's queues.
    pub queue: BTreeMap<String, Queue>,
    /// The submitter's own load indices.
    pub index: BTreeMap<String, Index>,
}

/// The settings of the queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Slots of this machine.
    pub slots: u32,
    /// Graphics processors of this machine.
    pub gpus: u32,
    /// Other hosts to which jobs may be sent, with their slots if the cluster files have them. Each host knows its
    /// own.
    pub host_slots: BTreeMap<String, Option<u32>>,
    /// Queues by name; never empty.
    pub queues: BTreeMap<String, Queue>,
    /// Load indices of the site's own.
    pub index: BTreeMap<String, Index>,
    /// This machine's name.
    pub name: String,
    /// Later orders about queues and hosts.
    pub control: Control,
    /// Pairs of users and queues that they may not use, of the users that were checked.
    pub barred: BTreeSet<(u32, String)>,
    /// The minute of the week; the first minute of Sunday is 0.
    pub minute: u32,
}

impl Config {
    /// Returns why a queue takes no job of a user, in LSF's words, if it does not.
    pub fn refuses(&self, queue: &str, uid: u32) -> Option<String> {
        if self.barred.contains(&(uid, queue.into())) {
            return Some("User cannot use the queue".into());
        }
        let order = self.control.shut(Target::Submission, queue).map(|order| format!("Queue has been closed {order}"));
        order.or_else(|| self.queues.get(queue).filter(|q| q.closed).map(|_| "Queue has been closed".into()))
    }
    /// Returns the order that closes a host, this machine when `None`.
    pub fn closed_host(&self, host: Option<&str>) -> Option<&ControlOrder> {
        self.control.shut(Target::Host, host.unwrap_or(&self.name))
    }
    /// Returns the queue for jobs that name none.
    pub fn default_queue(&self) -> &str {
        let marked = self.queues.iter().find(|(_, q)| q.default).map(|(name, _)| name.as_str());
        marked
            .or_else(|| self.queues.keys().find(|n| *n == "normal").map(String::as_str))
            .unwrap_or_else(|| self.queues.keys().next().map_or("normal", String::as_str))
    }
    /// Returns the seconds that a job of the queue may run.
    pub fn limit_s(&self, queue: &str) -> Option<u64> {
        self.queues.get(queue)?.run_limit.map(|minutes| minutes.saturating_mul(60))
    }
    /// Returns the slots of a host, if they are known here.
    pub fn slots_of(&self, host: &Option<String>) -> Option<u32> {
        host.as_ref().map_or(Some(self.slots), |h| self.host_slots.get(h).copied().flatten())
    }
}
