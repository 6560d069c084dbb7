//! `bacct`: what ended jobs took, as far as the queue remembers them.

use super::listing::Selection;
use super::{Refusal, options, own_name, print, rows};
use homing_lsf::account::{Asked, summary};
use homing_lsf::grammar::BACCT;
use homing_lsf::jobs::{self, Job as Row};
use homing_model::RawText;
use jiff::tz::TimeZone;

/// Sums up jobs that have ended.
pub fn bacct(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("bacct", &BACCT, words)? else { return Ok(0) };
    let selection = Selection::new(&parsed)?;
    let engine = super::engine()?;
    let all = if selection.is_of_others() { engine.jobs()? } else { engine.own_jobs()? };
    let own = own_name();
    let rows: Vec<Row> = all.iter().flat_map(|job| job.parts.iter().map(|part| rows::row(job, part))).collect();
    let wanted = |stat: &str| match (parsed.has("d"), parsed.has("e")) {
        (true, false) => stat == "DONE",
        (false, true) => stat == "EXIT",
        _ => true,
    };
    let ended: Vec<&Row> =
        rows.iter().filter(|row| row.is_over() && wanted(row.stat) && selection.is_meant(row, &own)).collect();
    let user = parsed.text("u").unwrap_or(own.clone());
    let asked = Asked {
        user: (user != "all").then_some(user),
        project: parsed.text("P"),
        host: parsed.text("m"),
        queue: parsed.text("q"),
    };
    let zone = TimeZone::system();
    let each = ended.iter().filter(|_| parsed.has("l")).map(|row| jobs::long(row, &zone) + &rule());
    print(&(each.collect::<String>() + &summary(&ended, &asked)))
}

/// Between two jobs of `-l`.
fn rule() -> String {
    format!("{}\n", "-".repeat(78))
}
