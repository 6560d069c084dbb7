//! Queues and slots, as the cluster file has them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A queue, as `[queue.NAME]` of the cluster file describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Queue {
    /// Queues of higher priority are served first. LSF's default is 1.
    pub priority: i32,
    /// Shown by `bqueues -l`.
    pub description: String,
    /// The queue that is used when none is named.
    pub default: bool,
    /// Takes no jobs (`false`: it does).
    pub closed: bool,
    /// Hosts that it may use, as a node set; all when empty.
    pub hosts: String,
    /// Slots that its jobs may have (QJOB_LIMIT).
    pub slots: Option<u32>,
    /// ... of one user (UJOB_LIMIT).
    pub per_user: Option<u32>,
    /// ... on one host (HJOB_LIMIT).
    pub per_host: Option<u32>,
    /// Minutes that a job may run (RUNLIMIT).
    pub run_limit: Option<u64>,
    /// Load thresholds, `bio = "1500/4000"`: nothing starts above the first, jobs stand still above the second.
    pub load: BTreeMap<String, String>,
}

/// What the queue goes by.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Slots of this machine.
    pub slots: u32,
    /// Slots of other hosts that jobs may be sent to; `slots` where none are said.
    pub host_slots: BTreeMap<String, u32>,
    /// Queues by name; never empty.
    pub queues: BTreeMap<String, Queue>,
}

impl Config {
    /// The queue for jobs that name none.
    pub fn default_queue(&self) -> &str {
        let marked = self.queues.iter().find(|(_, q)| q.default).map(|(name, _)| name.as_str());
        marked
            .or_else(|| self.queues.keys().find(|n| *n == "normal").map(String::as_str))
            .unwrap_or_else(|| self.queues.keys().next().map_or("normal", String::as_str))
    }
    /// Slots of a host.
    pub fn slots_of(&self, host: &Option<String>) -> u32 {
        host.as_ref().and_then(|h| self.host_slots.get(h)).copied().unwrap_or(self.slots)
    }
}
