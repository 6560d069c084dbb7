//! `bjobs` and `bhist`.

use super::{Refusal, options, own_name, print, rows, said};
use homing_lsf::choose::{self, Wanted};
use homing_lsf::fields::Columns;
use homing_lsf::grammar::{BHIST, BJOBS};
use homing_lsf::jobs::{self, Job as Row};
use homing_lsf::options::Parsed;
use homing_model::RawText;
use homing_queue::{Engine, Job};
use jiff::tz::TimeZone;

/// Which jobs are meant, and of which kind, by options that bjobs and bhist share.
pub(super) struct Selection<'a> {
    parsed: &'a Parsed,
    wanted: Vec<Wanted>,
}

impl Selection<'_> {
    pub(super) fn new(parsed: &Parsed) -> Result<Selection<'_>, Refusal> {
        let wanted = super::act::wanted(&parsed.operands)?;
        parsed.text("g").map(|g| choose::group(&g)).transpose().map_err(said)?;
        Ok(Selection { parsed, wanted })
    }

    /// Jobs of ids in whatever state; of others those of the kind.
    fn has(&self, row: &Row, own: &str) -> bool {
        self.is_meant(row, own) && (!self.wanted.is_empty() || self.is_kind(row))
    }

    /// Jobs of ids stand for themselves, whoever has them; others are the user's unless `-u` says so.
    pub(super) fn is_meant(&self, row: &Row, own: &str) -> bool {
        if !self.wanted.is_empty() {
            let is = |w: &Wanted| {
                w.id == row.id && (w.indices.is_empty() || row.index.is_some_and(|i| w.indices.contains(&i)))
            };
            return self.wanted.iter().any(is);
        }
        let user = self.parsed.text("u").unwrap_or_else(|| own.to_string());
        (user == "all" || user.split_whitespace().any(|u| u == row.user)) && self.fits(row)
    }

    /// Whether jobs of other users may be meant.
    pub(super) fn is_of_others(&self) -> bool {
        self.parsed.has("u") || !self.wanted.is_empty()
    }

    /// Without an option: what has not ended.
    fn is_kind(&self, row: &Row) -> bool {
        let has = |o: &str| self.parsed.has(o);
        let kinds = [
            (has("p"), row.is_waiting()),
            (has("r"), matches!(row.stat, "RUN" | "USUSP" | "SSUSP")),
            (has("s"), matches!(row.stat, "USUSP" | "SSUSP" | "PSUSP")),
            (has("d"), row.is_over()),
        ];
        let asked = kinds.iter().any(|(asked, _)| *asked);
        has("a") || if asked { kinds.iter().any(|(asked, is)| *asked && *is) } else { !row.is_over() }
    }

    fn fits(&self, row: &Row) -> bool {
        let is = |option: &str, fits: &dyn Fn(&str) -> bool| self.parsed.text(option).is_none_or(|v| fits(&v));
        is("J", &|name| choose::name_fits(name, row))
            && is("q", &|queue| queue.split_whitespace().any(|q| q == row.queue))
            && is("m", &|host| row.exec_hosts.iter().any(|h| host.split_whitespace().any(|w| w == h)))
            && is("P", &|project| project == row.project)
            && choose::is_of(row, self.parsed.text("g").as_deref(), self.parsed.text("app").as_deref())
    }

    /// What bjobs says when there is nothing to show.
    fn nothing(&self) -> Refusal {
        if let Some(first) = self.wanted.first() {
            return said(format!("Job <{}> is not found", first.id));
        }
        if let Some(name) = self.parsed.text("J") {
            return said(format!("Job <{name}> is not found"));
        }
        let kind = match ["a", "p", "s", "r", "d"].iter().find(|o| self.parsed.has(o)) {
            Some(&"p") => "pending job",
            Some(&"s") => "suspended job",
            Some(&"d") => "DONE/EXIT job",
            Some(&"r") => "running job",
            Some(&"a") => "job",
            _ => "unfinished job",
        };
        Refusal::Said(format!("No {kind} found"), 254)
    }
}

/// Rows of all jobs that are meant.
fn selected(engine: &dyn Engine, selection: &Selection) -> Result<(Vec<Job>, Vec<Row>), Refusal> {
    let jobs = if selection.is_of_others() { engine.jobs()? } else { engine.own_jobs()? };
    let own = own_name();
    let all = jobs.iter().flat_map(|job| job.parts.iter().map(|part| rows::row(job, part)));
    let mut rows: Vec<Row> = all.collect();
    // An array's line counts all of its elements, those that have ended too.
    let whole = |row: &&Row| selection.parsed.has("A") && selection.has(row, &own);
    let arrays: Vec<u64> = rows.iter().filter(whole).map(|row| row.id).collect();
    rows.retain(|row| selection.has(row, &own) || arrays.contains(&row.id));
    Ok((jobs, rows))
}

