//! The embedded queue as an engine: the spool, and the runner that is started when there is none.

use crate::control::Target;
use crate::engine::{Engine, Machine};
use crate::neighbours::{Neighbours, Presence};
use crate::plan::{self, Block, Config, JobView, Usage};
use crate::unit::Unit;
use crate::{Amend, Job, JobSpec, JobSpool, Private, QueueError, files, load, slots};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::Duration;

/// The queue of this machine.
pub struct Embedded {
    spool: JobSpool,
    config: Config,
    program: Option<PathBuf>,
    words: Vec<String>,
}

impl Embedded {
    /// Opens the spool. `program` with `words` is the command that starts a runner.
    pub fn open(config: Config, program: PathBuf, words: &[&str]) -> Result<Embedded, QueueError> {
        let words = words.iter().map(|w| w.to_string()).collect();
        let spool = JobSpool::open()?;
        let config = spool.now(config);
        Ok(Embedded { spool, config, program: Some(program), words })
    }

    /// Returns the queue for a process that must not start a runner, because the runner would end with it. Another
    /// process starts the runner.
    pub fn served_by_another(self) -> Embedded {
        Embedded { program: None, ..self }
    }

    /// Starts a runner if jobs of this user wait and there is none.
    pub fn serve(&self) -> Result<(), QueueError> {
        if self.spool.has_runner()? { Ok(()) } else { self.tend_to(&self.spool.own_jobs()?) }
    }

    /// Starts a runner if jobs wait. A restart of the machine, or a kill, may have ended the runner.
    fn tend_to(&self, jobs: &[Job]) -> Result<(), QueueError> {
        let waits = jobs.iter().any(|j| j.uid == files::uid() && !j.is_over(None));
        if waits { self.ensure_runner() } else { Ok(()) }
    }

    /// Returns whose runs hold slots of this machine, and how many. The run is named if it is this user's only one.
    fn held_by_runs(&self, users: &[u32]) -> Option<String> {
        let count = self.config.slots;
        let held = slots::of_runs(&self.spool.places, users, &files::host_name(), count);
        let who = |(uid, slots): &(u32, u32)| {
            let own = || homing_journal::single_live(&homing_journal::root());
            let (whose, run) = (files::user_name(*uid), (*uid == files::uid()).then(own).flatten());
            match run {
                Some(run) => format!("run {run} of {whose} holds {slots} of {count}"),
                None => format!("runs of {whose} hold {slots} of {count}"),
            }
        };
        (!held.is_empty()).then(|| held.iter().map(who).collect::<Vec<_>>().join(", "))
    }

    fn ensure_runner(&self) -> Result<(), QueueError> {
        self.started_runner().map(drop)
    }

    /// Starts a runner if there is none. Returns the systemd unit that would end the runner with itself, if there is
    /// one.
    fn started_runner(&self) -> Result<Option<Unit>, QueueError> {
        let Some(program) = &self.program else { return Ok(None) };
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        self.spool.ensure_runner(program, &words)
    }
}

