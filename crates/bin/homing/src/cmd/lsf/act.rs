//! `bkill`, `bstop`, `bresume`, `brequeue`.

use super::{Refusal, lsf_refusal, options, own_name};
use homing_lsf::choose::{self, JobSelector};
use homing_lsf::deed::Deed;
use homing_lsf::grammar::{BKILL, BREQUEUE, BSTOP};
use homing_lsf::selection::nothing;
use homing_model::RawText;
use homing_queue::{Engine, Job, array};

/// Ends jobs, or sends them a signal.
pub fn bkill(words: &[RawText]) -> Result<i32, Refusal> {
    run("bkill", words)
}

/// Stops jobs until `bresume`.
pub fn bstop(words: &[RawText]) -> Result<i32, Refusal> {
    run("bstop", words)
}

/// Lets stopped jobs go on.
pub fn bresume(words: &[RawText]) -> Result<i32, Refusal> {
    run("bresume", words)
}

/// Puts interrupted jobs back into the queue.
pub fn brequeue(words: &[RawText]) -> Result<i32, Refusal> {
    run("brequeue", words)
}

/// Checks that this user may change a job. The error names the job as `shown`.
pub fn permitted(job: &Job, shown: &str) -> Result<(), String> {
    let own = homing_queue::uid();
    if own == job.uid || own == 0 { Ok(()) } else { Err(format!("Job <{shown}>: User permission denied")) }
}

fn run(name: &str, words: &[RawText]) -> Result<i32, Refusal> {
    let grammar = match name {
        "bkill" => &BKILL,
        "brequeue" => &BREQUEUE,
        _ => &BSTOP,
    };
    let Some(parsed) = options(name, grammar, words)? else { return Ok(0) };
    let deed = Deed::of(name, &parsed).map_err(lsf_refusal)?;
    let mut wanted = choose::all_wanted(&parsed.operands).map_err(lsf_refusal)?;
    let filtered = ["J", "q", "u", "m", "g", "P", "app"].iter().any(|o| parsed.has(o));
    if wanted.is_empty() && !filtered {
        return Err(lsf_refusal(format!("{name}: Job ID must be specified")));
    }
    parsed.text("g").map(|g| choose::group(&g)).transpose().map_err(lsf_refusal)?;
    let engine = super::engine()?;
    let others = parsed.has("u") || wanted.iter().any(|w| w.id != 0);
    let jobs = if others { engine.jobs()? } else { engine.own_jobs()? };
    let mut status = 0;
    if wanted.is_empty() {
        wanted.push(JobSelector { id: 0, indices: vec![] });
    }
    for wanted in &wanted {
        let found = deed.meant(&jobs, wanted, &parsed, &own_name());
        if found.is_empty() {
            match wanted.id {
                0 if deed.requeues() => eprintln!("No matching job found"),
                0 => eprintln!("{}", nothing(&parsed, true)),
                id => eprintln!("Job <{id}>: No matching job found"),
            }
            status = 255;
        }
        for (job, index) in found {
            status = one(engine.as_ref(), job, index, &deed)?.max(status);
        }
    }
    Ok(status)
}

fn one(engine: &dyn Engine, job: &Job, index: Option<u32>, deed: &Deed) -> Result<i32, Refusal> {
    let shown = array::name(job.id, index);
    if let Err(why) = permitted(job, &shown) {
        eprintln!("{why}");
        return Ok(255);
    }
    if !deed.requeues() && job.is_over(index) {
        eprintln!("Job <{shown}>: Job has already finished");
        return Ok(255);
    }
    match deed.carry_out(engine, job, index)? {
        Some(words) => super::print(&format!("Job <{shown}> is being {words}\n")),
        None => {
            eprintln!(
                "Job <{shown}>: Job has not started, or has ended: brequeue -d for a successful job, -e for a failed \
                 one"
            );
            Ok(255)
        }
    }
}
