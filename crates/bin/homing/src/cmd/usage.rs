//! `homing usage`: adds up the resources of runs from their journals, and their cost.

use super::public_file::write_whole;
use super::queue::EngineArgs;
use super::runs::to_stdout;
use super::targets::HostArgs;
use crate::cluster::ClusterArgs;
use crate::progress::columns;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use homing_account::usage::{JobFilter, Sums, UsageGrouping, UsageRequest};
use homing_batch::parse_duration;
use homing_model::{Failure, document, exit};
use homing_report::Used;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    /// Folders of runs: of other machines, of other users [default: this user's]
    #[arg(value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Add up the attempts for each of these
    #[arg(long, default_value = "command", value_parser = by())]
    by: UsageGrouping,
    /// Also add up ended jobs of the queue, or of Slurm's accounting
    #[arg(long, conflicts_with_all = ["folders", "prometheus"])]
    jobs: bool,
    /// With --jobs: the jobs of all users
    #[arg(short = 'u', long, requires = "jobs")]
    users: bool,
    /// Print the parts of the sums, one a line, as `-w` reads them
    #[arg(long, hide = true, conflicts_with_all = ["json", "prometheus", "hosts", "exclude", "group", "all", "exclude_group", "hostfile"])]
    lines: bool,
    /// Only runs and jobs that ended within this time: 12h, 7d
    #[arg(long, value_name = "AGE", value_parser = |text: &str| parse_duration("--since", text))]
    since: Option<Duration>,
    /// Also print the energy of the hosts, and its cost
    #[arg(long, conflicts_with_all = ["prometheus", "lines"])]
    cost: bool,
    /// Print the sums as JSON
    #[arg(long)]
    json: bool,
    /// Write the sums to a file for Prometheus's node exporter
    #[arg(long, value_name = "FILE", conflicts_with = "since")]
    prometheus: Option<PathBuf>,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(
        flatten,
        next_help_heading = "Also add up runs and jobs on these hosts, where homing must be installed; each counts once"
    )]
    targets: HostArgs,
}

fn by() -> impl TypedValueParser<Value = UsageGrouping> {
    let named =
        |word: String| UsageGrouping::ALL.into_iter().find(|by| by.word() == word).unwrap_or(UsageGrouping::Command);
    PossibleValuesParser::new(UsageGrouping::ALL.map(UsageGrouping::word)).map(named)
}

/// Prints the sums.
pub fn run(args: Args) -> Result<i32, Failure> {
    super::advise::are_folders(&args.folders)?;
    if args.targets.is_given() && !(args.folders.is_empty() && args.prometheus.is_none()) {
        return Err(Failure::usage("FOLDER and --prometheus are of this machine alone").hint("leave out the hosts"));
    }
    let cluster = args.cluster.load()?;
    let cost = cluster.cost().cloned();
    let others = args.targets.is_given().then(|| args.targets.chosen(cluster, None)).transpose()?;
    let mut sums = Sums::new(args.since);
    let folders = if args.folders.is_empty() { vec![homing_journal::root()] } else { args.folders };
    for folder in &folders {
        sums.take_folder(folder).map_err(Failure::system)?;
    }
    if args.jobs {
        let (all, since_ns) = (args.users, sums.since_ns);
        let engine = args.engine.open()?;
        let wanted = JobFilter { all, since_ns, runs: &sums.runs };
        let jobs = homing_account::usage::lines_of_jobs(engine.as_ref(), &wanted)?;
        jobs.into_iter().for_each(|line| sums.take(line));
    }
    let mut silent = 0;
    if let Some(hosts) = &others {
        let asked = UsageRequest { jobs: args.jobs, users: args.users, since: args.since };
        let (lines, failed) = homing_account::usage::lines_of_hosts(hosts, &asked);
        lines.into_iter().for_each(|line| sums.take(line));
        silent = failed.len();
        sums.damaged.extend(failed);
    }
    sums.damaged.iter().for_each(|why| eprintln!("homing: not counted: {why}"));
    if args.lines {
        return to_stdout(&sums.lines());
    }
    let rows = sums.by(args.by);
    if let Some(file) = &args.prometheus {
        let text = homing_account::usage::prometheus_of(&rows, args.by, cost.as_ref());
        return write_whole(file, &text).map(|()| 0);
    }
    let all: Used = rows.values().sum();
    if args.json {
        let energy = sums.energy(args.by, cluster);
        to_stdout(&document::text(sums.json(&rows, &all, &energy, cost.as_ref())))?;
    } else if rows.is_empty() {
        let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        eprintln!("homing: no runs in {}", folders.join(", "));
    } else {
        let energy = if args.cost { sums.energy(args.by, cluster) } else { Default::default() };
        to_stdout(&homing_account::usage::table(&rows, &all, args.by, cost.as_ref(), &energy, columns()))?;
    }
    Ok(if silent > 0 { exit::SYSTEM } else { 0 })
}
