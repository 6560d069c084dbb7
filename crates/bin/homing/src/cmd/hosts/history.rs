//! The history of hosts: samples that a timer of the user keeps on each of them.

mod far;
mod schedule;

use super::super::runs::to_stdout;
use crate::consent::Consent;
use homing_batch::parse_duration;
use homing_model::alike;
use homing_model::text::shown;
use homing_model::{Failure, NodeSet, exit};
use homing_watch::history::{Ring, SLOTS, SampleRecord, step};
use std::path::PathBuf;
use std::time::Duration;

pub use far::histories;

/// The most steps of a history. A step is a minute, or longer if the time has more minutes.
const STEPS: u64 = 60;
const MINUTE_S: u64 = 60;
/// The time span of a full file.
const WEEK: Duration = Duration::from_secs(SLOTS as u64 * MINUTE_S);

/// The options about histories.
#[derive(clap::Args)]
pub struct HistoryOptions {
    /// Show the load of hosts in this time until now (1h, 2d), in up to 60 steps; needs an earlier --schedule
    #[arg(long, value_name = "AGE", num_args = 0..=1, default_missing_value = "1h", conflicts_with = "schedule",
        value_parser = |text: &str| parse_duration("--history", text))]
    history: Option<Duration>,
    /// Install a timer of yours on each host that keeps a sample a minute, for a week, in a file of 1.3 MB
    #[arg(long, conflicts_with = "json")]
    schedule: bool,
    /// With --schedule: remove the timers; the samples stay
    #[arg(long, requires = "schedule")]
    undo: bool,
    #[command(flatten)]
    pub consent: Consent,
    /// Keep a sample of this host, as the timer does
    #[arg(long, hide = true, conflicts_with_all = ["history", "schedule"])]
    sample: bool,
    /// Print the records of this host, one a line, as `-w` reads them
    #[arg(long, hide = true, requires = "history")]
    lines: bool,
    /// Print the records of this host, one an hour, as `homing check` reads them
    #[arg(long, hide = true, conflicts_with_all = ["history", "schedule", "sample"])]
    hours: bool,
    /// With --lines: up to so many steps
    #[arg(long, hide = true, requires = "lines", default_value_t = STEPS, value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
}

impl HistoryOptions {
    /// Returns whether the options are about this host alone.
    pub fn is_of_this_host(&self) -> bool {
        self.sample || self.lines || self.hours
    }

    /// Returns whether the options want a history or timers, and not the present state of hosts.
    pub fn is_wanted(&self) -> bool {
        self.schedule || self.history.is_some()
    }
}

/// Executes the hidden options.
pub fn here(args: &HistoryOptions) -> Result<i32, Failure> {
    if args.sample {
        return keep().map(|()| 0);
    }
    if args.hours {
        return to_stdout(&homing_watch::history::hours(&kept(WEEK, WEEK.as_secs() / 3600)?));
    }
    let records = kept(args.history.unwrap_or_default(), args.steps)?;
    to_stdout(&homing_watch::history::lines(records, homing_probe::facts()))
}

/// Shows histories, or sets timers.
pub fn run(args: &HistoryOptions, json: bool, names: &[String]) -> Result<i32, Failure> {
    let Some(age) = args.history else { return schedule(args, names) };
    let histories = histories(names, age, STEPS);
    let rows: Vec<(&String, &Vec<SampleRecord>)> =
        names.iter().zip(&histories).filter_map(|(h, own)| Some((h, &own.as_ref().ok()?.records))).collect();
    to_stdout(&if json {
        homing_watch::history::json(&rows)
    } else {
        homing_watch::history::table(&rows, crate::progress::columns())
    })?;
    let silent =
        names.iter().zip(&histories).filter_map(|(host, own)| Some((host.as_str(), own.as_ref().err()?.as_str())));
    let silent = alike::folded(silent);
    silent.iter().for_each(|line| eprintln!("homing: {}", shown(line)));
    Ok(if silent.is_empty() { 0 } else { exit::SYSTEM })
}

fn schedule(args: &HistoryOptions, names: &[String]) -> Result<i32, Failure> {
    let hosts: NodeSet = names.iter().cloned().collect();
    let action = if args.undo {
        "your timer for samples will be removed"
    } else {
        "a timer of yours will record a sample each minute"
    };
    args.consent.confirm("changing timers", &format!("{}: {action}", alike::label(&hosts)))?;
    schedule::run(names, args.undo)
}

fn file() -> Result<PathBuf, Failure> {
    let folder = homing_watch::history::folder();
    let folder = folder.map_err(|e| Failure::system(format!("making the folder for this user's history: {e}")))?;
    Ok(homing_watch::history::file(&folder, &homing_queue::host_name()))
}

/// Keeps a sample. If another process keeps one at this moment, that one serves both.
fn keep() -> Result<(), Failure> {
    let record = SampleRecord::new(homing_probe::sample(), &homing_queue::boot_id());
    match Ring::open(&file()?, SLOTS).map_err(Failure::system)? {
        Some(ring) => ring.add(&record).map_err(Failure::system),
        None => Ok(()),
    }
}

/// Returns the samples of this host, thinned to steps.
fn kept(age: Duration, steps: u64) -> Result<Vec<SampleRecord>, Failure> {
    let ring = Ring::open_to_read(&file()?).map_err(Failure::system)?;
    let none = || Failure::usage("this host has no recorded history").hint("homing hosts --schedule");
    let records = ring.ok_or_else(none)?.records().map_err(Failure::system)?;
    if records.is_empty() {
        return Err(none());
    }
    let ns = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let begin_ns = homing_os::clock::wall_ns().saturating_sub(ns(age));
    Ok(homing_watch::history::thin(records, begin_ns, ns(step(age, steps))))
}
