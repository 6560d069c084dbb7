//! The resources that jobs of the queue used: of this machine's queue, or of Slurm by its accounting, or without that
//! by slurmctld. A batch is left out, because the journal of its run has its tasks.

use crate::usage::UsageLine;
use homing_model::{Command, NodeSet};
use homing_queue::{Engine, Job, JobElement, Machine, QueueError};
use homing_report::{JobUse, UsageKey, Used, program};
use homing_scheduler::slurm::Booked;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Nanoseconds in a second, the unit of Slurm's accounting.
const SECOND_NS: i64 = 1_000_000_000;

/// The choice of jobs.
pub struct JobFilter<'a> {
    /// Whether jobs of all users are wanted.
    pub all: bool,
    /// The earliest end, ns since the epoch.
    pub since_ns: i64,
    /// Runs that are counted by their journals.
    pub runs: &'a BTreeSet<String>,
}

/// Returns a line for each job, or element of an array, that has ended.
pub fn lines(engine: &dyn Engine, wanted: &JobFilter) -> Result<Vec<UsageLine>, QueueError> {
    let slots = slots(&engine.machines().unwrap_or_default());
    if let Some(books) = books(engine, wanted.all, wanted.since_ns) {
        let ours = books.iter().filter(|job| !is_counted_as_run(&job.name, wanted.runs));
        return Ok(ours.filter_map(|job| of_books(job, &slots)).collect());
    }
    let jobs = if wanted.all { engine.jobs() } else { engine.own_jobs() }?;
    let slurm = engine.name() == "slurm";
    let parts = jobs
        .iter()
        .filter(|job| !is_elsewhere(job, wanted.runs))
        .flat_map(|job| job.parts.iter().map(move |p| (job, p)));
    let lines = parts.filter_map(|(job, part)| of_queue(job, part, &slots, slurm));
    Ok(lines.filter(|line| line.used.last_ns >= wanted.since_ns).collect())
}

/// Returns the jobs in Slurm's accounting, of this user or of `all`, that ended at `since_ns` or later, ns since the
/// epoch. None if Slurm keeps no accounting, or if the engine is another.
pub fn books(engine: &dyn Engine, all: bool, since_ns: i64) -> Option<Vec<Booked>> {
    if engine.name() != "slurm" {
        return None;
    }
    let mut books = homing_scheduler::slurm::ask::books(age(since_ns), all).ok()?;
    // sacct shows root the jobs of all users in any case.
    let own = homing_queue::user_name(homing_queue::uid());
    books.retain(|job| (all || job.user == own) && job.end_s.saturating_mul(SECOND_NS) >= since_ns);
    Some(books)
}

fn slots(machines: &[Machine]) -> BTreeMap<String, u32> {
    machines.iter().filter_map(|machine| Some((machine.name.clone(), machine.slots?))).collect()
}

fn age(since_ns: i64) -> Duration {
    Duration::from_nanos(homing_os::clock::system_ns().saturating_sub(since_ns.max(0)).max(0) as u64)
}

/// Whether a job of Slurm, by its name, held a run's workers or is a batch, which has the program's name.
fn is_counted_as_run(name: &str, runs: &BTreeSet<String>) -> bool {
    name == "homing" || name.strip_prefix("homing-").is_some_and(|run| runs.contains(run))
}

/// Whether it is counted elsewhere: a batch, a Slurm job for workers, or the share of a job that its own machine
/// counts.
fn is_elsewhere(job: &Job, runs: &BTreeSet<String>) -> bool {
    let batch = match &job.spec.command {
        Command::Argv(words) => {
            let is_homing = words.first().is_some_and(|word| word.as_path().file_name() == Some("homing".as_ref()));
            is_homing && words.get(1).is_some_and(|word| word.0 == b"run")
        }
        Command::Shell(_) => false,
    };
    batch || job.spec.gated || is_counted_as_run(&job.spec.name, runs)
}

fn of_queue(job: &Job, part: &JobElement, slots: &BTreeMap<String, u32>, slurm: bool) -> Option<UsageLine> {
    let used = use_of(job, part, slots)?;
    // A job that another machine has sent here has its name there, so that it counts once.
    let (from, id, index) = match &job.spec.origin {
        Some(origin) => (&job.spec.from, origin.id, origin.index),
        None => (&job.spec.from, job.id, part.index),
    };
    let number = homing_queue::array::name(id, (index > 0).then_some(index));
    let run = if slurm { format!("slurm {number}") } else { format!("job {from} {number}") };
    let key = UsageKey {
        run,
        host: part.start.as_ref()?.host.clone(),
        command: program(&job.spec.command.display()),
        project: job.spec.project.clone().unwrap_or_default(),
    };
    Some(UsageLine { user: job.spec.user.clone(), key, used: Used::from(used) })
}

