//! Predicts the effect of one change by a replay of the run in the placer's simulator. Pure: from the tasks in the
//! journal and the counters of hosts.

use crate::change::ClusterChange;
use crate::full::{Full, HostResource};
use crate::words::is_build;
use homing_model::event::{EventKind, PlannedBytes};
use homing_model::{Event, NodeSet, TaskId};
use homing_place::{HostModel, Need, Params, replay};
use std::collections::HashMap;

/// The largest error of an unchanged replay. Predictions must be within 15 % of a later measurement. A replay with a
/// larger error leaves too little of these 15 %, so no prediction is made.
const AS_MEASURED: f64 = 0.1;
/// The most tasks that are kept. Each takes some 200 bytes, and four replays take seconds.
const MOST_TASKS: usize = 50_000;

/// The tasks of a run. The caller passes every event, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replay {
    running: HashMap<TaskId, Option<PlannedBytes>>,
    done: Vec<ReplayTask>,
    /// Whether locality was off.
    in_turn: bool,
    /// The reason why it cannot be replayed.
    broken: Option<&'static str>,
    /// The start of the first task and the end of the last, ns since 1970.
    span: Option<(i64, i64)>,
}

/// A task that succeeded.
#[derive(Clone, Debug)]
struct ReplayTask {
    task: TaskId,
    host: String,
    wall_us: u64,
    waited_us: Option<u64>,
    planned: PlannedBytes,
}

/// A host of the run, with the counts of its interfaces, bytes.
#[derive(Clone, Debug)]
pub(crate) struct ReplayHost {
    pub name: String,
    pub slots: u32,
    pub link: Option<u64>,
    pub sent: Option<u64>,
    pub received: Option<u64>,
}

impl Replay {
    /// Takes the next event.
    pub(crate) fn add(&mut self, event: &Event) {
        match &event.what {
            EventKind::RunStarted { argv, .. } => {
                self.in_turn = argv.iter().any(|word| word.0 == b"--no-locality");
                self.broken = is_build(argv).then_some("recipes of a build wait for each other");
            }
            EventKind::RunResumed { .. } => self.broken = Some("the run was resumed"),
            EventKind::TaskStarted { task, planned, .. } if self.broken.is_none() => {
                self.span.get_or_insert((event.at_ns, event.at_ns));
                self.running.insert(*task, planned.clone());
            }
            EventKind::TaskEnded { task, host, outcome, wall_us, io_wait, .. } if self.broken.is_none() => {
                self.span.iter_mut().for_each(|span| span.1 = span.1.max(event.at_ns));
                let planned = self.running.remove(task).flatten().unwrap_or_default();
                if outcome.is_success() {
                    let waited_us = io_wait.as_ref().map(|wait| wait.us());
                    let (task, host, wall_us) = (*task, host.clone(), *wall_us);
                    self.done.push(ReplayTask { task, host, wall_us, waited_us, planned });
                }
            }
            _ => {}
        }
        if self.done.len() > MOST_TASKS {
            *self = Replay { broken: Some("it has too many tasks for a replay"), ..Replay::default() };
        }
    }

    /// Returns changes to a full part, with the part of the run's time, `wall_us`, that each would save. `Err` is the
    /// reason why the savings are unknown.
    pub(crate) fn predict(
        &self,
        sites: &[ReplayHost],
        full: &Full,
        wall_us: u64,
    ) -> Result<Vec<(ClusterChange, f64)>, String> {
        if let Some(why) = self.broken {
            return Err(why.into());
        }
        let model = self.model(sites, full)?;
        let (from, to) = self.span.ok_or("no task succeeded")?;
        let (measured, replayed) = ((to - from) as f64 / 1e9, model.seconds());
        let off = (replayed / measured - 1.0).abs();
        if !off.is_finite() || off > AS_MEASURED {
            return Err(format!("a replay takes {replayed:.1} s, but the run took {measured:.1} s"));
        }
        let those: Vec<usize> = (0..sites.len()).filter(|at| full.hosts.contains(&sites[*at].name)).collect();
        let part = (measured * 1e6 / wall_us.max(1) as f64).min(1.0);
        let saves = |change: &ClusterChange| (1.0 - model.with(change, &those).seconds() / replayed) * part;
        let changes = full.changes(self.for_a_copy(sites, full));
        Ok(changes.into_iter().map(|change| (change.clone(), saves(&change))).collect())
    }

    /// Returns the host for a copy: the one that holds the fewest bytes, the first of several.
    fn for_a_copy(&self, sites: &[ReplayHost], full: &Full) -> Option<String> {
        let mut holds: HashMap<&str, u64> = HashMap::new();
        for ReplayTask { host, planned, .. } in &self.done {
            let from = planned.from.iter().map(|(holder, bytes)| (holder, *bytes));
            from.chain([(host, planned.local)]).for_each(|(holder, bytes)| *holds.entry(holder).or_default() += bytes);
        }
        let others: NodeSet =
            sites.iter().map(|site| site.name.clone()).filter(|name| !full.hosts.contains(name)).collect();
        others.iter().map(|name| name.to_string()).min_by_key(|name| holds.get(name.as_str()).copied().unwrap_or(0))
    }

    fn model(&self, sites: &[ReplayHost], full: &Full) -> Result<Model, String> {
        let names: Vec<String> = sites.iter().map(|site| site.name.clone()).collect();
        let at: HashMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let payload = self.payload(sites, full)?;
        let rate = |site: &ReplayHost| site.link.map(|link| (link as f64 * payload) as u64);
        let hosts = sites.iter().map(|site| HostModel {
            slots: site.slots,
            nic_bytes_per_s: rate(site),
            serving: 0.0,
            switch: None,
        });
        let mut done: Vec<&ReplayTask> = self.done.iter().collect();
        done.sort_by_key(|done| done.task);
        let needs = done.iter().map(|done| (done.task, done.need(&at)));
        let work = done.iter().map(|done| done.task).zip(self.work(&done)?).collect();
        let params = Params { locality: !self.in_turn, ..Params::default() };
        Ok(Model { params, hosts: hosts.collect(), needs: needs.collect(), work, names })
    }

