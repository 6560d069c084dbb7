//! Adds up the evidence of a run as it goes. Memory grows with hosts and failed tasks, with recipes of a build, and
//! with tasks up to a bound.

use crate::amplified::{Amplified, Disks};
use crate::full::{self, Full, Gauges};
use crate::load::{Sums, add_known};
use crate::path::Path;
use crate::replay::{Replay, ReplayHost};
use crate::words::{command_line, is_build};
use homing_journal::Counts;
use homing_model::event::{EventKind, PlannedBytes, UNNEEDED};
use homing_model::{Event, IoCounters, IoWait, NodeSet, Outcome, RawText, ServerTraffic, TaskId, WAIT_ASKED_FROM_US};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// The number of failed tasks that are named.
pub(crate) const NAMED: usize = 3;

/// The activity of one host.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostTally {
    pub slots: u32,
    pub attempts: u64,
    pub busy_us: u64,
    pub up_us: u64,
    up_since: Option<i64>,
    pub lost: bool,
    pub load: Sums,
    /// The parts that were full, and for how long.
    pub full: Gauges,
    pub disks: Disks,
    /// The rate of its link, bytes per second.
    link: Option<u64>,
    /// The boot of its machine; empty if unknown. Containers on one machine all count the disks of that machine.
    boot: String,
}

/// A failed task, as it is in the journal.
#[derive(Clone, Debug)]
pub(crate) struct FailedTask {
    pub task: TaskId,
    pub host: String,
    pub outcome: Outcome,
    pub wall_us: u64,
    /// Empty for a task that never started.
    pub command: RawText,
    pub error_line: Option<String>,
}

/// The sums of a run. The caller passes every event, in order.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub(crate) run: Option<String>,
    /// The command that runs the failed tasks again.
    pub(crate) again: Option<String>,
    pub(crate) counts: Counts,
    pub(crate) retried: u64,
    pub(crate) exit: Option<i32>,
    /// Whether its coordinator died before the end.
    interrupted: bool,
    pub(crate) named: Vec<FailedTask>,
    /// The number of tasks that did not run, by reason.
    pub(crate) not_run: BTreeMap<String, u64>,
    /// The commands of the running attempts.
    running: HashMap<TaskId, RawText>,
    /// Hosts that could not be used at all or by some tasks, with the reason.
    unfit: BTreeMap<String, String>,
    pub(crate) hosts: BTreeMap<String, HostTally>,
    /// The last known limit of tasks that use a storage server at once, with its reason. The server need not be a
    /// host of the run.
    pub(crate) limits: BTreeMap<String, (Option<u32>, String)>,
    /// Storage servers that other users used too.
    pub(crate) shared: BTreeMap<String, ServerUsers>,
    pub(crate) planned: PlannedBytes,
    /// Hosts that hold the bytes which other hosts read, and hosts that read bytes of their own.
    holders: [BTreeMap<String, u64>; 2],
    /// The number of attempts whose bytes are known by the layout, and of the others.
    pub(crate) placed: (u64, u64),
    pub(crate) ended: u64,
    pub(crate) rchar: Option<u64>,
    /// Bytes that ended tasks have written, if they could be measured.
    wchar: Option<u64>,
    pub(crate) from_disk: u64,
    pub(crate) waits: IoWaits,
    /// The number of attempts that were too short to measure their wait.
    pub(crate) short: u64,
    /// The chains of a build's recipes. A run of tasks has none.
    pub(crate) path: Option<Path>,
    replay: Replay,
    earlier_us: u64,
    part: Option<(i64, i64)>,
}

/// The users of a storage server at the same time, including the user of this run.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerUsers {
    /// The last known limit of tasks of all users at once.
    pub limit: Option<u32>,
    /// The most tasks that each user had at once.
    pub most: BTreeMap<String, u32>,
}

/// The time waited for I/O over all attempts.
#[derive(Clone, Debug, Default)]
pub(crate) struct IoWaits {
    pub known: u64,
    pub sum_us: u64,
    /// The number of attempts by the power of √2 that their wait reaches.
    steps: BTreeMap<u32, u64>,
}

