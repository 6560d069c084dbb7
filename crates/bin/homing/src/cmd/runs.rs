//! `homing runs`: the runs that have a journal, newest first; and how old ones go.

use homing_batch::parse_duration;
use homing_journal::{RunInfo, RunState};
use homing_model::Failure;
use homing_model::text::aligned;
use homing_model::units;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Runs that a list shows unless it is asked for more: a screen's worth.
const SHOWN: usize = 20;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    /// List all runs, not only the last 20
    #[arg(short, long)]
    all: bool,
    /// Print a JSON array of all runs
    #[arg(long)]
    json: bool,
    /// Remove the runs that were last written to longer ago than this: 12h, 7d [default: 30d]
    #[arg(long, value_name = "AGE", num_args = 0..=1, default_missing_value = "30d", conflicts_with_all = ["all", "json"],
          value_parser = |text: &str| parse_duration("--prune", text))]
    prune: Option<Duration>,
    /// With --prune: tell what would go, and remove nothing
    #[arg(long, requires = "prune")]
    dry_run: bool,
}

/// Lists the runs.
pub fn run(args: Args) -> Result<i32, Failure> {
    let root = homing_journal::root();
    if let Some(age) = args.prune {
        return prune(&root, age, args.dry_run);
    }
    let runs = homing_journal::runs(&root);
    let text = if args.json {
        serde_json::to_string_pretty(&runs).map_err(Failure::system)? + "\n"
    } else if runs.is_empty() {
        eprintln!("homing: no runs in {}", root.display());
        return Ok(0);
    } else {
        let shown = if args.all { runs.len() } else { SHOWN.min(runs.len()) };
        if shown < runs.len() {
            eprintln!(
                "homing: {} not shown: homing runs --all",
                units::count((runs.len() - shown) as u64, "older run")
            );
        }
        table(&runs[..shown])
    };
    to_stdout(&text)
}

/// Removes old runs; each that stays for an error is told.
fn prune(root: &Path, age: Duration, dry: bool) -> Result<i32, Failure> {
    let now = SystemTime::now();
    if let Some(why) = homing_journal::clock_doubt(root, now) {
        let failure = Failure::system(format!("no run is removed by its age: {why}"));
        return Err(failure.hint("date; where the clock is right: touch the journal of that run, or remove its folder"));
    }
    let before = now.checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
    let (mut runs, mut bytes, mut failed) = (0, 0, None);
    for run in homing_journal::prune(root, before, dry, homing_account::usage::pruned_lines) {
        match run.freed {
            Ok(freed) => {
                (runs, bytes) = (runs + 1, bytes + freed);
                to_stdout(&format!("{}\n", run.name))?;
            }
            Err(e) => failed = Some(Failure::system(format!("run {}: {e}", run.name))),
        }
    }
    let done = if dry { "would be removed" } else { "removed" };
    eprintln!("homing: {} {done}, {}", units::count(runs, "run"), units::bytes(bytes));
    failed.map_or(Ok(0), Err)
}

fn table(runs: &[RunInfo]) -> String {
    let mut rows = vec![["RUN", "STARTED", "STATE", "DONE", "FAILED", "COMMAND"].map(String::from)];
    for run in runs {
        let count = |key: &str| run.counts.get(key).map_or("-".into(), u64::to_string);
        let started = run.started_ns.map_or("unknown".into(), local_time);
        let command = clip(&homing_report::command_line(&run.argv), 72);
        rows.push([run.name.clone(), started, state(&run.state), count("done"), count("failed"), command]);
    }
    aligned(&rows, 3..5)
}

fn state(state: &RunState) -> String {
    match state {
        RunState::Ended { exit, .. } => format!("ended, exit {exit}"),
        RunState::Running { by } => format!("running on {}, pid {}", by.host, by.pid),
        RunState::Interrupted => "interrupted".into(),
        RunState::Unreadable { reason } => format!("unreadable: {reason}"),
    }
}

/// A time of this machine (`TZ`, /etc/localtime), with the name of its zone.
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

/// Writes to standard output; a reader that went away (`| head`) is no failure.
pub(crate) fn to_stdout(text: &str) -> Result<i32, Failure> {
    match std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::system(format!("cannot write to standard output: {e}")))
        }
        _ => Ok(0),
    }
}