/// Returns the resources of an element of a job that ran and has ended, by the slots of hosts if they are known.
pub fn use_of(job: &Job, part: &JobElement, slots: &BTreeMap<String, u32>) -> Option<JobUse> {
    let (start, end) = (part.start.as_ref()?, part.end.as_ref()?);
    let between_us = |from_ns: i64, to_ns: i64| to_ns.saturating_sub(from_ns).max(0) as u64 / 1000;
    Some(JobUse {
        failed: end.exit != 0,
        wall_us: between_us(start.at_ns, end.at_ns),
        slots: job.spec.slots.max(1),
        of_slots: slots.get(&start.host).copied().unwrap_or(0),
        cpu_us: end.cpu_ms.saturating_mul(1000),
        memory: Some(end.max_rss_kib.saturating_mul(1024)).filter(|bytes| *bytes > 0),
        memory_asked: job.spec.memory_bytes,
        queued_us: Some(between_us(job.spec.submit_ns, start.at_ns)),
        turnaround_us: Some(between_us(job.spec.submit_ns, end.at_ns)),
        end_ns: end.at_ns,
    })
}

fn of_books(job: &Booked, slots: &BTreeMap<String, u32>) -> Option<UsageLine> {
    let key = UsageKey {
        run: format!("slurm {}", job.id),
        host: job.nodes.clone(),
        command: program(&job.name),
        project: job.account.clone(),
    };
    Some(UsageLine { user: job.user.clone(), key, used: Used::from(use_of_booked(job, slots)?) })
}

/// Returns the same as [`use_of`], by Slurm's accounting.
pub fn use_of_booked(job: &Booked, slots: &BTreeMap<String, u32>) -> Option<JobUse> {
    let second_us = |seconds: i64| seconds.max(0).saturating_mul(1_000_000) as u64;
    let nodes = NodeSet::parse(&job.nodes);
    let nodes = nodes.iter().flat_map(NodeSet::iter);
    Some(JobUse {
        failed: !job.done,
        wall_us: job.elapsed_s.saturating_mul(1_000_000),
        slots: job.cpus,
        // On several hosts it had a part of all of them together; the host with the most slots is the measure.
        of_slots: nodes.filter_map(|node| slots.get(node)).max().copied().unwrap_or(0),
        cpu_us: job.cpu_us,
        memory: job.memory,
        memory_asked: job.memory_asked,
        queued_us: Some(second_us(job.start_s?.saturating_sub(job.submit_s))),
        turnaround_us: Some(second_us(job.end_s.saturating_sub(job.submit_s))),
        end_ns: job.end_s.saturating_mul(SECOND_NS),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_has_in_its_journal_is_no_job_besides() {
        let runs = BTreeSet::from(["20261124-101010-abc".to_string()]);
        assert!(is_counted_as_run("homing-20261124-101010-abc", &runs) && is_counted_as_run("homing", &runs));
        assert!(!is_counted_as_run("homing-20261124-101010-abd", &runs) && !is_counted_as_run("sort", &runs));
    }

    #[test]
    fn books_are_counted_by_the_slots_of_their_nodes() {
        let job = Booked {
            id: "7".into(),
            cpus: 2,
            elapsed_s: 10,
            nodes: "n[1-2]".into(),
            end_s: 99,
            submit_s: 80,
            start_s: Some(89),
            ..Booked::default()
        };
        let line = of_books(&job, &BTreeMap::from([("n1".to_string(), 4), ("n2".to_string(), 4)])).unwrap();
        assert_eq!((line.used.slot_us, line.used.host_us), (20_000_000, 5_000_000));
        assert_eq!(
            (line.used.queued_us, line.used.last_ns, line.key.run.as_str()),
            (Some(9_000_000), 99 * SECOND_NS, "slurm 7")
        );
        assert_eq!(line.used.turnaround_us, Some(19_000_000));
        let never = Booked { start_s: None, ..job };
        assert!(of_books(&never, &BTreeMap::new()).is_none(), "what was cancelled while it waited has used nothing");
    }
}
