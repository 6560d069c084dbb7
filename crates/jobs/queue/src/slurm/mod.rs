//! Slurm as an engine: a job is a Slurm job, with Slurm's id. homing keeps no records besides slurmctld's, so that
//! jobs submitted by other programs are seen too.

mod after;
mod batch;
mod comment;
mod ending;
mod interactive;
mod several;
mod show;

pub use interactive::Joined;

use crate::control::Target;
use crate::engine::{Engine, Machine};
use crate::plan::{Block, Config, Queue};
use crate::state::ElementState;
use crate::{Amend, Job, JobElement, JobSpec, Private, QueueError};
use homing_scheduler::BatchNode;
use homing_scheduler::slurm::ask;
use std::cell::LazyCell;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Slurm of this machine.
#[derive(Default)]
pub struct Slurm;

fn failed(error: homing_scheduler::AskError) -> QueueError {
    QueueError::Program(error.to_string())
}

fn order(doing: &'static str, words: &[&str]) -> Result<String, QueueError> {
    homing_scheduler::command(doing, words, &[], None).map_err(failed)
}

/// Returns `12` or `12_3`, as Slurm writes it.
fn name(job: &Job, index: Option<u32>) -> String {
    match index.filter(|i| *i > 0 || job.spec.array.is_some()) {
        Some(index) => format!("{}_{index}", job.id),
        None => job.id.to_string(),
    }
}

fn meant(job: &Job, index: Option<u32>) -> impl Iterator<Item = &JobElement> {
    job.parts.iter().filter(move |p| index.is_none_or(|i| i == p.index))
}

impl Slurm {
    /// Returns the condition of a job in Slurm's words.
    fn dependency(&self, spec: &JobSpec) -> Result<Option<String>, QueueError> {
        let mut jobs = None;
        let dependency = spec.after.as_ref().map(|text| {
            after::dependency(text, &mut |name| {
                let all = jobs.get_or_insert_with(|| self.jobs().unwrap_or_default());
                all.iter().rev().find(|j| j.spec.user == spec.user && j.spec.name == name).map(|j| j.id)
            })
        });
        dependency.transpose().map_err(QueueError::Request)
    }

    /// Requests an allocation in which the job runs with this process's standard input, output and error; with
    /// `terminal` on a terminal of its own.
    pub fn join(&self, spec: &JobSpec, private: &Private, terminal: bool) -> Result<Joined, QueueError> {
        Joined::start(spec, private, self.dependency(spec)?.as_deref(), terminal)
    }
}