impl IoWaits {
    fn add(&mut self, wait: &IoWait) {
        self.known += 1;
        self.sum_us += wait.us();
        let step = ((wait.us() as f64 + 1.0).log2() * 2.0).round() as u32;
        *self.steps.entry(step).or_default() += 1;
    }

    /// Returns the median, to within a fifth.
    pub(crate) fn median_us(&self) -> Option<u64> {
        let mut left = self.known.div_ceil(2);
        for (step, n) in &self.steps {
            left = left.saturating_sub(*n);
            if left == 0 {
                return Some((f64::from(*step) / 2.0).exp2() as u64 - 1);
            }
        }
        None
    }
}

impl Tally {
    /// Makes empty sums.
    pub fn new() -> Self {
        Tally::default()
    }

    /// Returns the exit status of the run, when it has ended.
    pub fn exit(&self) -> Option<i32> {
        self.exit
    }

    /// Records that the run has no coordinator any more, although its journal has no end.
    pub fn interrupt(&mut self) {
        self.interrupted = true;
    }

    /// Whether the run has neither an end nor a coordinator.
    pub fn is_interrupted(&self) -> bool {
        self.exit.is_none() && self.interrupted
    }

    /// Whether an event of the run was read.
    pub(crate) fn has_begun(&self) -> bool {
        self.part.is_some()
    }

    /// Whether the run has ended, or was interrupted.
    pub fn is_over(&self) -> bool {
        self.exit.is_some() || self.interrupted
    }

