//! The rows that are shown of a run at a moment.

use super::{Now, OnHost};
use crate::tally::FailedTask;
use crate::text::how;
use homing_model::TaskId;
use homing_model::units::span;
use std::collections::BTreeMap;
use std::time::Duration;

/// The age of a host's last sample, ns, from which the host counts as silent and its rates as outdated. Three of its
/// samples are missing then.
const SILENT_NS: i64 = 3_000_000_000;

/// A host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostState {
    /// Its name.
    pub name: String,
    /// Slots for this run.
    pub slots: u32,
    /// The number of running attempts.
    pub running: usize,
    /// The number of tasks that succeeded there.
    pub done: u64,
    /// The number of tasks that failed there.
    pub failed: u64,
    /// The reason why it is not used any more, or how long it has been silent.
    pub trouble: Option<String>,
    /// Whether it is not used any more.
    pub lost: bool,
    /// Busy processors, percent.
    pub cpu: Option<f64>,
    /// Available memory, MiB.
    pub memory: Option<f64>,
    /// Time in which some task waited for disks, percent.
    pub stalled: Option<f64>,
    /// Rate of reads and writes of its disks, MB/s.
    pub disk: Option<f64>,
    /// Rate of received and sent bytes, MB/s.
    pub net: Option<f64>,
    /// The same rate as a part of the rate of its link in one direction, percent.
    pub link: Option<f64>,
}

impl HostState {
    /// Returns the sort key of hosts: lost hosts first, then silent ones, then hosts with the most running attempts.
    pub fn rank(&self) -> (bool, bool, std::cmp::Reverse<usize>) {
        (!self.lost, self.trouble.is_none(), std::cmp::Reverse(self.running))
    }
}

/// A running attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskState {
    /// The id: in a run the number of the task, in a queue the number of the job.
    pub id: TaskId,
    /// The name for users.
    pub name: String,
    /// The host.
    pub host: String,
    /// Its slot there.
    pub slot: u32,
    /// The time since its start.
    pub age: Duration,
    /// Bytes that it has read and written so far, if its worker has reported them.
    pub moved: Option<u64>,
    /// The command.
    pub command: String,
}

/// A storage server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerState {
    /// Its name.
    pub name: String,
    /// The limit of tasks at once. `None`: the storage does not limit.
    pub limit: Option<u32>,
    /// The measurement behind the limit.
    pub why: String,
    /// Login names, with the number of tasks of each.
    pub users: Vec<(String, u32)>,
}

impl ServerState {
    /// Returns the users with their tasks, as text.
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
    /// The host.
    pub host: String,
    /// How it ended.
    pub how: String,
    /// The time from its start to its end.
    pub took: String,
    /// The command, and the last line of its error output.
    pub command: String,
}

/// Bytes that attempts under way read from another host, by the layouts of their inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetch {
    /// The host that holds the bytes.
    pub from: String,
    /// The host that reads them.
    pub to: String,
    /// The number of attempts that read.
    pub tasks: u64,
    /// The number of bytes.
    pub bytes: u64,
}

impl Now {
    /// Returns the state of each host, by name.
    pub fn host_states(&self, now_ns: i64) -> Vec<HostState> {
        let running = self.running();
        let is_over = self.is_over();
        // While the run goes on, the rates are the present load of the host. Afterwards they count only as the run's.
        let (disks, network) = match is_over {
            true => (self.tally.explains_disks(), self.tally.explains_network()),
            false => (true, true),
        };
        let state = |(name, host): (&String, &OnHost)| {
            let mut state = host.state(name, &running, is_over, now_ns);
            state.disk = state.disk.filter(|_| disks);
            (state.net, state.link) = (state.net.filter(|_| network), state.link.filter(|_| network));
            state
        };
        self.hosts.iter().map(state).collect()
    }

    /// Whether the run has ended, or was interrupted.
    pub fn is_over(&self) -> bool {
        self.tally().is_over()
    }

    /// Returns the storage servers, by name.
    pub fn server_states(&self) -> Vec<ServerState> {
        let state = |(name, server): (&String, &super::ServerUse)| ServerState {
            name: name.clone(),
            limit: server.limit,
            why: server.why.clone(),
            users: server.users.clone(),
        };
        self.servers.iter().map(state).collect()
    }

    /// Returns the last failures, the latest first.
    pub fn failure_states(&self) -> Vec<FailureState> {
        let state = |failed: &FailedTask| {
            let said = failed.error_line.as_ref().map_or(String::new(), |said| format!("  {said}"));
            let (how, command) = (how(&failed.outcome), format!("{}{said}", failed.command.display()));
            FailureState { task: failed.task, host: failed.host.clone(), how, took: span(failed.wall_us), command }
        };
        self.failures.iter().map(state).collect()
    }

    /// Returns the bytes of inputs by their layouts so far: on the hosts that read them, and on others. `None`
    /// without a layout.
    pub fn planned(&self) -> Option<(u64, u64)> {
        self.tally.planned()
    }

    /// Returns the running attempts, longest first.
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
                command: task.command.display(),
            }
        };
        tasks.into_iter().map(state).collect()
    }

    /// Returns the reads between hosts, most bytes first.
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
        // Converts MB/s to percent of the link's bytes per second.
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
