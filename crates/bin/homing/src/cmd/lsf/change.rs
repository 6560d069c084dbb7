//! `bmod`, `bswitch`, `btop`, `bbot`: change jobs that wait.

use super::{NOT_MODIFIED, Refusal, lsf_refusal, options, print};
use homing_lsf::bsub::{BsubRequest, request};
use homing_lsf::choose::{self, JobSelector};
use homing_lsf::grammar::{BMOD, BSWITCH, BTOP};
use homing_lsf::options::{Parsed, text};
use homing_lsf::units;
use homing_model::RawText;
use homing_queue::plan::Config;
use homing_queue::{Amend, Engine, Job, QueueError};

/// Changes the options of submitted jobs.
pub fn bmod(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("bmod", &BMOD, words)? else { return Ok(0) };
    let asked = request(&parsed).map_err(|why| lsf_refusal(why).closing(NOT_MODIFIED))?;
    let engine = super::engine()?;
    let config = engine.config()?;
    each("bmod", engine.as_ref(), &parsed.operands, |job| {
        let change = modified(&parsed, &asked, engine.as_ref(), &config, job)?;
        engine.amend(job, &change)?;
        Ok(format!("Parameters of job <{}> are being changed\n", job.id))
    })
}

/// Returns the new options of a job.
fn modified(
    parsed: &Parsed,
    asked: &BsubRequest,
    engine: &dyn Engine,
    config: &Config,
    job: &Job,
) -> Result<Amend, Refusal> {
    let mut change = Amend::of(&job.spec);
    if let Some(why) = ignored(asked) {
        return Err(lsf_refusal(why).closing(NOT_MODIFIED));
    }
    if let Some(queue) = asked.queues.first() {
        change.into_queue(config, queue, homing_queue::uid()).map_err(lsf_refusal)?;
    }
    if let Some(slots) = asked.slots {
        let most = config.slots_of(&job.spec.host).filter(|most| slots > *most);
        if let Some(most) = most {
            let why = format!("{slots} slots requested, its host has {most}");
            return Err(lsf_refusal(why).closing(NOT_MODIFIED));
        }
        change.slots = slots;
    }
    let meant = units::meant(asked, super::config::unit()?);
    if !meant.require.is_empty() {
        let host = job.spec.host.as_deref();
        let acts = super::load::known_names(&asked.require);
        acts.and_then(|()| super::bsub::can_be_met(&meant.require, engine, host))
            .map_err(|refusal| refusal.closing(NOT_MODIFIED))?;
        change.require = meant.require;
    }
    change.memory_bytes = meant.memory_mib.map(units::bytes).or(change.memory_bytes).filter(|_| !parsed.has("Mn"));
    change.limit_s = asked.limit_s.or(change.limit_s).filter(|_| !parsed.has("Wn"));
    let after = super::bsub::condition(asked, engine).map_err(|refusal| refusal.closing(NOT_MODIFIED))?;
    change.after = after.or(change.after).filter(|_| !parsed.has("wn"));
    if parsed.has("Rn") {
        change.require.clear();
    }
    if let Some(name) = &asked.name {
        homing_queue::array::check_name(name).map_err(lsf_refusal)?;
    }
    change.name = asked.name.clone().unwrap_or(change.name);
    Ok(change)
}

/// Returns why an option of bsub is refused: bmod would not carry it out.
fn ignored(asked: &BsubRequest) -> Option<String> {
    match asked {
        _ if asked.queues.len() > 1 => Some("-q: a submitted job moves to one queue".into()),
        _ if asked.slots != asked.most_slots => Some("-n: a submitted job has one number of slots".into()),
        _ => asked.require.span.as_ref().map(|span| {
            format!("span[{span}]: the hosts of a job are chosen at its submission; bkill it and bsub it again")
        }),
    }
}

