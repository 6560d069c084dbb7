//! The jobs of the queue as rows, those of this machine or of Slurm.

use crate::cmd::queue::EngineArgs;
use homing_model::live::WaitGroup;
use homing_model::{Failure, TaskId};
use homing_queue::{Engine, Job, JobElement};
use homing_report::TaskState;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The interval between two queries. Slurm's controller answers for all jobs.
const LOOK: Duration = Duration::from_secs(2);
/// The factor of the job's number in the id of a row. The index of the element is added to it.
const PARTS: u64 = 10_000_000;

/// The jobs at one moment.
#[derive(Clone, Debug, Default)]
pub struct Jobs {
    /// Running jobs.
    pub tasks: Vec<TaskState>,
    /// The reasons why other jobs wait.
    pub waits: Vec<WaitGroup>,
    /// Why no job is known.
    pub why: Option<String>,
}

/// Begins to query the jobs in a thread, so that an engine that hangs does not block the screen.
pub fn look(args: EngineArgs) -> std::io::Result<Receiver<Jobs>> {
    let (tell, heard) = channel();
    homing_os::threads::begin(move || {
        while tell.send(now(&args)).is_ok() {
            std::thread::sleep(LOOK);
        }
    })?;
    Ok(heard)
}

/// Returns the jobs of now.
pub fn now(args: &EngineArgs) -> Jobs {
    query_jobs(args).unwrap_or_else(|failure| Jobs { why: Some(failure.message), ..Jobs::default() })
}

fn query_jobs(args: &EngineArgs) -> Result<Jobs, Failure> {
    let engine = args.open()?;
    let jobs = engine.jobs()?;
    let open: Vec<Job> = jobs.into_iter().filter(|job| !job.is_over(None)).collect();
    let reasons = engine.reasons(&open)?;
    let mut waits: BTreeMap<String, u64> = BTreeMap::new();
    reasons.values().for_each(|why| *waits.entry(why.to_string()).or_default() += 1);
    let mut waits: Vec<WaitGroup> = waits.into_iter().map(|(why, tasks)| WaitGroup { why, tasks }).collect();
    waits.sort_by_key(|waits| std::cmp::Reverse(waits.tasks));
    let now_ns = homing_os::clock::system_ns();
    let running = open.iter().flat_map(|job| job.parts.iter().map(move |part| (job, part)));
    let running = running.filter(|(_, part)| part.state.is_running());
    Ok(Jobs { tasks: running.map(|(job, part)| row(job, part, now_ns)).collect(), waits, why: None })
}

fn row(job: &Job, part: &JobElement, now_ns: i64) -> TaskState {
    let command = job.spec.command.display();
    let age = part.start.as_ref().map_or(0, |start| now_ns.saturating_sub(start.at_ns).max(0));
    let what = if job.spec.name.is_empty() || job.spec.name == command {
        command
    } else {
        format!("{}: {command}", job.spec.name)
    };
    TaskState {
        id: job.id * PARTS + u64::from(part.index),
        name: job.name_of(part),
        host: part.start.as_ref().map_or(String::new(), |start| start.host.clone()),
        slot: 0,
        age: Duration::from_nanos(age as u64),
        moved: None,
        command: format!("{} {what}", job.spec.user),
    }
}

/// Returns the job of a row, and the index of its element.
fn job(engine: &dyn Engine, row: TaskId) -> Result<(Job, Option<u32>), Failure> {
    let (id, index) = (row / PARTS, (row % PARTS) as u32);
    crate::cmd::queue::find_own(engine, &homing_queue::array::name(id, (index > 0).then_some(index)))
}

/// Ends the job of a row.
pub fn end(args: &EngineArgs, row: TaskId) -> Result<(), Failure> {
    let engine = args.open()?;
    let (job, index) = job(engine.as_ref(), row)?;
    Ok(engine.kill(&job, index, None)?)
}

/// Returns the end of the output of the job of a row, at most `most` bytes of each file.
pub fn output(args: &EngineArgs, row: TaskId, most: usize) -> Result<String, Failure> {
    let engine = args.open()?;
    let (job, index) = job(engine.as_ref(), row)?;
    let Some(part) = job.meant(index).next() else { return Ok(String::new()) };
    let mut all = Vec::new();
    for path in job.outputs(part) {
        // The file does not exist yet, or is on another machine.
        let Ok(mut file) = File::open(&path) else { continue };
        let begin = file.metadata().map_or(0, |meta| meta.len().saturating_sub(most as u64));
        let read = file.seek(SeekFrom::Start(begin)).and_then(|_| file.take(most as u64).read_to_end(&mut all));
        read.map_err(|e| Failure::system(format!("cannot read {}: {e}", path.display())))?;
    }
    Ok(String::from_utf8_lossy(&all).into_owned())
}
