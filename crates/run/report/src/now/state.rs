//! What is shown of a run at a moment, a value for each row.

use super::{Now, OnHost};
use crate::tally::Failed;
use crate::text::how;
use homing_model::TaskId;
use homing_model::units::span;
use std::collections::BTreeMap;
use std::time::Duration;

/// A host whose last sample is older than this is said to be silent, and its rates are not those of now: three of its
/// samples did not come.
const SILENT_NS: i64 = 3_000_000_000;

/// A host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostState {
    /// Its name.
    pub name: String,
    /// Slots for this run.
    pub slots: u32,
    /// Attempts under way.
    pub running: usize,
    /// Tasks that have ended well there, and those that have not.
    pub done: u64,
    /// See `done`.
    pub failed: u64,
    /// Why it is not used any more, or that nothing is heard of it.
    pub trouble: Option<String>,
    /// It is not used any more.
    pub lost: bool,
    /// Processors busy, percent.
    pub cpu: Option<f64>,
    /// Memory available, MiB.
    pub memory: Option<f64>,
    /// Time in which some task waited for disks, percent.
    pub stalled: Option<f64>,
    /// Read and written by disks, MB/s.
    pub disk: Option<f64>,
    /// Received and sent, MB/s.
    pub net: Option<f64>,
    /// The same as a part of what its link carries in one direction, percent.
    pub link: Option<f64>,
}

impl HostState {
    /// The order in which hosts stand: those that are lost, those that are silent, then those on which most runs.
    pub fn rank(&self) -> (bool, bool, std::cmp::Reverse<usize>) {
        (!self.lost, self.trouble.is_none(), std::cmp::Reverse(self.running))
    }
}

/// An attempt under way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskState {
    /// The task: of a run its number, of a queue the job's.
    pub id: TaskId,
    /// How people call it.
    pub name: String,
    /// Where it runs.
    pub host: String,
    /// Its slot there.
    pub slot: u32,
    /// For how long.
    pub age: Duration,
    /// Bytes that it has read and written so far, where its worker has told.
    pub moved: Option<u64>,
    /// What runs.
    pub command: String,
}

/// A storage server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerState {
    /// Its name.
    pub name: String,
    /// Tasks at once; `None`: its storage does not limit.
    pub limit: Option<u32>,
    /// What was measured.
    pub why: String,
    /// Login names, and how many tasks each has there.
    pub users: Vec<(String, u32)>,
}

impl ServerState {
    /// Who has how many tasks there, for people.
    pub fn held_by(&self) -> String {
        let held: Vec<String> = self.users.iter().map(|(user, n)| format!("{user} {n}")).collect();
        if held.is_empty() { "-".into() } else { held.join(", ") }
    }
}

/// A task that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureState {
    /// The task.
    pub task: TaskId,
    /// Where.
    pub host: String,
    /// How it ended.
    pub how: String,
    /// After what time.
    pub took: String,
    /// What ran, and its last words.
    pub command: String,
}

/// Bytes that attempts under way read from another host, by the layouts of their inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetch {
    /// Who holds them.
    pub from: String,
    /// Who reads them.
    pub to: String,
    /// How many attempts do so.
    pub tasks: u64,
    /// How many bytes.
    pub bytes: u64,
}

impl Now {
    /// Each host, by name.
    pub fn host_states(&self, now_ns: i64) -> Vec<HostState> {
        let running = self.running();
        let state = |(name, host): (&String, &OnHost)| host.state(name, &running, self.is_over(), now_ns);
        self.hosts.iter().map(state).collect()
    }

    /// Nothing more happens.
    pub fn is_over(&self) -> bool {
        self.tally().exit().is_some()
    }

    /// Storage servers, by name.
    pub fn server_states(&self) -> Vec<ServerState> {
        let state = |(name, server): (&String, &super::Server)| ServerState {
            name: name.clone(),
            limit: server.limit,
            why: server.why.clone(),
            users: server.users.clone(),
        };
        self.servers.iter().map(state).collect()
    }

    /// The last failures, the last one first.
    pub fn failure_states(&self) -> Vec<FailureState> {
        let state = |failed: &Failed| {
            let said = failed.said.as_ref().map_or(String::new(), |said| format!("  {said}"));
            let (how, command) = (how(&failed.outcome), format!("{}{said}", failed.command));
            FailureState { task: failed.task, host: failed.host.clone(), how, took: span(failed.wall_us), command }
        };
        self.failures.iter().map(state).collect()
    }

    /// Bytes of inputs by their layouts so far: on the hosts that read them, on others; `None` without a layout.
    pub fn planned(&self) -> Option<(u64, u64)> {
        self.tally.planned()
    }

    /// Attempts under way, those that run longest first.
    pub fn task_states(&self, now_ns: i64) -> Vec<TaskState> {
        let mut tasks: Vec<_> = self.tasks.iter().collect();
        tasks.sort_by_key(|(id, task)| (task.began_ns, **id));
        let state = |(id, task): (&TaskId, &super::Underway)| {
            let again = if task.attempt > 1 { format!(" (try {})", task.attempt) } else { String::new() };
            TaskState {
                id: *id,
                name: format!("{id}{again}"),
                host: task.host.clone(),
                slot: task.slot,
                age: Duration::from_nanos((now_ns - task.began_ns).max(0) as u64),
                moved: None,
                command: task.command.clone(),
            }
        };
        tasks.into_iter().map(state).collect()
    }

    /// Who reads from whom, most bytes first.
    pub fn fetches(&self) -> Vec<Fetch> {
        let mut sums: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
        for task in self.tasks.values() {
            for (from, bytes) in &task.from {
                let sum = sums.entry((from, &task.host)).or_default();
                *sum = (sum.0 + 1, sum.1.saturating_add(*bytes));
            }
        }
        let fetch =
            |((from, to), (tasks, bytes)): ((&str, &str), _)| Fetch { from: from.into(), to: to.into(), tasks, bytes };
        let mut all: Vec<Fetch> = sums.into_iter().map(fetch).collect();
        all.sort_by_key(|fetch| std::cmp::Reverse(fetch.bytes));
        all
    }
}

impl OnHost {
    fn state(&self, name: &str, running: &BTreeMap<&str, usize>, over: bool, now_ns: i64) -> HostState {
        let silent_ns = now_ns.saturating_sub(self.heard_ns);
        let silent = self.sample.is_some() && !over && silent_ns > SILENT_NS;
        let lost = self.lost.as_ref().map(|why| format!("lost: {why}"));
        let rates = if silent { Default::default() } else { self.rates };
        // Megabytes a second of a link that carries as many bytes a second.
        let link = |mb: f64| self.link.filter(|rate| *rate > 0).map(|rate| mb * 1e8 / rate as f64);
        HostState {
            name: name.into(),
            slots: self.slots,
            running: running.get(name).copied().unwrap_or(0),
            done: self.done,
            failed: self.failed,
            lost: lost.is_some(),
            trouble: lost.or_else(|| silent.then(|| format!("silent for {} s", silent_ns / 1_000_000_000))),
            cpu: rates.ut,
            memory: rates.mem,
            stalled: rates.stalled,
            disk: rates.io.map(|kb| kb / 1000.0),
            net: rates.net,
            link: rates.net.and_then(link),
        }
    }
}
