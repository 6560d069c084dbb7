//! `homing hosts`: lists hosts, with their slots and their present load.

mod ansible;
mod history;
mod init;
mod metrics;
mod trust;

pub(super) use history::histories;

use super::asked::{HostReading, ask_all};
use super::queue::EngineArgs;
use super::targets::HostArgs;
use crate::cluster::{Cluster, ClusterArgs};
use crate::progress;
use crate::switched;
use homing_account::usage::{InForce, Serves};
use homing_batch::parse_duration_within;
use homing_model::{Failure, HostFacts, alike, document, exit, fit};
use homing_watch::history::columns;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `homing hosts`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    targets: HostArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Print JSON; an unknown value is null
    #[arg(long)]
    json: bool,
    /// Write a first cluster file for these hosts, ./cluster.toml or the one of --cluster; nothing is overwritten, and no
    /// host is contacted
    #[arg(long, value_name = "NODESET", conflicts_with_all = ["hosts", "exclude", "group", "all", "exclude_group", "hostfile", "json", "ansible", "prometheus", "watch", "history", "schedule", "lab"])]
    init: Option<String>,
    /// Fetch the ssh keys of hosts, show the fingerprints, and record new keys after a confirmation
    #[arg(long, conflicts_with_all = ["json", "ansible", "prometheus", "watch", "history", "schedule"])]
    trust: bool,
    /// Print a dynamic inventory of Ansible with the groups and addresses of cluster.toml; no host is contacted
    #[arg(long, conflicts_with_all = ["json", "watch", "history", "schedule"])]
    ansible: bool,
    /// Write hosts, queue, file servers, volumes and the sums of runs to a file for Prometheus's node exporter
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "ansible", "history", "schedule"])]
    prometheus: Option<PathBuf>,
    /// With --prometheus: folders of runs, also of other users [default: this user's]
    #[arg(long, value_name = "FOLDER", num_args = 1.., requires = "prometheus")]
    runs: Vec<PathBuf>,
    /// Show the hosts again after this time, until interrupted
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "5", value_parser = |text: &str| parse_duration_within("--watch", text, 1.0..=f64::INFINITY), conflicts_with_all = ["history", "schedule"])]
    watch: Option<Duration>,
    #[command(flatten)]
    history: history::HistoryOptions,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Prints a row a host.
pub fn run(mut args: Args) -> Result<i32, Failure> {
    if args.history.is_of_this_host() {
        return history::here(&args.history);
    }
    if let Some(hosts) = &args.init {
        return init::write(hosts, args.cluster.file());
    }
    let cluster = args.cluster.load()?;
    let names = args.targets.names(cluster)?;
    if args.trust {
        return trust::run(&names, args.history.consent);
    }
    if args.ansible {
        return crate::cmd::runs::to_stdout(&ansible::inventory(cluster, &names)?);
    }
    if args.history.is_wanted() {
        return history::run(&args.history, args.json, &names);
    }
    if args.runs.is_empty() {
        args.runs.push(homing_journal::root());
    }
    loop {
        let answers = ask_all(&names);
        let in_force = InForce::now(cluster, &args.runs);
        in_force.notes.iter().for_each(|why| eprintln!("homing: {why}"));
        let known = switched::all();
        let is_off = |name: &str, answer: &HostReading| answer.is_err() && known.off_s(name).is_some();
        let InForce { limits, servers, .. } = &in_force;
        if let Some(file) = &args.prometheus {
            metrics::write(
                file,
                &metrics::HostsMetrics { args: &args, cluster, hosts: &names, answers: &answers, in_force: &in_force },
            )?;
        } else if args.json {
            let with = |n: &String, mut row: Value| {
                row["io_limit"] = json!(limits.get(n));
                row
            };
            let row = |n: &String, a: &HostReading| with(n, as_json(n, a, cluster, is_off(n, a)));
            let rows: Vec<Value> = names.iter().zip(&answers).map(|(n, a)| row(n, a)).collect();
            let servers: Vec<Value> = servers.iter().map(Serves::as_json).collect();
            print!("{}", document::line(json!({ "hosts": rows, "servers": servers })));
        } else {
            print_table(&names, &answers, limits, cluster, is_off);
            print!("{}", Serves::table(servers));
        }
        let Some(pause) = args.watch else {
            // The file shows which hosts are silent. A timer's service has not failed because of them.
            let silent = || names.iter().zip(&answers).any(|(name, answer)| answer.is_err() && !is_off(name, answer));
            let failed = args.prometheus.is_none() && silent();
            return Ok(if failed { exit::SYSTEM } else { 0 });
        };
        std::thread::sleep(pause);
    }
}