impl Engine for Embedded {
    fn name(&self) -> &'static str {
        "homing"
    }

    fn config(&self) -> Result<Config, QueueError> {
        Ok(self.config.clone())
    }

    fn machines(&self) -> Result<Vec<Machine>, QueueError> {
        let machine = |name: String, slots| {
            let closed = self.config.closed_host(Some(&name)).cloned();
            let open = slots != Some(0) && closed.is_none();
            Machine { name, slots, open, state: if open { "ok" } else { "closed" }.into(), closed }
        };
        let own = files::host_name();
        let others = self.config.host_slots.iter().filter(|(name, _)| **name != own);
        let others = others.map(|(name, slots)| machine(name.clone(), *slots));
        Ok(std::iter::once(machine(own.clone(), Some(self.config.slots))).chain(others).collect())
    }

    fn submit(&self, spec: &JobSpec, private: &Private) -> Result<u64, QueueError> {
        let id = self.spool.submit(spec, private)?;
        if let Some(unit) = self.started_runner()? {
            homing_os::say!("{}", unit.warning());
        }
        Ok(id)
    }

    fn jobs(&self) -> Result<Vec<Job>, QueueError> {
        let jobs = self.spool.jobs()?;
        self.tend_to(&jobs)?;
        Ok(without_shares(jobs))
    }

    fn own_jobs(&self) -> Result<Vec<Job>, QueueError> {
        let jobs = self.spool.own_jobs()?;
        self.tend_to(&jobs)?;
        Ok(without_shares(jobs))
    }

    fn job(&self, id: u64) -> Result<Job, QueueError> {
        self.spool.job(id)
    }

    fn kill(&self, job: &Job, index: Option<u32>, signal: Option<i32>) -> Result<(), QueueError> {
        self.spool.kill(job, index, signal)
    }

    fn stop(&self, job: &Job, index: Option<u32>, stop: bool) -> Result<(), QueueError> {
        self.spool.stop(job, index, stop)?;
        // The runner may have ended, having only stopped jobs.
        if stop { Ok(()) } else { self.ensure_runner() }
    }

    fn again(&self, job: &Job, index: Option<u32>, ended: bool) -> Result<usize, QueueError> {
        let count = self.spool.again(job, index, ended)?;
        self.ensure_runner()?;
        Ok(count)
    }

    fn amend(&self, job: &Job, change: &Amend) -> Result<(), QueueError> {
        self.spool.amend(job, change)?;
        // The runner may have ended because this job, as it was before the change, needed none.
        self.ensure_runner()
    }

    fn control(&self, target: Target, names: &[String], shut: bool, why: Option<String>) -> Result<(), QueueError> {
        self.spool.set_control(target, names, shut, why)
    }

    fn reasons(&self, jobs: &[Job]) -> Result<HashMap<(u64, u32), Block>, QueueError> {
        let places = &self.spool.places;
        let (views, users) = (self.spool.views(jobs), places.users());
        let mut usage = Usage::of(&self.spool.views(&self.spool.own_jobs()?));
        for (uid, presence) in Neighbours::default().look(places, &users) {
            for stands in &presence.hosts {
                stands.used.iter().for_each(|(queue, slots)| usage.add(uid, queue, &stands.host, *slots));
            }
        }
        let waiting = || views.iter().filter(|v| !v.state.is_over() && !v.state.is_running());
        // A first look takes a while, and most queues have no thresholds.
        let heeds = |queue: &str| self.config.queues.get(queue).is_some_and(|q| q.asks_load());
        let asked = waiting().any(|v| !v.require.is_empty() || heeds(&v.queue));
        let load = if asked { load::watch(&self.config.index).now().clone() } else { load::LoadIndices::default() };
        // Where nothing else blocks the job, only slots are missing.
        let slots = |v: &JobView| match slots::odd(places, &users, v.host.as_deref().unwrap_or(&files::host_name())) {
            odd if odd.is_empty() => match self.held_by_runs(&users).filter(|_| v.host.is_none()) {
                Some(who) => Block::SlotsOfRuns(who),
                None => Block::Slots,
            },
            odd => Block::Other(format!("{}; {}", Block::Slots, odd.join("; "))),
        };
        // Only the runner of the job's user knows the leases.
        let leased = |v: &JobView| plan::leased_by(&self.config, v);
        let sharers: BTreeSet<u32> = waiting().filter(|v| !leased(v).is_empty()).map(|v| v.uid).collect();
        let presences: BTreeMap<u32, Presence> =
            sharers.into_iter().filter_map(|uid| Some((uid, Presence::of(places, uid)?))).collect();
        let full = |v: &JobView| {
            let told = &presences.get(&v.uid)?.full;
            leased(v).iter().find_map(|name| told.get(name)).cloned().map(Block::Storage)
        };
        let blocked = |v: &JobView| plan::blocked(&self.config, &usage, v, &load).or_else(|| full(v));
        let asked =
            |v: &JobView| jobs.iter().find(|j| j.id == v.id && j.uid == v.uid)?.part(v.index)?.start_refusal.clone();
        let is_over_several =
            |v: &JobView| jobs.iter().any(|j| j.id == v.id && j.uid == v.uid && !j.spec.hosts.is_empty());
        let reason = |v: &JobView| match (&v.host, asked(v)) {
            (Some(_), Some(why)) if is_over_several(v) => Block::Other(why),
            (Some(host), Some(why)) => Block::Other(format!("{host}: {why}")),
            (Some(host), None) => {
                blocked(v).unwrap_or_else(|| Block::Other(format!("{host} handles the requests of other jobs first")))
            }
            (None, _) => blocked(v).unwrap_or_else(|| slots(v)),
        };
        Ok(waiting().map(|v| ((v.id, v.index), reason(v))).collect())
    }

    fn pace(&self) -> Duration {
        Duration::from_millis(100)
    }

    fn tend(&self) -> Result<(), QueueError> {
        self.ensure_runner()
    }
}

/// Removes this machine's shares of jobs that have slots on several hosts, so that each job is listed once.
fn without_shares(mut jobs: Vec<Job>) -> Vec<Job> {
    jobs.retain(|job| !job.spec.is_own_share());
    jobs
}
