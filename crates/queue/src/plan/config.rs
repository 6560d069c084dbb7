//! Queues and slots, as the cluster file has them.

use crate::index::Index;
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
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Slots of this machine.
    pub slots: u32,
    /// Other hosts that jobs may be sent to, with their slots where the cluster files say them. Each knows its own.
    pub host_slots: BTreeMap<String, Option<u32>>,
    /// Queues by name; never empty.
    pub queues: BTreeMap<String, Queue>,
    /// Load indices of the site's own.
    pub index: BTreeMap<String, Index>,
}

impl Config {
    /// The queue for jobs that name none.
    pub fn default_queue(&self) -> &str {
        let marked = self.queues.iter().find(|(_, q)| q.default).map(|(name, _)| name.as_str());
        marked
            .or_else(|| self.queues.keys().find(|n| *n == "normal").map(String::as_str))
            .unwrap_or_else(|| self.queues.keys().next().map_or("normal", String::as_str))
    }
    /// Slots of a host, where they are known here.
    pub fn slots_of(&self, host: &Option<String>) -> Option<u32> {
        host.as_ref().map_or(Some(self.slots), |h| self.host_slots.get(h).copied().flatten())
    }
}