impl Engine for Slurm {
    fn name(&self) -> &'static str {
        "slurm"
    }

    fn config(&self) -> Result<Config, QueueError> {
        let words = ["sinfo", "--noheader", "--summarize", "--format", "%P|%a|%l|%C|%p"];
        let text = order("reading the partitions from Slurm", &words)?;
        let queues: BTreeMap<String, Queue> = text.lines().filter_map(show::partition).collect();
        let nodes = ask::nodes(None).map_err(failed)?;
        Ok(Config {
            slots: nodes.iter().map(|n| n.cpus).max().unwrap_or(1),
            host_slots: nodes.into_iter().map(|n| (n.name, Some(n.cpus))).collect(),
            queues,
            index: BTreeMap::new(),
            name: crate::host_name(),
            ..Config::default()
        })
    }

    fn machines(&self) -> Result<Vec<Machine>, QueueError> {
        let nodes = ask::nodes(None).map_err(failed)?;
        let machine = |n: BatchNode| Machine {
            open: n.is_usable(false),
            name: n.name,
            slots: Some(n.cpus),
            state: n.state,
            closed: None,
        };
        Ok(nodes.into_iter().map(machine).collect())
    }

    fn fit(&self, spec: &mut JobSpec) -> Result<Option<String>, QueueError> {
        if spec.near.is_empty() {
            return Ok(None);
        }
        let partition = Some(spec.queue.as_str()).filter(|q| !q.is_empty());
        let nodes = ask::nodes(partition).map_err(failed)?;
        let text =
            order("reading the features of nodes from Slurm", &["sinfo", "--noheader", "--Node", "--format", "%N|%f"])?;
        batch::fit(spec, &nodes, &show::features(&text)).map_err(QueueError::Request)
    }

    fn submit(&self, spec: &JobSpec, private: &Private) -> Result<u64, QueueError> {
        let dependency = self.dependency(spec)?;
        let words = batch::words(spec, dependency.as_deref());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let script = batch::script(spec, private);
        let said =
            homing_scheduler::command("submitting the job", &words, &script, Some(&private.env)).map_err(failed)?;
        // `12` or `12;cluster`.
        let id = said.trim().lines().last().and_then(|l| l.split(';').next()?.parse().ok());
        id.ok_or_else(|| QueueError::Program(format!("sbatch printed no job ID, but {said:?}")))
    }

    fn jobs(&self) -> Result<Vec<Job>, QueueError> {
        let text = order("reading the jobs from Slurm", &["scontrol", "show", "job", "--oneliner"])?;
        Ok(show::jobs(&text))
    }

    fn job(&self, id: u64) -> Result<Job, QueueError> {
        let text = match order("reading a job from Slurm", &["scontrol", "show", "job", "--oneliner", &id.to_string()])
        {
            Err(QueueError::Program(said)) if said.contains("Invalid job id") => {
                return Err(QueueError::NotFound(id.to_string()));
            }
            other => other?,
        };
        show::jobs(&text).into_iter().find(|j| j.id == id).ok_or_else(|| QueueError::NotFound(id.to_string()))
    }

    fn kill(&self, job: &Job, index: Option<u32>, signal: Option<i32>) -> Result<(), QueueError> {
        let id = name(job, index);
        match signal {
            // To batch script and steps alike.
            Some(signal) => order("signalling the job", &["scancel", &format!("--signal={signal}"), "--full", &id]),
            None => order("cancelling the job", &["scancel", &id]),
        }
        .map(drop)
    }

    /// Sends signals: Slurm's own suspension is for its operators, but any user may signal the processes of their jobs.
    fn stop(&self, job: &Job, index: Option<u32>, stop: bool) -> Result<(), QueueError> {
        let waits = meant(job, index).any(|p| matches!(p.state, ElementState::Pend | ElementState::Psusp));
        let runs = meant(job, index).any(|p| p.state.is_running());
        let id = name(job, index);
        if waits {
            order("holding the job", &["scontrol", if stop { "hold" } else { "release" }, &id])?;
        }
        if runs {
            let signal = if stop { "--signal=STOP" } else { "--signal=CONT" };
            order("stopping the job", &["scancel", signal, "--full", "--state=running", &id])?;
        }
        Ok(())
    }

    /// Slurm ends a running job before it requeues it.
    fn again(&self, job: &Job, index: Option<u32>, ended: bool) -> Result<usize, QueueError> {
        let is_meant =
            |state: ElementState| state == ElementState::Lost || ended && (state.is_over() || state.is_running());
        let back: Vec<u32> = meant(job, index).filter(|p| is_meant(p.state)).map(|p| p.index).collect();
        for index in &back {
            order("requeueing the job", &["scontrol", "requeue", &name(job, Some(*index))])?;
        }
        Ok(back.len())
    }

    fn amend(&self, _: &Job, _: &Amend) -> Result<(), QueueError> {
        let why = "homing does not change jobs of Slurm; use scontrol update jobid=ID, with partition=, name=, \
            timelimit=, nice=";
        Err(QueueError::Request(why.into()))
    }

    fn control(&self, _: Target, _: &[String], _shut: bool, _why: Option<String>) -> Result<(), QueueError> {
        let why = "homing does not close partitions and nodes of Slurm; use scontrol update PartitionName=NAME \
            State=DRAIN (takes no jobs), State=INACTIVE (starts none), State=UP; scontrol update NodeName=NAME \
            State=DRAIN Reason=WHY, State=RESUME";
        Err(QueueError::Request(why.into()))
    }

    fn reasons(&self, jobs: &[Job]) -> Result<HashMap<(u64, u32), Block>, QueueError> {
        let mut found = HashMap::new();
        let licenses = LazyCell::new(|| ask::licenses().unwrap_or_default());
        for job in jobs {
            let mut waiting = job.parts.iter().filter(|p| !p.state.is_over() && !p.state.is_running()).peekable();
            if waiting.peek().is_none() {
                continue;
            }
            let id = job.id.to_string();
            let text = order("reading a job from Slurm", &["scontrol", "show", "job", "--oneliner", &id])?;
            found.extend(
                waiting.filter_map(|p| Some(((job.id, p.index), show::block(&text, p.index, || licenses.clone())?))),
            );
        }
        Ok(found)
    }

    fn pace(&self) -> Duration {
        Duration::from_secs(1)
    }
}
