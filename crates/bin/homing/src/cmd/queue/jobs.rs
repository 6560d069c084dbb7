//! `homing jobs`: lists submitted jobs and their states.

use super::detail;
use homing_model::text::aligned;
use homing_model::{Failure, RawText, document};
use homing_queue::{ElementState, Job, JobElement};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Arguments of `homing jobs`.
#[derive(clap::Args)]
pub struct Args {
    /// Also list jobs that ended within the last week
    #[arg(short, long)]
    all: bool,
    /// List the jobs of all users
    #[arg(short = 'u', long)]
    users: bool,
    /// Show why each job waits, or why it failed if that is known
    #[arg(long)]
    why: bool,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
    /// Show only these, ended or not; one job or element with all its details
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    engine: super::EngineArgs,
}

/// Lists jobs.
pub fn run(args: Args) -> Result<i32, Failure> {
    let engine = args.engine.open()?;
    let mut rows: Vec<(&Job, &JobElement)> = Vec::new();
    let named: Result<Vec<_>, Failure> = args.ids.iter().map(|text| super::find(engine.as_ref(), text)).collect();
    let named = named?;
    rows.extend(named.iter().flat_map(|(job, index)| job.meant(*index).map(move |p| (job, p))));
    let jobs = match (args.ids.is_empty(), args.users) {
        (false, _) => Ok(Vec::new()),
        (true, true) => engine.jobs(),
        (true, false) => engine.own_jobs(),
    };
    let jobs = jobs?;
    let shown = |p: &JobElement| args.all || !p.state.is_over() || p.state == ElementState::Lost;
    let workers = workers(args.engine.is_slurm());
    let shown = |j: &Job, p: &JobElement| shown(p) && !(p.state.is_over() && workers.contains(&j.spec.name));
    rows.extend(jobs.iter().flat_map(|j| j.parts.iter().filter(|p| shown(j, p)).map(move |p| (j, p))));
    let of_ids = || named.iter().map(|(job, _)| job.clone()).collect();
    let full = !named.is_empty() && named.iter().all(|(job, index)| job.meant(*index).count() == 1);
    let asked: Vec<Job> = match args.why || full {
        false => Vec::new(),
        true if named.is_empty() => jobs.clone(),
        true => of_ids(),
    };
    let reasons = engine.reasons(&asked)?;
    let reason = |(job, part): &(&Job, &JobElement)| reasons.get(&(job.id, part.index)).map(ToString::to_string);
    let why: Vec<Option<String>> = rows.iter().map(reason).collect();
    if args.json {
        let rows = rows.iter().zip(why).map(|((j, p), why)| as_json(j, p, why));
        return crate::cmd::runs::to_stdout(&document::array(rows));
    }
    let text = match full {
        true => rows.iter().zip(&why).map(|((j, p), why)| detail::text(j, p, why.as_deref())).collect(),
        false => {
            table(&rows, &why, args.why) + &named.iter().filter_map(|(job, index)| sum(job, *index)).collect::<String>()
        }
    };
    let code = crate::cmd::runs::to_stdout(&text)?;
    let lost: Vec<String> =
        rows.iter().filter(|(_, p)| p.state == ElementState::Lost).map(|(j, p)| j.name_of(p)).collect();
    if !lost.is_empty() {
        eprintln!(
            "homing: interrupted by a restart or a kill; to run them again: homing sub --again {}",
            lost.join(" ")
        );
    }
    Ok(code)
}

/// Returns the names of the Slurm jobs that held workers of this user's runs. They are no jobs of a person once they
/// are over: a worker that was not needed has been cancelled, and looks like a failure. `homing usage` counts them as
/// runs.
fn workers(is_slurm: bool) -> BTreeSet<String> {
    let runs = if is_slurm { homing_journal::names(&homing_journal::root()) } else { Vec::new() };
    runs.iter().map(|run| homing_scheduler::job_name(run)).collect()
}

/// Returns the number of elements of an array in each state.
fn sum(job: &Job, index: Option<u32>) -> Option<String> {
    let mut states: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
    job.meant(index).for_each(|part| *states.entry(part.state.word()).or_default() += 1);
    let all = job.meant(index).count();
    let each: Vec<String> = states.iter().map(|(state, count)| format!("{count} {state}")).collect();
    (all > 1).then(|| format!("job {}: {all} elements, {}\n", job.id, each.join(", ")))
}

fn table(rows: &[(&Job, &JobElement)], why: &[Option<String>], reasons: bool) -> String {
    let mut cells = vec![["ID", "USER", "STATE", "QUEUE", "SLOTS", "SUBMITTED", "COMMAND"].map(String::from)];
    for ((job, part), why) in rows.iter().zip(why) {
        let state = match (&part.end, part.state) {
            (Some(end), ElementState::Exit) => {
                let reason = end.reason.as_ref().filter(|_| reasons);
                format!("EXIT {}{}", end.exit, reason.map_or(String::new(), |reason| format!(": {reason}")))
            }
            (_, state) => why.as_ref().map_or(state.word().into(), |why| format!("{}: {why}", state.word())),
        };
        let s = &job.spec;
        let command = match s.name.is_empty() {
            true => s.command.display(),
            false => format!("{}: {}", s.name, s.command.display()),
        };
        cells.push([
            job.name_of(part),
            s.user.clone(),
            state,
            s.queue.clone(),
            s.slots.to_string(),
            crate::cmd::runs::local_time(s.submit_ns),
            crate::cmd::runs::clip(&command, 60),
        ]);
    }
    aligned(&cells, 0..0)
}

fn as_json(job: &Job, part: &JobElement, why: Option<String>) -> Value {
    let s = &job.spec;
    json!({
        "id": job.id, "index": part.index, "user": s.user, "state": part.state, "queue": s.queue, "slots": s.slots,
        "name": s.name, "command": s.command, "cwd": s.cwd, "after": s.after, "submit_ns": s.submit_ns,
        "host": part.start.as_ref().map(|p| &p.host), "start_ns": part.start.as_ref().map(|p| p.at_ns),
        "end_ns": part.end.as_ref().map(|e| e.at_ns), "exit": part.end.as_ref().map(|e| e.exit),
        "from": s.from, "limit_s": s.limit_s, "memory_bytes": s.memory_bytes,
        "cpu_ms": part.end.as_ref().map(|e| e.cpu_ms), "max_rss_kib": part.end.as_ref().map(|e| e.max_rss_kib),
        "outputs": if s.cwd.0.is_empty() { Vec::new() } else { job.outputs(part).iter().map(|p| RawText::from(p.as_path())).collect() },
        "ranks": super::detail::ranks(job), "received": part.end.as_ref().map(|e| &e.received),
        "why": why, "reason": part.end.as_ref().and_then(|e| e.reason.as_ref()),
    })
}