    /// Returns the bytes of files for each byte that a full link could carry. The rest are frames, bytes of other
    /// programs, and useless transfers.
    fn payload(&self, sites: &[ReplayHost], full: &Full) -> Result<f64, String> {
        let named = |name: &String| full.hosts.contains(name);
        let from = |done: &ReplayTask| {
            done.planned.from.iter().filter(|(holder, _)| named(holder)).map(|(_, n)| *n).sum::<u64>()
        };
        let to = |done: &ReplayTask| if named(&done.host) { done.planned.remote } else { 0 };
        let count = |of: &dyn Fn(&ReplayTask) -> u64| self.done.iter().map(of).sum::<u64>();
        let moved = |of: fn(&ReplayHost) -> Option<u64>| {
            sites.iter().filter(|site| named(&site.name)).filter_map(of).sum::<u64>()
        };
        let (files, moved) = match full.what {
            HostResource::Sent(_) => (count(&from), moved(|site| site.sent)),
            HostResource::Received(_) => (count(&to), moved(|site| site.received)),
            HostResource::Processors => return Ok(1.0),
        };
        if files == 0 || moved == 0 {
            return Err("no layout shows which bytes crossed it".into());
        }
        Ok(full.filled * files as f64 / moved as f64)
    }

    /// Returns the time of each task on a host that has its bytes, microseconds. Its pace per byte is the median of
    /// the tasks that ran where their bytes are. Without such tasks, it is the task's own time less its wait for I/O.
    fn work(&self, done: &[&ReplayTask]) -> Result<Vec<u64>, String> {
        let at_home = self.done.iter().filter(|done| done.planned.remote == 0 && done.planned.local > 0);
        let mut paces: Vec<f64> = at_home.map(|done| done.wall_us as f64 / done.planned.local as f64).collect();
        paces.sort_by(f64::total_cmp);
        let us_per_byte = paces.get(paces.len() / 2).copied();
        let of = |done: &&ReplayTask| {
            let all = (done.planned.local + done.planned.remote) as f64;
            let at_home = || us_per_byte.map(|us| (us * all) as u64);
            let known = match done.planned.remote {
                0 => Some(done.wall_us),
                _ => at_home().or_else(|| done.waited_us.map(|waited| done.wall_us.saturating_sub(waited))),
            };
            known.map(|work| work.min(done.wall_us))
        };
        let unknown = "no task ran on the host of its bytes, and the kernels do not measure waits (sysctl \
            kernel.task_delayacct=1)";
        done.iter().map(of).collect::<Option<Vec<u64>>>().ok_or_else(|| unknown.into())
    }
}

impl ReplayTask {
    fn need(&self, at: &HashMap<&str, usize>) -> Need {
        let PlannedBytes { local, remote, from, .. } = &self.planned;
        let own = (*local > 0).then_some((self.host.as_str(), *local));
        let held = own.into_iter().chain(from.iter().map(|(holder, bytes)| (holder.as_str(), *bytes)));
        let per_host = held.filter_map(|(holder, bytes)| Some((*at.get(holder)?, bytes))).collect();
        Need { total: local + remote, per_host, ..Need::default() }
    }
}

/// The input of the simulator.
#[derive(Clone)]
struct Model {
    params: Params,
    names: Vec<String>,
    hosts: Vec<HostModel>,
    needs: Vec<(TaskId, Need)>,
    /// The microseconds of each task.
    work: HashMap<TaskId, u64>,
}

impl Model {
    fn seconds(&self) -> f64 {
        let planned = replay(self.params.clone(), &self.hosts, &self.needs, |task, _| self.work[&task]);
        planned.iter().map(|one| one.end_us).max().unwrap_or(0) as f64 / 1e6
    }

    /// Returns the changed model. `full` are the hosts with a full part.
    fn with(&self, change: &ClusterChange, full: &[usize]) -> Model {
        let mut model = self.clone();
        match change {
            ClusterChange::Link { from, to } => {
                let wider = |rate: u64| (rate as f64 * *to as f64 / *from as f64) as u64;
                full.iter().for_each(|at| {
                    model.hosts[*at].nic_bytes_per_s = model.hosts[*at].nic_bytes_per_s.map(wider);
                });
            }
            ClusterChange::Copy(host) => {
                let to = self.names.iter().position(|name| Some(name) == host.as_ref());
                to.into_iter().for_each(|to| model.copy(full, to));
            }
            ClusterChange::Host => {
                let like = (0..self.hosts.len()).rev().find(|at| !full.contains(at)).unwrap_or(0);
                model.hosts.extend(self.hosts.get(like).cloned());
            }
        }
        model
    }

    /// Copies the bytes that the hosts `full` hold to the host `to`.
    fn copy(&mut self, full: &[usize], to: usize) {
        for (n, (_, need)) in self.needs.iter_mut().enumerate() {
            let bytes: u64 = need.per_host.iter().filter(|(at, _)| full.contains(at)).map(|(_, bytes)| bytes).sum();
            if bytes == 0 {
                continue;
            }
            match need.per_host.iter_mut().find(|(at, _)| *at == to) {
                Some((_, held)) => *held = (*held + bytes).min(need.total),
                // Of two holders with equal bytes, the simulator reads from the last. Alternating the place spreads
                // the reads.
                None => need.per_host.insert(if n % 2 == 0 { 0 } else { need.per_host.len() }, (to, bytes)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