/// Lists jobs.
pub fn bjobs(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("bjobs", &BJOBS, words)? else { return Ok(0) };
    let columns = parsed.text("o").map(|o| Columns::parse(&o)).transpose().map_err(said)?;
    let selection = Selection::new(&parsed)?;
    let engine = super::engine()?;
    let (jobs, mut rows) = selected(engine.as_ref(), &selection)?;
    if rows.is_empty() {
        return Err(selection.nothing());
    }
    let pending = columns.is_none() && (parsed.has("p") || parsed.has("l"));
    if pending {
        rows::add_pending_reasons(engine.as_ref(), &jobs, &mut rows)?;
    }
    let status = print(&text(&parsed, columns.as_ref(), &rows))?;
    let missing = selection.wanted.iter().filter(|w| !rows.iter().any(|r| r.id == w.id));
    Ok(missing.fold(status, |_, w| {
        eprintln!("Job <{}> is not found", w.id);
        255
    }))
}

fn text(parsed: &Parsed, columns: Option<&Columns>, rows: &[Row]) -> String {
    let zone = TimeZone::system();
    let (head, now) = (!parsed.has("noheader"), homing_clock::system_ns());
    match columns {
        Some(columns) if parsed.has("json") => json(columns, rows, &zone, now),
        Some(columns) => columns.table(rows, &zone, now, head),
        None if parsed.has("l") => {
            rows.iter().map(|r| jobs::long(r, &zone)).collect::<Vec<_>>().join(&format!("{}\n", "-".repeat(78)))
        }
        None if parsed.has("A") => jobs::arrays(rows),
        None => {
            let reasons = parsed.has("p") || parsed.has("s");
            let wide = parsed.has("w");
            if wide { jobs::wide(rows, &zone, reasons, head) } else { jobs::table(rows, &zone, reasons, head) }
        }
    }
}

fn json(columns: &Columns, rows: &[Row], zone: &TimeZone, now: i64) -> String {
    let record =
        |row: &Row| serde_json::Map::from_iter(columns.record(row, zone, now).into_iter().map(|(k, v)| (k, v.into())));
    let records: Vec<_> = rows.iter().map(record).collect();
    let all = serde_json::json!({ "COMMAND": "bjobs", "JOBS": records.len(), "RECORDS": records });
    serde_json::to_string_pretty(&all).unwrap_or_default() + "\n"
}

/// Seconds that jobs spent in each state, and with `-l` their events.
pub fn bhist(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("bhist", &BHIST, words)? else { return Ok(0) };
    let selection = Selection::new(&parsed)?;
    let engine = super::engine()?;
    let (_, rows) = selected(engine.as_ref(), &selection)?;
    if rows.is_empty() {
        return Err(Refusal::Said("No matching job found".into(), 255));
    }
    let now = homing_clock::system_ns();
    let zone = TimeZone::system();
    if parsed.has("l") {
        let each = |row: &Row| format!("{}\n{}", jobs::long(row, &zone), summary(row, now));
        return print(&rows.iter().map(each).collect::<String>());
    }
    let mut out = String::from("Summary of time in seconds spent in various states:\n");
    out += &format!(
        "{:<7} {:<7} {:<9} {:<7} {:<7} {:<7} {:<7} {:<7} {:<7} TOTAL\n",
        "JOBID", "USER", "JOB_NAME", "PEND", "PSUSP", "RUN", "USUSP", "SSUSP", "UNKWN"
    );
    for row in &rows {
        let [pend, run] = spent(row, now);
        let name = jobs::cut_left(&row.shown_name(), 9);
        out += &format!(
            "{:<7} {:<7} {name:<9} {pend:<7} {:<7} {run:<7} {:<7} {:<7} {:<7} {}\n",
            row.shown_id(),
            jobs::cut_left(&row.user, 7),
            0,
            0,
            0,
            0,
            pend + run
        );
    }
    print(&out)
}

/// Seconds pending and running. Suspensions are not recorded: they count as what they interrupted.
fn spent(row: &Row, now: i64) -> [i64; 2] {
    let end = row.end_ns.unwrap_or(now);
    let start = row.start_ns.unwrap_or(end);
    [(start - row.submit_ns).max(0) / 1_000_000_000, (end - start).max(0) / 1_000_000_000]
}

fn summary(row: &Row, now: i64) -> String {
    let [pend, run] = spent(row, now);
    format!(
        "Summary of time in seconds spent in various states by {}\n  PEND     PSUSP    RUN      USUSP    SSUSP    UNKWN    TOTAL\n  \
         {pend:<8} {:<8} {run:<8} {:<8} {:<8} {:<8} {}\n",
        homing_lsf::time::long(now, &TimeZone::system()),
        0,
        0,
        0,
        0,
        pend + run
    )
}
