//! `bwait`: waits until a dependency condition holds.

use super::{Refusal, lsf_refusal, options};
use homing_lsf::grammar::BWAIT;
use homing_model::RawText;
use homing_queue::depend::{self, ConditionVerdict, JobLookup};
use homing_queue::{ElementState, Job, array};
use std::time::{Duration, Instant};

/// All jobs. A name means the newest job of this user with that name.
struct Jobs(Vec<Job>);

impl JobLookup for Jobs {
    fn parts(&self, text: &str) -> Vec<(ElementState, Option<i32>)> {
        let own = homing_queue::uid();
        let (job, index) = match array::job_id(text) {
            Some((id, index)) => (self.0.iter().filter(|j| j.id == id).max_by_key(|j| j.uid == own), index),
            None => (self.0.iter().rev().find(|j| j.uid == own && j.spec.name == text), None),
        };
        let parts = job.iter().flat_map(|j| &j.parts).filter(|p| index.is_none_or(|i| i == p.index));
        parts.map(|p| (p.state, p.end.as_ref().map(|e| e.exit))).collect()
    }
}

/// Waits for the condition; returns 0 when it holds.
pub fn bwait(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("bwait", &BWAIT, words)? else { return Ok(0) };
    let condition = parsed.text("w").ok_or_else(|| lsf_refusal("bwait: -w 'CONDITION' is required, as in bsub -w"))?;
    depend::check(&condition).map_err(|why| lsf_refusal(format!("{why}. Wait failed.")))?;
    let minutes = parsed.text("t").map(|t| t.parse::<u64>().map_err(|_| lsf_refusal(format!("{t}: -t takes minutes"))));
    // A time beyond the clock's range is no limit.
    let limit = minutes.transpose()?.map(|minutes| Duration::from_secs(minutes.saturating_mul(60)));
    let until = limit.and_then(|limit| Instant::now().checked_add(limit));
    let engine = super::engine()?;
    loop {
        match depend::judge(&condition, &Jobs(engine.jobs()?)) {
            ConditionVerdict::Holds => return Ok(0),
            ConditionVerdict::Never => {
                return Err(lsf_refusal("Dependency condition invalid or never satisfied. Wait failed."));
            }
            ConditionVerdict::Waits if until.is_some_and(|until| Instant::now() >= until) => {
                return Err(lsf_refusal("Timeout limit reached. Wait failed."));
            }
            ConditionVerdict::Waits => std::thread::sleep(engine.pace()),
        }
    }
}
