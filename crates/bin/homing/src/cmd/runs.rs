//! `homing runs`: lists the runs that have a journal, newest first, and removes old ones.

use crate::consent::Consent;
use crate::progress::columns;
use homing_batch::parse_duration;
use homing_journal::{RunCounts, RunInfo, RunState};
use homing_model::text::{aligned, shown};
use homing_model::units;
use homing_model::{Failure, document, fit};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The number of runs that a list shows by default: one screen.
const SHOWN: usize = 20;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    /// List all runs, not only the last 20
    #[arg(short, long)]
    all: bool,
    /// List the last N runs
    #[arg(short = 'n', long, value_name = "N", conflicts_with_all = ["all", "prune"])]
    number: Option<usize>,
    /// List runs that began within this time: 12h, 7d
    #[arg(long, value_name = "AGE", conflicts_with = "prune", value_parser = |text: &str| parse_duration("--since", text))]
    since: Option<Duration>,
    /// List only runs with failed tasks
    #[arg(long, conflicts_with = "prune")]
    failed: bool,
    /// Print a JSON array of all runs
    #[arg(long)]
    json: bool,
    /// Remove runs that were not written to for this time: 12h, 7d [default: 30d]
    #[arg(long, value_name = "AGE", num_args = 0..=1, default_missing_value = "30d", conflicts_with_all = ["all", "json"],
          value_parser = |text: &str| parse_duration("--prune", text))]
    prune: Option<Duration>,
    /// With --prune: list the runs that would be removed, and remove nothing
    #[arg(long, requires = "prune")]
    dry_run: bool,
    #[command(flatten)]
    consent: Consent,
}

