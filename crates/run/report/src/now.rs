//! The present state of a run: its hosts, the storage servers that limit it, the running tasks, and the last
//! failures. Made from the journal's events. A run without an end in its journal looks as if it still went on: only the
//! lock of the journal shows whether its coordinator lives.

mod lines;
mod state;

pub use state::{FailureState, Fetch, HostState, ServerState, TaskState};

use crate::tally::{FailedTask, Tally};
use crate::text::besides;
use crate::words::command_line;
use homing_model::event::EventKind;
use homing_model::units::{count, short_span};
use homing_model::{Event, HostSample, Indices, RawText, TaskId};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The number of last failures that are shown.
const FAILURES: usize = 5;

/// A host of the run.
#[derive(Clone, Debug, Default)]
struct OnHost {
    slots: u32,
    done: u64,
    failed: u64,
    /// The reason why the host is not used any more.
    lost: Option<String>,
    /// The last sample, and the rates between it and the one before.
    sample: Option<HostSample>,
    rates: Indices,
    /// The time when that sample arrived, ns since 1970 by the clock of the journal.
    heard_ns: i64,
    /// The rate of its link, bytes per second.
    link: Option<u64>,
}

/// A running attempt.
#[derive(Clone, Debug)]
struct Underway {
    host: String,
    slot: u32,
    attempt: u32,
    command: RawText,
    began_ns: i64,
    /// The holders of the bytes that it reads over the network, and how many bytes.
    from: Vec<(String, u64)>,
}

/// A storage server: the limit of tasks that use it at once, the reason, and the known leases by user.
#[derive(Clone, Debug, Default)]
struct ServerUse {
    limit: Option<u32>,
    why: String,
    users: Vec<(String, u32)>,
}

/// The present state of a run. The caller passes every event, in order.
#[derive(Clone, Debug, Default)]
pub struct Now {
    tally: Tally,
    argv: Vec<RawText>,
    hosts: BTreeMap<String, OnHost>,
    servers: BTreeMap<String, ServerUse>,
    tasks: BTreeMap<TaskId, Underway>,
    failures: VecDeque<FailedTask>,
    /// The time of the last event, ns since 1970.
    at_ns: i64,
}

impl Now {
    /// Records that the run has no coordinator any more, although its journal has no end. Its attempts ended with it.
    pub fn interrupt(&mut self) {
        self.tally.interrupt();
        self.tasks.clear();
    }

    /// Takes the next event.
    pub fn add(&mut self, event: &Event) {
        self.tally.add(event);
        self.at_ns = event.at_ns;
        match &event.what {
            EventKind::RunStarted { argv, .. } => self.argv.clone_from(argv),
            // The attempts of the earlier part ended with its coordinator.
            EventKind::RunResumed { .. } => {
                self.tasks.clear();
                self.hosts.clear();
            }
            EventKind::HostUp { host, slots, facts } => {
                let host = self.hosts.entry(host.clone()).or_default();
                (host.slots, host.lost, host.link) = (*slots, None, facts.nic_bytes_per_s);
            }
            EventKind::HostLost { host, reason } => {
                let host = self.hosts.entry(host.clone()).or_default();
                (host.lost, host.sample, host.rates) = (Some(reason.clone()), None, Indices::default());
            }
            EventKind::Sample { host, sample } => {
                let host = self.hosts.entry(host.clone()).or_default();
                host.heard_ns = event.at_ns;
                if let Some(before) = host.sample.replace(sample.clone()) {
                    host.rates = sample.since(&before);
                }
            }
            EventKind::Limit { storage, limit, why } => {
                let server = self.servers.entry(storage.clone()).or_default();
                (server.limit, server.why) = (*limit, why.clone());
            }
            EventKind::Leases { storage, users, .. } => {
                self.servers.entry(storage.clone()).or_default().users.clone_from(users);
            }
            EventKind::TaskStarted { task, attempt, host, slot, command, planned, .. } => {
                let (host, command) = (host.clone(), command.clone());
                self.hosts.entry(host.clone()).or_default();
                let from = planned.as_ref().map_or(Vec::new(), |planned| planned.from.clone());
                let (slot, attempt, began_ns) = (*slot, *attempt, event.at_ns);
                let underway = Underway { host, slot, attempt, command, began_ns, from };
                self.tasks.insert(*task, underway);
            }
            EventKind::TaskEnded { .. } => self.end(&event.what),
            EventKind::RunEnded { .. } => self.tasks.clear(),
            EventKind::HostUnfit { .. }
            | EventKind::TaskSkipped { .. }
            | EventKind::TaskAgain { .. }
            | EventKind::Note { .. } => {}
        }
    }

