//! `bacct`: sums up the use of ended jobs, as `homing usage --jobs` does.

use super::{Refusal, lsf_refusal, options, own_name, print};
use homing_lsf::account::{AccountFilter, JobAccounting, summary};
use homing_lsf::grammar::BACCT;
use homing_lsf::jobs;
use homing_lsf::selection::Selection;
use homing_lsf::tables::rule;
use homing_model::RawText;
use jiff::tz::TimeZone;

/// Sums up jobs that have ended.
pub fn bacct(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("bacct", &BACCT, words)? else { return Ok(0) };
    let selection = Selection::new(&parsed).map_err(lsf_refusal)?;
    let engine = super::engine()?;
    let own = own_name();
    let wanted = |stat: &str| match (parsed.has("d"), parsed.has("e")) {
        (true, false) => stat == "DONE",
        (false, true) => stat == "EXIT",
        _ => true,
    };
    let mut jobs = homing_account::usage::ended_jobs(engine.as_ref(), selection.is_of_others())?;
    jobs.retain(|(row, _)| row.is_over() && wanted(row.stat) && selection.is_meant(row, &own));
    let user = parsed.text("u").unwrap_or(own.clone());
    let asked = AccountFilter {
        user: (user != "all").then_some(user),
        project: parsed.text("P"),
        host: parsed.text("m"),
        queue: parsed.text("q"),
    };
    let zone = TimeZone::system();
    let each = jobs.iter().filter(|_| parsed.has("l")).map(|(row, _)| jobs::accounted(row, &zone) + &rule());
    let ended: Vec<JobAccounting> = jobs.iter().map(|(_, ended)| *ended).collect();
    print(&(each.collect::<String>() + &summary(&ended, &asked)))
}