/// Moves jobs to another queue.
pub fn bswitch(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("bswitch", &BSWITCH, words)? else { return Ok(0) };
    let Some((queue, jobs)) = parsed.operands.split_first() else {
        return Err(lsf_refusal("bswitch: Queue name must be specified"));
    };
    let (queue, engine) = (text(queue), super::engine()?);
    let config = engine.config()?;
    each("bswitch", engine.as_ref(), jobs, |job| {
        let mut change = Amend::of(&job.spec);
        change.into_queue(&config, &queue, homing_queue::uid()).map_err(lsf_refusal)?;
        engine.amend(job, &change)?;
        Ok(format!("Job <{}> is switched to queue <{queue}>\n", job.id))
    })
}

/// Moves a job before the user's other jobs in its queue.
pub fn btop(words: &[RawText]) -> Result<i32, Refusal> {
    place("btop", words)
}

/// Moves a job behind the user's other jobs in its queue.
pub fn bbot(words: &[RawText]) -> Result<i32, Refusal> {
    place("bbot", words)
}

fn place(name: &str, words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options(name, &BTOP, words)? else { return Ok(0) };
    let (job, position) = match parsed.operands.as_slice() {
        [job] => (job, "1".to_string()),
        [job, position] => (job, text(position)),
        _ => return Err(lsf_refusal(format!("{name}: one job ID must be specified, and optionally a position"))),
    };
    if position != "1" {
        return Err(lsf_refusal(format!(
            "{name}: {position}: only position 1 is supported; {name} the other jobs after it"
        )));
    }
    let engine = super::engine()?;
    each(name, engine.as_ref(), std::slice::from_ref(job), |job| {
        let first = name == "btop";
        engine.amend(job, &Amend::moved(job, &engine.own_jobs()?, first))?;
        let end = if first { "top" } else { "bottom" };
        Ok(format!("Job <{}> has been moved to position 1 from {end}.\n", job.id))
    })
}

fn waits(job: &Job) -> bool {
    !job.is_over(None)
}

/// Applies `deed` to each named job; returns the exit status. Job 0 means all jobs of the user that have not ended.
fn each(
    name: &str,
    engine: &dyn Engine,
    ids: &[RawText],
    mut deed: impl FnMut(&Job) -> Result<String, Refusal>,
) -> Result<i32, Refusal> {
    let wanted = choose::all_wanted(ids).map_err(lsf_refusal)?;
    if wanted.is_empty() {
        return Err(lsf_refusal(format!("{name}: Job ID must be specified")));
    }
    let mut status = 0;
    for wanted in wanted {
        let outcome = jobs(engine, &wanted)?;
        for outcome in outcome.iter().map(|job| may(job).and_then(|()| deed(job))) {
            match outcome {
                Ok(text) => drop(print(&text)?),
                Err(Refusal::Said(text, _)) => (eprintln!("{text}"), status = 255).1,
                Err(Refusal::Failed(failure)) => (eprintln!("{name}: {failure}"), status = 255).1,
            }
        }
        if outcome.is_empty() {
            match name {
                "bmod" => eprintln!("{}: No matching job found. {NOT_MODIFIED}", wanted.id),
                _ => eprintln!("Job <{}>: No matching job found", wanted.id),
            }
            status = 255;
        }
    }
    Ok(status)
}

fn jobs(engine: &dyn Engine, wanted: &JobSelector) -> Result<Vec<Job>, Refusal> {
    if !wanted.indices.is_empty() {
        return Err(lsf_refusal(format!(
            "Job <{}>: all elements of an array are changed together; name the job",
            wanted.id
        )));
    }
    if wanted.id == 0 {
        return Ok(engine.own_jobs()?.into_iter().filter(waits).collect());
    }
    match engine.job(wanted.id) {
        Err(QueueError::NotFound(_)) => Ok(Vec::new()),
        found => Ok(vec![found?]),
    }
}

fn may(job: &Job) -> Result<(), Refusal> {
    super::act::permitted(job, &job.id.to_string()).map_err(lsf_refusal)?;
    if waits(job) { Ok(()) } else { Err(lsf_refusal(format!("Job <{}>: Job has already finished", job.id))) }
}