    fn end(&mut self, what: &EventKind) {
        let EventKind::TaskEnded { task, host, outcome, wall_us, said, last, .. } = what else { return };
        let underway = self.tasks.remove(task);
        if let Some(on) = self.hosts.get_mut(host) {
            on.done += u64::from(*last && outcome.is_success());
            on.failed += u64::from(*last && !outcome.is_success());
        }
        if *last && self.tally.counts().has_failed(*task) {
            self.failures.truncate(FAILURES - 1);
            let (host, outcome, said) = (host.clone(), outcome.clone(), said.clone());
            let command = underway.map_or(RawText::default(), |task| task.command);
            self.failures.push_front(FailedTask {
                task: *task,
                host,
                outcome,
                wall_us: *wall_us,
                command,
                error_line: said,
            });
        }
    }

    /// Returns the name of the run, whether it runs, and its command.
    pub fn title(&self) -> String {
        let name = self.tally.run.clone().unwrap_or_default();
        let state = match self.tally.exit() {
            Some(exit) => format!("ended, exit {exit}"),
            None => self.tally.state().into(),
        };
        format!("{name}  {state}  {}", command_line(&self.argv))
    }

    /// Returns the line in place of the progress of a run that is over: its tasks, its time and its size.
    fn sums(&self, now_ns: i64) -> String {
        let counts = self.tally.counts();
        let (hosts, slots) = self.tally.size();
        let rest: String = besides(counts).map(|part| format!(", {part}")).collect();
        let resume = self.tally.continuation().map_or(String::new(), |next| format!("; {next}"));
        let (took, hosts, slots) = (short_span(self.elapsed(now_ns)), count(hosts, "host"), count(slots, "slot"));
        format!("{} done, {} failed{rest} in {took} on {hosts}, {slots}{resume}", counts.done, counts.failed())
    }

    /// Returns the sums so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Whether two samples of each of these hosts have arrived.
    pub fn has_rates(&self, hosts: &[String]) -> bool {
        hosts.iter().all(|name| self.hosts.get(name).is_some_and(|host| host.rates != Indices::default()))
    }

    /// Whether a host is lost for this reason.
    pub fn is_lost_for(&self, reason: &str) -> bool {
        self.hosts.values().any(|host| host.lost.as_deref() == Some(reason))
    }

    /// Returns the number of running attempts by host.
    fn running(&self) -> BTreeMap<&str, usize> {
        let mut running = BTreeMap::new();
        self.tasks.values().for_each(|task| *running.entry(task.host.as_str()).or_default() += 1);
        running
    }

    /// Returns the number of tasks with a last outcome.
    pub fn over(&self) -> u64 {
        self.tally.counts().over()
    }

    /// Returns the number of running attempts, the slots of the hosts that are up, and the number of these hosts.
    pub fn used(&self) -> (usize, u32, usize) {
        let up = self.hosts.values().filter(|host| host.lost.is_none());
        (self.tasks.len(), up.clone().map(|host| host.slots).sum(), up.count())
    }

    /// Returns the time in which a coordinator worked until `now_ns`.
    pub fn elapsed(&self, now_ns: i64) -> Duration {
        let since = if self.is_over() { 0 } else { (now_ns - self.at_ns).max(0) as u64 / 1000 };
        Duration::from_micros(self.tally.wall_us() + since)
    }

    /// Returns the state as JSON: times in seconds, rates in the units of [`Indices`], `null` where unknown.
    pub fn json(&self, now_ns: i64) -> Value {
        let running = self.running();
        let age = |began: i64| (now_ns - began).max(0) as f64 / 1e9;
        let task = |(id, t): (&TaskId, &Underway)| json!({"task": id, "host": t.host, "slot": t.slot, "attempt": t.attempt, "seconds": age(t.began_ns), "command": t.command});
        let silent = |h: &OnHost| (!self.is_over() && h.sample.is_some()).then(|| age(h.heard_ns));
        let host = |(name, h): (&String, &OnHost)| json!({"host": name, "slots": h.slots, "running": running.get(name.as_str()).unwrap_or(&0), "done": h.done, "failed": h.failed, "lost": h.lost, "sample_age_seconds": silent(h), "ut": h.rates.ut, "stalled": h.rates.stalled, "io": h.rates.io, "net": h.rates.net, "link_bytes_per_s": h.link});
        let server = |(name, s): (&String, &ServerUse)| json!({"server": name, "limit": s.limit, "why": s.why, "users": s.users});
        json!({
            "state": self.tally.state(), "sums": self.tally.json(), "elapsed_seconds": self.elapsed(now_ns).as_secs_f64(),
            "hosts": self.hosts.iter().map(host).collect::<Vec<_>>(),
            "servers": self.servers.iter().map(server).collect::<Vec<_>>(),
            "fetches": self.fetches().iter().map(|f| json!({"from": f.from, "to": f.to, "tasks": f.tasks, "bytes": f.bytes})).collect::<Vec<_>>(),
            "tasks": self.tasks.iter().map(task).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests;