fn as_json(name: &str, answer: &HostReading, cluster: &Cluster, off: bool) -> Value {
    match answer {
        Err(_) if off => json!({"host": name, "status": "off"}),
        Err(reason) => json!({"host": name, "status": "unavail", "reason": reason}),
        Ok((facts, first, last)) => {
            let more = json!({
                "host": name, "status": "ok", "at_ns": last.at_ns, "cores": facts.cores,
                "slots": cluster.slots_of(name).unwrap_or(facts.cores), "memory_bytes": facts.memory_bytes,
                "gpus": gpus_of(name, facts, cluster), "gpu_percent": facts.indices.get(homing_probe::GPU_INDEX),
            });
            columns::object(&last.since(first), more)
        }
    }
}

/// Returns the graphics processors of a host: those of the cluster file, or else those that it has.
fn gpus_of(name: &str, facts: &HostFacts, cluster: &Cluster) -> u64 {
    cluster.gpus_of(name).unwrap_or(u64::from(facts.gpus))
}

/// Returns the cell of a host's graphics processors: their number, and how busy they are if that is known.
fn gpu_cell(gpus: u64, facts: &HostFacts) -> String {
    match (gpus, facts.indices.get(homing_probe::GPU_INDEX)) {
        (0, _) => "-".into(),
        (gpus, None) => gpus.to_string(),
        (gpus, Some(percent)) => format!("{gpus}:{percent:.0}%"),
    }
}

/// Cells of a row: name, status, cores, the load indices, processors of graphics, and the limit of tasks.
const CELLS: usize = 3 + columns::COUNT + 2;

/// Formats the rows in columns of fixed widths, so that those of --watch stay in place. A narrow terminal gets columns
/// as wide as their cells.
fn table(rows: &[[String; CELLS]]) -> String {
    let line = |row: &[String; CELLS]| {
        let [name, status, cores, rest @ .., gpus, limit] = row;
        let optional = |cell: &String| if cell.is_empty() { String::new() } else { format!("{cell:>8}") };
        let (gpus, limit) = (optional(gpus), optional(limit));
        let line = format!("{name:<18} {status:>8} {cores:>5}{}{gpus}{limit}", columns::line(rest));
        line.trim_end().to_string() + "\n"
    };
    let whole: String = rows.iter().map(line).collect();
    match fit::exceeded(&whole, progress::columns()) {
        Some(most) => fit::aligned(rows, 1..CELLS, Some(most)),
        None => whole,
    }
}

fn print_table(
    names: &[String],
    answers: &[HostReading],
    limits: &BTreeMap<String, u32>,
    cluster: &Cluster,
    is_off: impl Fn(&str, &HostReading) -> bool,
) {
    let row = |first: [&str; 3], rest: [String; columns::COUNT], last: [String; 2]| -> [String; CELLS] {
        let mut cells = first.into_iter().map(String::from).chain(rest).chain(last);
        std::array::from_fn(|_| cells.next().unwrap_or_default())
    };
    let known = |(name, answer): (&String, &HostReading)| {
        answer.as_ref().map_or(0, |(facts, ..)| gpus_of(name, facts, cluster))
    };
    let gpus: Vec<u64> = names.iter().zip(answers).map(known).collect();
    let has_gpus = gpus.iter().any(|gpus| *gpus > 0);
    let head = if limits.is_empty() { String::new() } else { "limit".into() };
    let gpu_head = if has_gpus { "gpus".to_string() } else { String::new() };
    let mut rows = vec![row(["HOST_NAME", "status", "cores"], columns::names(), [gpu_head, head])];
    for ((name, answer), gpus) in names.iter().zip(answers).zip(gpus) {
        let Ok((facts, first, last)) = answer else {
            let status = if is_off(name, answer) { "off" } else { "unavail" };
            rows.push(row([name, status, ""], Default::default(), Default::default()));
            continue;
        };
        let limit = limits.get(name).map_or(String::new(), u32::to_string);
        let gpus = if has_gpus { gpu_cell(gpus, facts) } else { String::new() };
        rows.push(row([name, "ok", &facts.cores.to_string()], columns::cells(&last.since(first)), [gpus, limit]));
    }
    print!("{}", table(&rows));
    let silent = names.iter().zip(answers).filter(|(name, answer)| !is_off(name, answer));
    let silent = silent.filter_map(|(name, answer)| Some((name.as_str(), answer.as_ref().err()?)));
    alike::folded(silent.map(|(name, why)| (name, why.as_str()))).iter().for_each(|line| eprintln!("homing: {line}"));
}
