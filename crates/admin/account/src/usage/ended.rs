//! Ended jobs as LSF shows them, with the resources that they took.

use crate::usage::{books, use_of, use_of_booked};
use homing_lsf::account::JobAccounting;
use homing_lsf::jobs::JobReport as Row;
use homing_lsf::rows;
use homing_queue::{Engine, Job, QueueError};
use homing_report::JobUse;
use homing_scheduler::slurm::Booked;
use std::collections::{BTreeMap, HashMap};

/// The period for which Slurm's accounting is queried, ns: a week, as this machine's queue keeps jobs.
const WEEK_NS: i64 = 7 * 24 * 3600 * 1_000_000_000;

/// Returns jobs with the resources that they took: from Slurm's accounting if it keeps any, or else from the queue.
pub fn ended_jobs(engine: &dyn Engine, of_others: bool) -> Result<Vec<(Row, JobAccounting)>, QueueError> {
    let jobs = if of_others { engine.jobs() } else { engine.own_jobs() };
    match books(engine, of_others, homing_os::clock::system_ns() - WEEK_NS) {
        Some(books) => Ok(of_books(&books, &jobs.unwrap_or_default())),
        None => Ok(of_queue(&jobs?, engine.name() != "slurm")),
    }
}

/// Returns the jobs of a queue. `measured`: the queue itself measured the resources; slurmctld does not.
fn of_queue(jobs: &[Job], measured: bool) -> Vec<(Row, JobAccounting)> {
    let parts = jobs.iter().flat_map(|job| job.parts.iter().map(move |part| (job, part)));
    let told = parts.map(|(job, part)| {
        let row = rows::row(job, part);
        let ended = ended(&row, use_of(job, part, &BTreeMap::new()));
        (row, JobAccounting { cpu_us: ended.cpu_us.filter(|_| measured), ..ended })
    });
    told.collect()
}

/// Returns the jobs of Slurm's accounting. A job that slurmctld still has comes with the more detailed row.
fn of_books(books: &[Booked], remembered: &[Job]) -> Vec<(Row, JobAccounting)> {
    let parts = remembered.iter().flat_map(|job| job.parts.iter().map(move |part| rows::row(job, part)));
    let mut remembered: HashMap<(u64, Option<u32>), Row> = parts.map(|row| ((row.id, row.index), row)).collect();
    let told = books.iter().map(|job| {
        let row = rows::booked(job);
        let row = remembered.remove(&(row.id, row.index)).filter(Row::is_over).unwrap_or(row);
        let ended = ended(&row, use_of_booked(job, &BTreeMap::new()));
        (row, ended)
    });
    told.collect()
}

fn ended(row: &Row, took: Option<JobUse>) -> JobAccounting {
    JobAccounting {
        done: row.stat == "DONE",
        cpu_us: took.map(|took| took.cpu_us),
        wait_us: took.and_then(|took| took.queued_us),
        turnaround_us: took.and_then(|took| took.turnaround_us),
    }
}
