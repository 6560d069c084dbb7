//! What the queue verbs and the LSF front end ask of an engine: the embedded
//! queue of one machine, or Slurm.

use crate::control::{Order, Target};
use crate::plan::{Block, Config};
use crate::{Amend, Job, JobSpec, Private, QueueError, array, depend};
use std::collections::HashMap;
use std::time::Duration;

/// A machine of the queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Slots that it has, where that is known here.
    pub slots: Option<u32>,
    /// Takes jobs. Not so: down, drained, closed.
    pub open: bool,
    /// The engine's own word for its state.
    pub state: String,
    /// The order by which it starts no jobs.
    pub closed: Option<Order>,
}

/// Keeps jobs and runs them. Every call asks anew; nothing is cached beyond
/// what cannot change any more.
pub trait Engine {
    /// `homing` or `slurm`.
    fn name(&self) -> &'static str;

    /// Queues with their limits, and slots.
    fn config(&self) -> Result<Config, QueueError>;

    /// The machines that it has.
    fn machines(&self) -> Result<Vec<Machine>, QueueError>;

    /// Fits the hosts near which a job should run to what the engine can
    /// express; returns what the user should know about it.
    fn fit(&self, spec: &mut JobSpec) -> Result<Option<String>, QueueError> {
        spec.near.clear();
        Ok(None)
    }

    /// Submits; returns the job's number. The job is kept from then on, whatever happens to the caller.
    fn submit(&self, spec: &JobSpec, private: &Private) -> Result<u64, QueueError>;

    /// All jobs that are known, of all users, by number. Ended ones are known for a while.
    fn jobs(&self) -> Result<Vec<Job>, QueueError>;

    /// Those of this user alone: nobody pays for what others have.
    fn own_jobs(&self) -> Result<Vec<Job>, QueueError> {
        let own = crate::uid();
        Ok(self.jobs()?.into_iter().filter(|j| j.uid == own).collect())
    }

    /// One job; [`QueueError::NotFound`] when there is none of that number.
    fn job(&self, id: u64) -> Result<Job, QueueError>;

    /// Ends a job or one element of it; sends `signal` instead when there is one.
    /// Of what has ended already nothing is changed, and that is no error.
    fn kill(&self, job: &Job, index: Option<u32>, signal: Option<i32>) -> Result<(), QueueError>;

    /// Makes a job or one element stand still, or holds it back before its start; `false` lets it go on.
    fn stop(&self, job: &Job, index: Option<u32>, stop: bool) -> Result<(), QueueError>;

    /// Puts what was interrupted ([`crate::State::Lost`]) back into the queue under its own number, and where `ended`
    /// says so what has ended; returns how many elements.
    fn again(&self, job: &Job, index: Option<u32>, ended: bool) -> Result<usize, QueueError>;

    /// Changes a job of which nothing has started.
    fn amend(&self, _: &Job, _: &Amend) -> Result<(), QueueError> {
        let why = "Slurm changes its jobs itself: scontrol update jobid=ID, with partition=, name=, timelimit=, nice=";
        Err(QueueError::Request(why.into()))
    }

    /// Says of queues or hosts that they take or start no jobs (`shut`), or do again; only who may.
    fn control(&self, _: Target, _: &[String], _shut: bool, _why: Option<String>) -> Result<(), QueueError> {
        let why = "Slurm closes what is its own: scontrol update PartitionName=NAME State=DRAIN (takes no jobs), \
                   State=INACTIVE (starts none), State=UP; scontrol update NodeName=NAME State=DRAIN Reason=WHY, \
                   State=RESUME";
        Err(QueueError::Request(why.into()))
    }

    /// Why each element of these that waits does so, as far as the engine knows, by job and index.
    fn reasons(&self, jobs: &[Job]) -> Result<HashMap<(u64, u32), Block>, QueueError>;

    /// How often it makes sense to look while waiting.
    fn pace(&self) -> Duration;

    /// Called now and then while waiting: sees to it that somebody serves the queue.
    fn tend(&self) -> Result<(), QueueError> {
        Ok(())
    }
}

/// A job that a condition names and that is not there: it would be waited for for ever.
pub fn missing(condition: &str, engine: &dyn Engine) -> Result<Option<String>, QueueError> {
    let own = engine.own_jobs()?;
    let is_there = |named: &String| match array::job_id(named) {
        Some((id, _)) => engine.job(id).is_ok(),
        None => own.iter().any(|job| job.spec.name == *named),
    };
    Ok(depend::jobs(condition).into_iter().find(|named| !is_there(named)))
}
