//! The interface of an engine for the queue verbs and the LSF front end: the embedded queue of one machine, or Slurm.

use crate::control::{ControlOrder, Target};
use crate::plan::{Block, Config};
use crate::{Amend, Job, JobSpec, Private, QueueError, array, depend};
use std::collections::HashMap;
use std::time::Duration;

/// A machine of the queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Its slots, if their number is known here.
    pub slots: Option<u32>,
    /// Whether it takes jobs: it is not down, drained or closed.
    pub open: bool,
    /// The engine's own word for its state.
    pub state: String,
    /// The order that closes it.
    pub closed: Option<ControlOrder>,
}

/// Keeps jobs and runs them. Every call queries the engine again; only facts that cannot change any more are cached.
pub trait Engine {
    /// Returns `homing` or `slurm`.
    fn name(&self) -> &'static str;

    /// Returns queues with their limits, and slots.
    fn config(&self) -> Result<Config, QueueError>;

    /// Returns the machines of the engine.
    fn machines(&self) -> Result<Vec<Machine>, QueueError>;

    /// Reduces the hosts near which a job should run to a request that the engine can express. Returns a note for the
    /// user.
    fn fit(&self, spec: &mut JobSpec) -> Result<Option<String>, QueueError> {
        spec.near.clear();
        Ok(None)
    }

    /// Submits a job; returns its number. The job is kept from then on, even if the caller is killed.
    fn submit(&self, spec: &JobSpec, private: &Private) -> Result<u64, QueueError>;

    /// Returns all known jobs, of all users, by number. Ended ones are known for a while.
    fn jobs(&self) -> Result<Vec<Job>, QueueError>;

    /// Returns the jobs of this user alone, so that a user does not pay for the jobs of others.
    fn own_jobs(&self) -> Result<Vec<Job>, QueueError> {
        let own = crate::uid();
        Ok(self.jobs()?.into_iter().filter(|j| j.uid == own).collect())
    }

    /// Returns one job; [`QueueError::NotFound`] if no job has that number.
    fn job(&self, id: u64) -> Result<Job, QueueError>;

    /// Ends a job or one element of it, or sends `signal` instead if given. An element that has ended is left
    /// unchanged, which is no error.
    fn kill(&self, job: &Job, index: Option<u32>, signal: Option<i32>) -> Result<(), QueueError>;

    /// Suspends a job or one element, or holds it back before its start; `false` resumes it.
    fn stop(&self, job: &Job, index: Option<u32>, stop: bool) -> Result<(), QueueError>;

    /// Puts interrupted elements ([`crate::ElementState::Lost`]) back into the queue under their own number, and with
    /// `ended` also ended ones. Returns how many elements.
    fn again(&self, job: &Job, index: Option<u32>, ended: bool) -> Result<usize, QueueError>;

    /// Changes a job of which nothing has started.
    fn amend(&self, job: &Job, changes: &Amend) -> Result<(), QueueError>;

    /// Closes queues or hosts for jobs (`shut`), or opens them again. Only administrators may.
    fn control(&self, target: Target, names: &[String], shut: bool, why: Option<String>) -> Result<(), QueueError>;

    /// Returns why each waiting element of these jobs waits, by job and index, as far as the engine knows.
    fn reasons(&self, jobs: &[Job]) -> Result<HashMap<(u64, u32), Block>, QueueError>;

    /// Returns the pause between two looks while waiting.
    fn pace(&self) -> Duration;

    /// Ensures that a process serves the queue; called now and then while waiting.
    fn tend(&self) -> Result<(), QueueError> {
        Ok(())
    }
}

/// Returns a condition with the jobs that fit each `name*` of it, or the first job of it that does not exist. A job
/// would wait for that one for ever.
pub fn condition(text: &str, engine: &dyn Engine) -> Result<Result<String, String>, QueueError> {
    let own = engine.own_jobs()?;
    let fitting = |pattern: &str| {
        let fits = |job: &&Job| crate::pattern_fits(pattern, &job.spec.name);
        own.iter().filter(fits).map(|job| job.id).collect()
    };
    let is_there = |named: &String| match array::job_id(named) {
        Some((id, _)) => engine.job(id).is_ok(),
        None => own.iter().any(|job| job.spec.name == *named),
    };
    Ok(depend::expanded(text, &fitting).and_then(|text| {
        match depend::jobs(&text).into_iter().find(|named| !is_there(named)) {
            Some(missing) => Err(missing),
            None => Ok(text),
        }
    }))
}
