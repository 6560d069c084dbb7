//! `homing report`: the evidence of a run, as lines, as JSON, as a page.

use super::runs::to_stdout;
use crate::cluster::{ClusterArgs, Cost};
use crate::failure::Failure;
use crate::progress::has_colors;
use homing_journal::JournalError;
use homing_model::Event;
use homing_model::text::shown;
use homing_model::units::span;
use homing_report::{RunUsage, Tally, Used};
use serde_json::json;
use std::path::PathBuf;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    /// The run: its name, the beginning of its name, or `last`
    #[arg(value_name = "RUN")]
    run: String,
    /// Draw it into one self-contained HTML file; `-` for standard output
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print the evidence as JSON
    #[arg(long)]
    json: bool,
    /// Tell what the run cost, at the price of `[cost]` in cluster.toml
    #[arg(long)]
    cost: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Reads the journal and reports.
pub fn run(args: Args) -> Result<i32, Failure> {
    let mut cost = if args.cost { Some((RunUsage::new("", i64::MIN), price(&args.cluster)?)) } else { None };
    let dir = homing_journal::find(&homing_journal::root(), &args.run).map_err(refused)?;
    let mut tally = Tally::new();
    let mut kept: Vec<Event> = Vec::new();
    for event in homing_journal::replay(&dir).map_err(Failure::system)? {
        match event {
            Ok(event) => {
                tally.add(&event);
                cost.iter_mut().for_each(|(usage, _)| usage.add(&event));
                if args.html.is_some() {
                    kept.push(event);
                }
            }
            // The rest of the evidence is still worth reading.
            Err(damage @ JournalError::Damaged { .. }) => eprintln!("homing: {damage}; the line is left out"),
            Err(e) => return Err(Failure::system(e)),
        }
    }
    if let Some(file) = &args.html {
        let page = homing_report::html(&kept);
        if file.as_os_str() == "-" {
            return to_stdout(&page);
        }
        std::fs::write(file, page).map_err(|e| Failure::system(format!("cannot write {}: {e}", file.display())))?;
    }
    let cost = cost.map(|(usage, price)| (usage.all(), price));
    if args.json {
        let mut told = tally.json();
        if let Some((used, price)) = &cost {
            told["cost"] = json!({
                "amount": used.cost(price.host_hour), "currency": price.currency, "host_us": used.host_us,
            });
        }
        return to_stdout(&(serde_json::to_string_pretty(&told).map_err(Failure::system)? + "\n"));
    }
    evidence(&tally)?;
    cost.map_or(Ok(0), |(used, price)| to_stdout(&cost_line(&used, &price)))
}

fn price(cluster: &ClusterArgs) -> Result<Cost, Failure> {
    let none =
        || Failure::usage("--cost: the cluster file has no price").hint("[cost] host_hour = 0.12, currency = \"EUR\"");
    cluster.load()?.cost().cloned().ok_or_else(none)
}

/// As a further line of the evidence.
fn cost_line(used: &Used, price: &Cost) -> String {
    let (amount, currency) = (used.cost(price.host_hour), shown(&price.currency));
    format!(
        "{:<11}{amount:.2} {currency}: {} of whole hosts at {} an hour\n",
        "cost",
        span(used.host_us),
        price.host_hour
    )
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
