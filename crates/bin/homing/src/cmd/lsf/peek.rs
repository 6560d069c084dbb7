//! `bpeek`: prints the output of a job so far.

use super::{Refusal, lsf_refusal, options, own_name};
use homing_lsf::choose::{name_fits, wanted};
use homing_lsf::grammar::BPEEK;
use homing_lsf::rows;
use homing_model::RawText;
use homing_queue::{Followed, Job, JobElement, until_over};

/// Prints the output; with `-f` until the job ends.
pub fn run(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("bpeek", &BPEEK, words)? else { return Ok(0) };
    let engine = super::engine()?;
    let jobs = engine.jobs()?;
    let own = own_name();
    let id = parsed.operands.first().map(|w| wanted(&homing_lsf::options::text(w))).transpose().map_err(lsf_refusal)?;
    let is = |job: &&Job, part: &&JobElement| match &id {
        Some(w) => w.id == job.id && (w.indices.is_empty() || w.indices.contains(&part.index)),
        None => {
            let row = rows::row(job, part);
            let fits = |o: &str, fits: &dyn Fn(&str) -> bool| parsed.text(o).is_none_or(|v| fits(&v));
            row.user == own && fits("J", &|n| name_fits(n, &row)) && fits("q", &|q| q == row.queue)
        }
    };
    // Without an id, the newest job.
    let all = jobs.iter().flat_map(|j| j.parts.iter().map(move |p| (j, p)));
    let found =
        all.filter(|(j, p)| is(j, p)).max_by_key(|(j, p)| (j.id, p.start.is_some(), std::cmp::Reverse(p.index)));
    let Some((job, part)) = found else {
        return Err(lsf_refusal(match id {
            Some(w) => format!("Job <{}> is not found", w.id),
            None => "No unfinished job found".into(),
        }));
    };
    // A job that its keeper holds runs already, a moment before its start is recorded.
    if part.start.is_none() && !part.state.is_running() {
        return Err(lsf_refusal(format!("Job <{}> : Not yet started.", job.name_of(part))));
    }
    show(engine.as_ref(), job, part, parsed.has("f"))
}

fn show(engine: &dyn homing_queue::Engine, job: &Job, part: &JobElement, follow: bool) -> Result<i32, Refusal> {
    let mut streams = Followed::all(job, part);
    let titles = ["<< output from stdout >>\n", "\n<< output from stderr >>\n"];
    for (title, stream) in titles.iter().zip(&mut streams) {
        super::print(title)?;
        stream.copy()?;
    }
    if follow {
        until_over(engine, job.id, Some(part.index), |_| streams.iter_mut().try_for_each(Followed::copy))?;
    }
    Ok(0)
}