    /// Returns the state of the run in a word, as `homing runs` has it.
    pub(crate) fn state(&self) -> &'static str {
        match self.exit {
            Some(_) => "ended",
            None if self.interrupted => "interrupted",
            None => "running",
        }
    }

    /// Returns the words on the command that continues the run, if the run was interrupted.
    pub(crate) fn continuation(&self) -> Option<String> {
        let run = self.run.as_ref().filter(|_| self.is_interrupted())?;
        match &self.again {
            // Only make knows which part of a build is left.
            Some(make) if self.path.is_some() => Some(format!("{make}, continues it")),
            _ => Some(format!("homing resume {run} continues it")),
        }
    }

    /// Returns the counts of tasks by outcome so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the bytes that ended tasks have read, if they could be measured.
    pub fn read(&self) -> Option<u64> {
        self.rchar
    }

    /// Takes the next event.
    pub fn add(&mut self, event: &Event) {
        self.pass_time(event);
        self.counts.add(&event.what);
        self.replay.add(event);
        self.path.iter_mut().for_each(|path| path.add(event));
        match &event.what {
            EventKind::RunStarted { run, argv, cwd, .. } => {
                self.run = Some(run.clone());
                self.path = is_build(argv).then(Path::default);
                self.again = Some(match is_build(argv) {
                    true => format!("{}, in {}", command_line(argv), cwd.display()),
                    false => format!("homing resume --failed {run}"),
                });
            }
            EventKind::RunResumed { .. } => {
                (self.exit, self.interrupted) = (None, false);
                // The resumed part reports them again, or runs them.
                self.not_run.clear();
                self.hosts.values_mut().for_each(|h| h.load.pause());
            }
            EventKind::HostUp { host, slots, facts } => {
                let host = self.host(host);
                host.slots = *slots;
                host.link = facts.nic_bytes_per_s;
                host.boot.clone_from(&facts.boot_id);
                host.lost = false;
                host.up_since = Some(event.at_ns);
            }
            EventKind::HostLost { host, .. } => {
                let host = self.host(host);
                host.lost = true;
                host.end_part(event.at_ns);
                host.load.pause();
            }
            EventKind::Sample { host, sample } => {
                let host = self.host(host);
                if let Some(step) = host.load.add(sample) {
                    host.full.add(&step, host.link);
                    host.disks.add(step.disk, step.us);
                }
            }
            EventKind::TaskStarted { task, host, command, planned, .. } => {
                self.host(host).attempts += 1;
                self.running.insert(*task, command.clone());
                self.plan(host, planned.as_ref());
            }
            EventKind::TaskEnded { host, wall_us, io, io_wait, .. } => {
                // A task that no host could run has no host.
                if !host.is_empty() {
                    let host = self.host(host);
                    host.busy_us += wall_us;
                    host.full.add_own(io.user_us + io.sys_us);
                }
                self.end(&event.what);
                self.measure(io, io_wait.as_ref());
                self.short += u64::from(io_wait.is_none() && *wall_us <= WAIT_ASKED_FROM_US);
            }
            EventKind::RunEnded { exit, .. } => self.exit = Some(*exit),
            EventKind::Limit { storage, limit, why, .. } => {
                self.limits.insert(storage.clone(), (*limit, why.clone()));
            }
            EventKind::HostUnfit { host, reason } => drop(self.unfit.insert(host.clone(), reason.clone())),
            EventKind::Leases { storage, limit, users } => {
                let shared = self.shared.entry(storage.clone()).or_default();
                shared.limit = *limit;
                for (user, held) in users {
                    let most = shared.most.entry(user.clone()).or_default();
                    *most = (*most).max(*held);
                }
            }
            EventKind::TaskSkipped { .. } | EventKind::TaskAgain { .. } | EventKind::Note { .. } => {}
        }
    }

    fn pass_time(&mut self, event: &Event) {
        let resumed = matches!(event.what, EventKind::RunResumed { .. });
        if resumed {
            self.earlier_us = self.wall_us();
            let until = self.part.map_or(event.at_ns, |(_, to)| to);
            self.hosts.values_mut().for_each(|h| h.end_part(until));
            self.part = None;
        }
        let part = self.part.get_or_insert((event.at_ns, event.at_ns));
        part.1 = part.1.max(event.at_ns);
    }

    fn host(&mut self, name: &str) -> &mut HostTally {
        if !self.hosts.contains_key(name) {
            self.hosts.insert(name.to_string(), HostTally::default());
        }
        self.hosts.get_mut(name).expect("it was just put there")
    }

    fn plan(&mut self, host: &str, planned: Option<&PlannedBytes>) {
        match planned {
            Some(p) => {
                self.placed.0 += 1;
                self.planned.local += p.local;
                self.planned.remote += p.remote;
                self.planned.remote_if_in_turn += p.remote_if_in_turn;
                let own = (p.local > 0).then_some((host, p.local));
                for (of, name, bytes) in
                    p.from.iter().map(|(name, n)| (0, name.as_str(), *n)).chain(own.map(|(name, n)| (1, name, n)))
                {
                    *self.holders[of].entry(name.to_string()).or_default() += bytes;
                }
            }
            None => self.placed.1 += 1,
        }
    }

    /// Returns the one host that holds all inputs, if some are read over the network: no placement avoids that.
    pub(crate) fn only_holder(&self) -> Option<&str> {
        let [others, own] = &self.holders;
        let (name, bytes) = others.first_key_value().filter(|_| others.len() == 1)?;
        (*bytes == self.planned.remote && own.keys().all(|host| host == name)).then_some(name)
    }

    fn end(&mut self, what: &EventKind) {
        let EventKind::TaskEnded { task, host, outcome, wall_us, said, last, .. } = what else { return };
        let command = self.running.remove(task).unwrap_or_default();
        if !last {
            self.retried += 1;
            return;
        }
        if let Outcome::NotRun(why) = outcome {
            *self.not_run.entry(why.clone()).or_default() += 1;
        }
        // It may have failed in an earlier part of the run.
        self.named.retain(|named| named.task != *task);
        if self.counts.has_failed(*task) && self.named.len() < NAMED {
            let (host, outcome, said) = (host.clone(), outcome.clone(), said.clone());
            self.named.push(FailedTask { task: *task, host, outcome, wall_us: *wall_us, command, error_line: said });
        }
    }

    fn measure(&mut self, io: &IoCounters, wait: Option<&IoWait>) {
        self.ended += 1;
        self.from_disk += io.read_bytes;
        add_known(&mut self.rchar, io.rchar);
        add_known(&mut self.wchar, io.wchar);
        if let Some(wait) = wait {
            self.waits.add(wait);
        }
    }

    /// Returns the number of hosts of the run, and of their slots.
    pub fn size(&self) -> (u64, u64) {
        (self.hosts.len() as u64, self.hosts.values().map(|host| u64::from(host.slots)).sum())
    }

    /// Returns the time in which a coordinator worked, microseconds.
    pub fn wall_us(&self) -> u64 {
        self.earlier_us + self.part.map_or(0, |(from, to)| (to - from).max(0) as u64 / 1000)
    }

    fn of_hosts(&self, of: fn(&HostTally) -> Option<u64>) -> Option<u64> {
        self.hosts.values().filter_map(of).fold(None, |sum, n| Some(sum.unwrap_or(0) + n))
    }

    /// Returns the bytes that the interfaces of all hosts received and sent, if any could be measured.
    pub(crate) fn network(&self) -> (Option<u64>, Option<u64>) {
        (self.of_hosts(|h| h.load.total.received), self.of_hosts(|h| h.load.total.sent))
    }

    /// Whether the tasks explain at least half of the bytes that the hosts' interfaces received. If not, the bytes are
    /// mostly those of other programs, and are not shown as if they were the run's.
    pub(crate) fn explains_network(&self) -> bool {
        explains(self.rchar.or(Some(self.planned.remote)), self.network().0)
    }

    /// Whether the tasks explain at least half of the bytes that the hosts' disks read and wrote.
    pub(crate) fn explains_disks(&self) -> bool {
        let mut own = self.rchar;
        add_known(&mut own, self.wchar);
        explains(own, self.moved_by_disks())
    }

    /// Returns the bytes that the hosts' interfaces received, unless most are those of other programs.
    pub(crate) fn own_received(&self) -> Option<u64> {
        self.network().0.filter(|_| self.explains_network())
    }

    /// Returns the moved bytes beside the bytes that tasks read.
    pub(crate) fn amplified(&self) -> Amplified {
        Amplified { read_bytes: self.rchar, received: self.network().0, disks: self.moved_by_disks() }
    }

    /// Returns the bytes that disks moved. The disks of each machine count once.
    fn moved_by_disks(&self) -> Option<u64> {
        let mut by_machine: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, host) in &self.hosts {
            let Some(moved) = host.load.total.disk else { continue };
            let machine = if host.boot.is_empty() { name } else { &host.boot };
            let most = by_machine.entry(machine).or_default();
            *most = moved.max(*most);
        }
        (!by_machine.is_empty()).then(|| by_machine.values().sum())
    }

    /// Returns the bytes and requests that file servers served to all hosts.
    pub(crate) fn served(&self) -> BTreeMap<&str, ServerTraffic> {
        let mut all: BTreeMap<&str, ServerTraffic> = BTreeMap::new();
        for (server, served) in self.hosts.values().flat_map(|host| &host.load.served) {
            *all.entry(server).or_default() += *served;
        }
        all
    }

    /// Returns the hosts that could not be used at all, folded. `with_unneeded`: also hosts that had not answered when
    /// the run ended.
    pub(crate) fn unused(&self, with_unneeded: bool) -> Option<String> {
        let unused = self.unfit.iter().filter(|(host, _)| !self.hosts.contains_key(*host));
        let unused = unused.filter(|(_, reason)| with_unneeded || !reason.ends_with(UNNEEDED));
        let unused: NodeSet = unused.map(|(host, _)| host.clone()).collect();
        (!unused.is_empty()).then(|| unused.to_string())
    }

    /// Returns the parts that were full for most of the run, with their hosts, the worst first.
    pub(crate) fn full(&self) -> Vec<Full> {
        let hosts = self.hosts.iter().map(|(name, host)| (name.as_str(), &host.full, host.link));
        let mut full = full::of(hosts, self.wall_us());
        let sites: Vec<ReplayHost> = self.hosts.iter().map(|(name, host)| host.site(name)).collect();
        full.iter_mut().for_each(|full| full.set_savings(self.replay.predict(&sites, full, self.wall_us())));
        full
    }

    /// Returns the host whose slots were used most, with the used part of its slot time (0 to 1).
    pub(crate) fn busiest(&self) -> Option<(&str, &HostTally, Option<f64>)> {
        let now = self.part.map_or(0, |(_, to)| to);
        let used = self.hosts.iter().map(|(name, host)| (name.as_str(), host, host.used(now)));
        used.filter(|(_, host, _)| host.attempts > 0).max_by(|a, b| {
            a.2.partial_cmp(&b.2).unwrap_or(std::cmp::Ordering::Equal).then(a.1.busy_us.cmp(&b.1.busy_us))
        })
    }

    /// Returns the bytes of inputs by their layouts: on the hosts that read them, and on others. `None` without a
    /// known layout.
    pub fn planned(&self) -> Option<(u64, u64)> {
        (self.placed.0 > 0).then_some((self.planned.local, self.planned.remote))
    }

    /// Returns the evidence as JSON. Times are in microseconds, `null` where unknown.
    pub fn json(&self) -> Value {
        let (received, sent) = self.network();
        let now = self.part.map_or(0, |(_, to)| to);
        let placed = self.placed.0 > 0;
        let hosts: BTreeMap<&String, Value> = self
            .hosts
            .iter()
            .map(|(name, h)| {
                let load = &h.load.total;
                let value = json!({
                    "slots": h.slots, "attempts": h.attempts, "busy_us": h.busy_us, "used": h.used(now),
                    "lost": h.lost, "received_bytes": load.received, "sent_bytes": load.sent,
                    "disk_bytes": load.disk, "disk_most_bytes_per_s": h.disks.most(), "io_stalled_us": load.stalled_us,
                    "full": h.full.json(h.link, self.wall_us()),
                });
                (name, value)
            })
            .collect();
        json!({
            "run": self.run, "state": self.state(), "exit": self.exit, "wall_us": self.wall_us(),
            "tasks": {
                "total": self.counts.all(), "done": self.counts.done, "failed": self.counts.failed(),
                "not_run": self.counts.not_run(), "skipped": self.counts.skipped, "retried": self.retried, "unfinished": self.counts.unfinished(),
            },
            "planned": placed.then(|| json!({
                "local_bytes": self.planned.local, "remote_bytes": self.planned.remote,
                "remote_if_in_turn_bytes": self.planned.remote_if_in_turn, "attempts_without_layout": self.placed.1,
            })),
            "measured": {
                "rchar_bytes": self.rchar, "disk_read_bytes": (self.ended > 0).then_some(self.from_disk),
                "hosts_received_bytes": received, "hosts_sent_bytes": sent,
            },
            "amplification": self.amplified().json(),
            "io_wait": (self.waits.known > 0).then(|| json!({
                "sum_us": self.waits.sum_us, "median_us": self.waits.median_us(),
                "attempts_known": self.waits.known, "attempts_too_short": self.short, "attempts": self.ended,
            })),
            "shared": self.shared.iter().map(|(server, shared)| {
                (server.clone(), json!({"limit": shared.limit, "most": shared.most}))
            }).collect::<serde_json::Map<_, _>>(),
            "served": self.served(),
            "full": self.full().iter().map(Full::json).collect::<Vec<_>>(),
            "busiest": self.busiest().map(|(name, ..)| name),
            "path": self.path.as_ref().map(Path::json),
            "hosts": hosts,
        })
    }
}

/// Whether the tasks' own bytes are at least half of the counted bytes.
pub(crate) fn explains(own: Option<u64>, counted: Option<u64>) -> bool {
    counted.is_none_or(|counted| own.is_some_and(|own| own.saturating_mul(2) >= counted))
}

impl HostTally {
    fn end_part(&mut self, at_ns: i64) {
        if let Some(since) = self.up_since.take() {
            self.up_us += (at_ns - since).max(0) as u64 / 1000;
        }
    }

    fn site(&self, name: &str) -> ReplayHost {
        let (sent, received) = (self.load.total.sent, self.load.total.received);
        ReplayHost { name: name.into(), slots: self.slots, link: self.link, sent, received }
    }

    /// Returns the used part of the slot time until `now_ns`, 0 to 1.
    pub(crate) fn used(&self, now_ns: i64) -> Option<f64> {
        let up = self.up_us + self.up_since.map_or(0, |since| (now_ns - since).max(0) as u64 / 1000);
        let available = up as f64 * f64::from(self.slots);
        (available > 0.0).then(|| (self.busy_us as f64 / available).min(1.0))
    }
}
