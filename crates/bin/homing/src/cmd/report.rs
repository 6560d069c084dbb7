//! `homing report`: the evidence of a run, as lines, as JSON, as a page.

use super::runs::to_stdout;
use crate::cluster::{Cluster, ClusterArgs};
use crate::progress::has_colors;
use homing_account::usage::{Bill, Sizes};
use homing_journal::JournalError;
use homing_model::{Event, Failure};
use homing_report::{RunUsage, Tally};
use serde_json::Value;
use std::path::PathBuf;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    /// The run: its name, the beginning of its name, or `last`; with --cost several, side by side by the size of their clusters
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// Draw it into one self-contained HTML file; `-` for standard output
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print the evidence as JSON
    #[arg(long)]
    json: bool,
    /// Tell what the run cost, at the prices of `[cost]` in cluster.toml, and the energy of its hosts
    #[arg(long)]
    cost: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Reads the journals and reports.
pub fn run(args: Args) -> Result<i32, Failure> {
    let cluster = if args.cost { Some(args.cluster.load()?) } else { None };
    let cost = cluster.and_then(Cluster::cost);
    if let [run] = &args.runs[..] {
        let read = read(run, args.html.is_some(), args.cost)?;
        if let Some(file) = &args.html {
            let page = homing_report::html(&read.kept);
            if file.as_os_str() == "-" {
                return to_stdout(&page);
            }
            homing_os::folder::write_file(file, page)
                .map_err(|e| Failure::system(format!("cannot write {}: {e}", file.display())))?;
        }
        let bill = cluster.as_ref().map(|cluster| Bill::of(read.usage, cluster));
        if args.json {
            let mut told = read.tally.json();
            if let Some(bill) = &bill {
                told["cost"] = bill.json(cost);
            }
            return print_json(&told);
        }
        evidence(&read.tally)?;
        return bill.map_or(Ok(0), |bill| to_stdout(&bill.lines(cost)));
    }
    if args.html.is_some() {
        return Err(Failure::usage("--html draws one run").hint("homing report RUN --html FILE"));
    }
    let Some(cluster) = &cluster else {
        return Err(
            Failure::usage("the report of several runs is that of their cost").hint("homing report --cost RUN RUN")
        );
    };
    let mut sizes = Sizes::default();
    for run in &args.runs {
        let Read { name, tally, usage, .. } = read(run, false, true)?;
        sizes.add(name, &tally, &Bill::of(usage, cluster));
    }
    if args.json { print_json(&sizes.json(cost)) } else { to_stdout(&sizes.table(cost)) }
}

/// What a journal has.
struct Read {
    name: String,
    tally: Tally,
    usage: RunUsage,
    /// All events, where they are asked for.
    kept: Vec<Event>,
}

fn read(run: &str, keep: bool, count: bool) -> Result<Read, Failure> {
    let dir = homing_journal::find(&homing_journal::root(), run).map_err(refused)?;
    let name = dir.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    let (mut tally, mut usage, mut kept) = (Tally::new(), RunUsage::new(&name, i64::MIN), Vec::new());
    for event in homing_journal::replay(&dir).map_err(Failure::system)? {
        match event {
            Ok(event) => {
                tally.add(&event);
                if count {
                    usage.add(&event);
                }
                if keep {
                    kept.push(event);
                }
            }
            // The rest of the evidence is still worth reading.
            Err(damage @ JournalError::Damaged { .. }) => eprintln!("homing: {damage}; the line is left out"),
            Err(e) => return Err(Failure::system(e)),
        }
    }
    Ok(Read { name, tally, usage, kept })
}

fn print_json(told: &Value) -> Result<i32, Failure> {
    to_stdout(&(serde_json::to_string_pretty(told).map_err(Failure::system)? + "\n"))
}

/// Tells how a run is called, and what shows more of it.
pub(super) fn tell_run(name: &str) {
    eprintln!("run {name}: homing report {name}");
}

/// Prints the evidence for people.
pub(super) fn evidence(tally: &Tally) -> Result<i32, Failure> {
    to_stdout(&tally.text(has_colors(std::io::stdout())))
}

pub(super) fn refused(error: JournalError) -> Failure {
    match error {
        JournalError::NotFound { .. } | JournalError::Ambiguous { .. } => Failure::usage(error),
        other => Failure::system(other),
    }
}