/// Lists the runs.
pub fn run(args: Args) -> Result<i32, Failure> {
    let root = homing_journal::root();
    if let Some(age) = args.prune {
        return prune(&root, age, args.dry_run, args.consent);
    }
    let mut runs = homing_journal::runs(&root);
    if runs.is_empty() && !args.json {
        eprintln!("homing: no runs in {}", root.display());
        return Ok(0);
    }
    let age = |since: Duration| {
        homing_os::clock::wall_ns().saturating_sub(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    };
    let oldest = args.since.map_or(i64::MIN, age);
    runs.retain(|run| run.started_ns.unwrap_or(i64::MIN) >= oldest);
    runs.retain(|run| !args.failed || run.counts.failed.is_some_and(|n| n > 0));
    runs.truncate(args.number.unwrap_or(usize::MAX));
    let text = if args.json {
        document::array(&runs)
    } else {
        let is_whole = args.all || args.number.is_some() || args.since.is_some();
        let shown = if is_whole { runs.len() } else { SHOWN.min(runs.len()) };
        if shown < runs.len() {
            eprintln!(
                "homing: {} not shown: homing runs --all",
                units::count((runs.len() - shown) as u64, "older run")
            );
        }
        table(&runs[..shown], columns())
    };
    to_stdout(&text)
}

/// Removes old runs. Fails with the last error if a run could not be removed.
fn prune(root: &Path, age: Duration, dry: bool, consent: Consent) -> Result<i32, Failure> {
    let now = SystemTime::now();
    if let Some(why) = homing_journal::clock_doubt(root, now) {
        let failure = Failure::system(format!("no runs were removed by age: {why}"));
        return Err(failure.hint("date; if the clock is right: touch the journal of that run, or remove its folder"));
    }
    let before = now.checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
    if !dry && consent.shows() {
        consent.possible("removing old runs")?;
        let old = homing_journal::prune(root, before, true, homing_account::usage::pruned_lines).len();
        if old > 0 {
            let summary = format!("{} in {} would be removed", units::count(old as u64, "run"), root.display());
            consent.confirm("removing old runs", &summary)?;
        }
    }
    let (mut runs, mut bytes, mut failed) = (0, 0, None);
    for run in homing_journal::prune(root, before, dry, homing_account::usage::pruned_lines) {
        match run.freed {
            Ok(freed) => {
                (runs, bytes) = (runs + 1, bytes + freed);
                to_stdout(&format!("{}\n", run.name))?;
            }
            Err(e) => {
                let failure = Failure::system(format!("run {}: {e}", run.name));
                if let Some(earlier) = failed.replace(failure) {
                    eprintln!("{earlier}");
                }
            }
        }
    }
    let done = if dry { "would be removed" } else { "removed" };
    eprintln!("homing: {} {done}, {}", units::count(runs, "run"), units::bytes(bytes));
    failed.map_or(Ok(0), Err)
}

/// Returns a row for each run. A terminal that has no room for the command gets it below the row, with the name of the
/// run and where it runs.
fn table(runs: &[RunInfo], columns: Option<usize>) -> String {
    let whole = wide_table(runs);
    match fit::exceeded(&whole, columns) {
        Some(most) => narrow_table(runs, most),
        None => whole,
    }
}

fn narrow_table(runs: &[RunInfo], columns: usize) -> String {
    let mut rows = vec![["RUN", "STARTED", "STATE", "DONE", "FAILED", "LEFT"].map(String::from)];
    let word = |run: &RunInfo| match &run.state {
        RunState::Running { .. } => "running".into(),
        RunState::Unreadable { .. } => "unreadable".into(),
        other => state(other),
    };
    for run in runs {
        // The zone is that of this machine, and has no room.
        let started = run.started_ns.map_or("unknown".into(), local_time);
        let started = started.rsplit_once(' ').map_or(started.clone(), |(time, _)| time.into());
        let [done, failed, left] = counts(run);
        rows.push([run.name.clone(), started, word(run), done, failed, left]);
    }
    let table = aligned(&rows, 3..6);
    let mut lines = table.lines();
    let mut text = format!("{}\n", lines.next().unwrap_or_default());
    for (line, run) in lines.zip(runs) {
        let label = run.label.as_deref().map(|label| format!("{}: ", shown(label))).unwrap_or_default();
        let place = match &run.state {
            RunState::Running { by } => format!("on {}, pid {}: ", by.host, by.pid),
            RunState::Unreadable { reason } => format!("{reason}: "),
            _ => String::new(),
        };
        let below = format!("  {label}{place}{}", homing_report::command_line(&run.argv));
        text += &format!("{line}\n{}\n", fit::clipped(&below, columns));
    }
    text
}

/// Returns the numbers of tasks that are done, failed and left.
fn counts(run: &RunInfo) -> [String; 3] {
    let RunCounts { done, failed, unfinished, .. } = run.counts;
    [done, failed, unfinished].map(|tasks| tasks.map_or("-".into(), |n| n.to_string()))
}

fn wide_table(runs: &[RunInfo]) -> String {
    let named = runs.iter().any(|run| run.label.is_some());
    let head = ["RUN", if named { "NAME" } else { "" }, "STARTED", "STATE", "DONE", "FAILED", "LEFT", "COMMAND"];
    let mut rows = vec![head.map(String::from)];
    for run in runs {
        let label = run.label.as_deref().map_or(String::new(), |label| clip(&shown(label), 24));
        let label = if named && label.is_empty() { "-".into() } else { label };
        let started = run.started_ns.map_or("unknown".into(), local_time);
        let command = clip(&homing_report::command_line(&run.argv), 72);
        let [done, failed, left] = counts(run);
        rows.push([run.name.clone(), label, started, state(&run.state), done, failed, left, command]);
    }
    aligned(&rows, 4..7)
}

fn state(state: &RunState) -> String {
    match state {
        RunState::Ended { exit, .. } => format!("ended, exit {exit}"),
        RunState::Running { by } => format!("running on {}, pid {}", by.host, by.pid),
        RunState::Interrupted => "interrupted".into(),
        RunState::Unreadable { reason } => format!("unreadable: {reason}"),
    }
}

/// Formats a time in the zone of this machine (`TZ`, /etc/localtime), with the name of the zone.
pub(super) fn local_time(ns: i64) -> String {
    let Ok(time) = jiff::Timestamp::from_nanosecond(i128::from(ns)) else { return "unknown".into() };
    time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
}

pub(super) fn clip(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_string(),
    }
}

/// Writes to standard output. A reader that is gone (`| head`) is no failure.
pub(crate) fn to_stdout(text: &str) -> Result<i32, Failure> {
    match std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::system(format!("cannot write to standard output: {e}")))
        }
        _ => Ok(0),
    }
}
