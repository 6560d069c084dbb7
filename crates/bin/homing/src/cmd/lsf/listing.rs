//! `bjobs` and `bhist`.

use super::{Refusal, lsf_refusal, options, own_name, print};
use crate::cluster::Cluster;
use homing_lsf::columns::Columns;
use homing_lsf::fields::{FIELDS, value};
use homing_lsf::grammar::{BHIST, BJOBS};
use homing_lsf::jobs::{self, Folding, JobReport as Row};
use homing_lsf::options::Parsed;
use homing_lsf::rows;
use homing_lsf::selection::Selection;
use homing_lsf::tables::rule;
use homing_model::RawText;
use homing_queue::{Engine, Job};
use jiff::tz::TimeZone;

/// Returns how the long form is folded, if it is requested.
fn long_form(parsed: &Parsed) -> Option<Folding> {
    match (parsed.has("UF"), parsed.has("l")) {
        (true, _) => Some(Folding::Unfolded),
        (false, true) => Some(Folding::Lsf),
        (false, false) => None,
    }
}

/// Returns the rows of the selected jobs. `all`: arrays alone, with all of their elements.
fn selected(engine: &dyn Engine, selection: &Selection, all: bool) -> Result<(Vec<Job>, Vec<Row>), Refusal> {
    let jobs = if selection.is_of_others() { engine.jobs()? } else { engine.own_jobs()? };
    let own = own_name();
    let every = jobs.iter().flat_map(|job| job.parts.iter().map(|part| rows::row(job, part)));
    let mut rows: Vec<Row> = every.collect();
    // The line of an array counts all of its elements, ended ones too.
    let whole = |row: &&Row| all && row.array.is_some() && selection.has(row, &own);
    let arrays: Vec<u64> = rows.iter().filter(whole).map(|row| row.id).collect();
    rows.retain(|row| if all { arrays.contains(&row.id) } else { selection.has(row, &own) });
    Ok((jobs, rows))
}

/// Lists jobs.
pub fn bjobs(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("bjobs", &BJOBS, words)? else { return Ok(0) };
    let columns = parsed.text("o").map(|o| Columns::parse(&o, &FIELDS)).transpose().map_err(lsf_refusal)?;
    let selection = Selection::new(&parsed).map_err(lsf_refusal)?;
    let engine = super::engine()?;
    let (jobs, mut rows) = selected(engine.as_ref(), &selection, parsed.has("A"))?;
    if rows.is_empty() && selection.wanted.is_empty() {
        check_places(engine.as_ref(), &parsed)?;
        return Err(lsf_refusal(selection.nothing()));
    }
    let long = columns.is_none() && long_form(&parsed).is_some();
    if long || (columns.is_none() && parsed.has("p")) {
        rows::add_pending_reasons(engine.as_ref(), &jobs, &mut rows)?;
    }
    if long {
        rows::add_homes(&jobs, &mut rows);
        rows::add_details(engine.as_ref(), &jobs, &mut rows)?;
    }
    let status = if rows.is_empty() { 0 } else { print(&text(&parsed, columns.as_ref(), &rows))? };
    let missing = selection.wanted.iter().filter(|w| !rows.iter().any(|r| r.id == w.id));
    Ok(missing.fold(status, |_, w| {
        eprintln!("{}", selection.missing(w.id));
        255
    }))
}

/// Refuses a queue or a host that the engine does not have: that is why no job was found there.
fn check_places(engine: &dyn Engine, parsed: &Parsed) -> Result<(), Refusal> {
    if let Some(queues) = parsed.text("q") {
        super::load::check_queues(&engine.config()?, queues.split_whitespace())?;
    }
    if let Some(hosts) = parsed.text("m") {
        let hosts: Vec<String> = hosts.split_whitespace().map(String::from).collect();
        Cluster::of_queue()?.hosts_meant(&hosts, &engine.machines()?).map_err(lsf_refusal)?;
    }
    Ok(())
}

fn text(parsed: &Parsed, columns: Option<&Columns>, rows: &[Row]) -> String {
    let zone = TimeZone::system();
    let (head, now) = (!parsed.has("noheader"), homing_os::clock::system_ns());
    match columns {
        Some(columns) if parsed.has("json") => json(columns, rows, &zone, now),
        Some(columns) => {
            let first = if head { columns.head() } else { String::new() };
            rows.iter().fold(first, |all, row| all + &columns.row(&|field| value(field, row, &zone, now)))
        }
        None if let Some(folding) = long_form(parsed) => {
            rows.iter().map(|r| jobs::long(r, &zone, folding, now)).collect::<Vec<_>>().join(&rule())
        }
        None if parsed.has("A") => jobs::arrays(rows),
        None if parsed.has("W") => jobs::used(rows, &zone, head),
        None => {
            let reasons = parsed.has("p") || parsed.has("s");
            let wide = parsed.has("w");
            if wide { jobs::wide(rows, &zone, reasons, head) } else { jobs::table(rows, &zone, reasons, head) }
        }
    }
}

fn json(columns: &Columns, rows: &[Row], zone: &TimeZone, now: i64) -> String {
    let records = rows.iter().map(|row| columns.record(&|field| value(field, row, zone, now)));
    super::load::document("bjobs", "JOBS", records)
}

/// Prints the seconds that jobs spent in each state, and with `-l` their events.
pub fn bhist(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("bhist", &BHIST, words)? else { return Ok(0) };
    let selection = Selection::new(&parsed).map_err(lsf_refusal)?;
    let engine = super::engine()?;
    let (jobs, mut rows) = selected(engine.as_ref(), &selection, false)?;
    if rows.is_empty() {
        return Err(lsf_refusal("No matching job found"));
    }
    let now = homing_os::clock::system_ns();
    let zone = TimeZone::system();
    if let Some(folding) = long_form(&parsed) {
        rows::add_homes(&jobs, &mut rows);
        let of = |row: &Row| (jobs::events(row, &zone, folding), homing_lsf::spent::summary(row, now, &zone));
        let each = rows.iter().map(of).map(|(events, summary)| format!("{events}\n{summary}"));
        return print(&each.collect::<Vec<_>>().join(&rule()));
    }
    print(&homing_lsf::spent::table(&rows, now))
}
