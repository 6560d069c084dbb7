//! `homing report`: prints the evidence of a run as lines, as JSON or as a page. It also lists failed tasks, and
//! compares runs.

use super::evidence::{JournalContent, evidence, found, read, read_found};
use super::run::again::{failures_json, inputs_of_failed, whole_json};
use super::runs::to_stdout;
use crate::cluster::{Cluster, ClusterArgs};
use crate::progress::columns;
use homing_account::usage::{Bill, Sizes};
use homing_model::fit::wrapped;
use homing_model::{Failure, document};
use homing_report::{ComparedRun, compared_json, compared_text};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    /// The run: its name, the beginning of its name, the one that --name gave it, or `last`. Several are compared; with
    /// --cost by the size of their clusters
    #[arg(value_name = "RUN", default_value = "last")]
    runs: Vec<String>,
    /// List all failed tasks: host, status, inputs, command and the last line of their error output
    #[arg(long, conflicts_with_all = ["html", "cost"])]
    failed: bool,
    /// With --failed: print the inputs of these tasks alone, each ended by NUL, as `homing run -0` reads them; for tasks
    /// of two inputs as `homing run -0 -n 2`
    #[arg(short = '0', long, requires = "failed", conflicts_with = "json")]
    null: bool,
    /// Write the evidence to one self-contained HTML file; `-` for standard output
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print the evidence as JSON
    #[arg(long)]
    json: bool,
    /// Print the cost of the run, at the prices of `[cost]` in cluster.toml, and the energy of its hosts
    #[arg(long)]
    cost: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Reads the journals and reports.
pub fn run(args: Args) -> Result<i32, Failure> {
    let cluster = if args.cost { Some(args.cluster.load()?) } else { None };
    match (&args.runs[..], cluster) {
        ([run], _) if args.failed => failed(run, &args),
        ([run], cluster) => one(run, &args, cluster),
        _ if args.failed => {
            Err(Failure::usage("--failed lists the tasks of one run").hint("homing report RUN --failed"))
        }
        _ if args.html.is_some() => Err(Failure::usage("--html draws one run").hint("homing report RUN --html FILE")),
        (_, Some(cluster)) => by_size(&args, cluster),
        (_, None) => side_by_side(&args),
    }
}

fn one(run: &str, args: &Args, cluster: Option<&Cluster>) -> Result<i32, Failure> {
    let cost = cluster.and_then(Cluster::cost);
    let read = read(run, args.html.is_some(), args.cost)?;
    if let Some(file) = &args.html {
        let page = homing_report::html(&read.kept, &read.tally);
        if file.as_os_str() == "-" {
            return to_stdout(&page);
        }
        homing_os::folder::write_file(file, page)
            .map_err(|e| Failure::system(format!("cannot write {}: {e}", file.display())))?;
    }
    let json = args.json.then(|| whole_json(&read.tally, failures_json(&read)));
    let bill = cluster.map(|cluster| Bill::of(read.usage, cluster));
    if let Some(mut json) = json {
        if let Some(bill) = &bill {
            json["cost"] = bill.json(cost);
        }
        return print_json(&json);
    }
    evidence(&read.tally)?;
    bill.map_or(Ok(0), |bill| to_stdout(&wrapped(&bill.lines(cost), columns())))
}

fn failed(run: &str, args: &Args) -> Result<i32, Failure> {
    let read = read(run, false, false)?;
    let inputs = inputs_of_failed(&read);
    if args.null {
        let bytes = read.failures.inputs(&inputs).map_err(|task| {
            let failure = Failure::usage(format!("run {}: the inputs of task {task} are not known", read.name));
            failure.hint(format!("homing resume --failed {}", read.name))
        })?;
        let mut out = std::io::stdout().lock();
        let written = out.write_all(&bytes).and_then(|()| out.flush());
        return written.map(|()| 0).map_err(|e| Failure::unwritten("writing inputs to standard output", &e));
    }
    match args.json {
        true => print_json(&serde_json::json!({ "run": read.name, "failures": read.failures.json(&inputs) })),
        false => to_stdout(&wrapped(&read.failures.text(&inputs), columns())),
    }
}

fn by_size(args: &Args, cluster: &Cluster) -> Result<i32, Failure> {
    let cost = cluster.cost();
    let mut sizes = Sizes::default();
    for run in different(&args.runs)? {
        let JournalContent { name, tally, usage, .. } = read_found(run, false, true, |_| ())?;
        sizes.add(name, &tally, &Bill::of(usage, cluster));
    }
    if args.json { print_json(&sizes.json(cost)) } else { to_stdout(&sizes.table(cost, columns())) }
}

/// Returns the folders and names of several runs. Refuses the same run twice, since two of its names may hide that.
fn different(runs: &[String]) -> Result<Vec<(PathBuf, String)>, Failure> {
    let real = |dir: &Path| dir.canonicalize().unwrap_or_else(|_| dir.to_path_buf());
    let mut all: Vec<(PathBuf, String)> = Vec::new();
    for run in runs {
        let (dir, name) = found(run)?;
        if all.iter().any(|(other, _)| real(other) == real(&dir)) {
            let why = format!("run {name} is named twice: there is nothing to compare");
            return Err(Failure::usage(why).hint("homing report A B, with two runs of `homing runs`"));
        }
        all.push((dir, name));
    }
    Ok(all)
}

fn side_by_side(args: &Args) -> Result<i32, Failure> {
    let mut runs = Vec::new();
    for (dir, name) in different(&args.runs)? {
        let mut compared = ComparedRun::new(&name);
        let read = read_found((dir, name), false, false, |event| compared.add(event))?;
        if read.tally.is_interrupted() {
            compared.interrupt();
        }
        if args.json {
            compared.add_failures(failures_json(&read));
        }
        runs.push(compared);
    }
    if args.json { print_json(&compared_json(&runs)) } else { to_stdout(&compared_text(&runs, columns())) }
}

fn print_json(value: &Value) -> Result<i32, Failure> {
    to_stdout(&document::text(value))
}
