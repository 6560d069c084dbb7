//! `homing usage`: what runs used, added up from their journals, and what it cost.

mod far;
mod jobs;
mod metrics;

use super::check::write_whole;
use super::pruned;
use super::queue::EngineArgs;
use super::runs::to_stdout;
use crate::cluster::{ClusterArgs, Cost};
use crate::failure::{Failure, exit};
use homing_batch::parse_duration;
use homing_model::text::{aligned, shown};
use homing_model::units::{bytes, count, span};
use homing_report::{Key, RunUsage, Used};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    /// Folders of runs: of other machines, of other users [default: this user's]
    #[arg(value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// What is added up: the attempts of each command, host, run or user
    #[arg(long, value_enum, default_value_t = By::Command)]
    by: By,
    /// Also jobs of the queue, or of Slurm by its books, that have ended
    #[arg(long, conflicts_with_all = ["folders", "prometheus"])]
    jobs: bool,
    /// With --jobs: those of all users
    #[arg(short = 'u', long, requires = "jobs")]
    users: bool,
    /// Also what these hosts have, which need homing; each run and each job counts once
    #[arg(short = 'w', long, value_name = "NODESET", conflicts_with_all = ["folders", "prometheus"])]
    hosts: Option<String>,
    /// What is added up, a line for each, as `-w` reads it
    #[arg(long, hide = true, conflicts_with_all = ["json", "prometheus", "hosts"])]
    lines: bool,
    /// Only what ended in this time until now: 12h, 7d
    #[arg(long, value_name = "AGE", value_parser = |text: &str| parse_duration("--since", text))]
    since: Option<Duration>,
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
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum By {
    Command,
    Host,
    Run,
    User,
    Project,
}

impl By {
    /// As a label.
    fn word(self) -> &'static str {
        match self {
            By::Command => "command",
            By::Host => "host",
            By::Run => "run",
            By::User => "user",
            By::Project => "project",
        }
    }
}

/// What one user's attempts of one run used on one host, or what a job used.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Line {
    user: String,
    key: Key,
    used: Used,
}

/// Prints the sums.
pub fn run(mut args: Args) -> Result<i32, Failure> {
    let cluster = args.cluster.load()?;
    let cost = cluster.cost().cloned();
    let others = args.hosts.take().map(|named| cluster.hosts(Some(&named))).transpose()?;
    let mut sums = Sums::new(args.since);
    let folders = if args.folders.is_empty() { vec![homing_journal::root()] } else { args.folders };
    for folder in &folders {
        sums.take_folder(folder)?;
    }
    if args.jobs {
        let (all, since_ns) = (args.users, sums.since_ns);
        let jobs = jobs::lines(&args.engine, &jobs::Wanted { all, since_ns, runs: &sums.runs })?;
        jobs.into_iter().for_each(|line| sums.take(line));
    }
    let mut silent = 0;
    if let Some(hosts) = &others {
        let asked = far::Asked { jobs: args.jobs, users: args.users, since: args.since };
        let (lines, failed) = far::lines(hosts, &asked);
        lines.into_iter().for_each(|line| sums.take(line));
        silent = failed.len();
        sums.damaged.extend(failed);
    }
    sums.damaged.iter().for_each(|why| eprintln!("homing: what follows is not counted: {why}"));
    if args.lines {
        return to_stdout(&sums.lines());
    }
    let rows = sums.by(args.by);
    if let Some(file) = &args.prometheus {
        let text = metrics::text(sorted(&rows), args.by.word(), cost.as_ref(), homing_clock::system_ns());
        return write_whole(file, &text).map(|()| 0);
    }
    let all: Used = rows.values().sum();
    if args.json {
        let text = serde_json::to_string_pretty(&sums.json(&rows, &all, cost.as_ref())).map_err(Failure::system)?;
        to_stdout(&(text + "\n"))?;
    } else if rows.is_empty() {
        let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        eprintln!("homing: nothing has run in {}", folders.join(", "));
    } else {
        to_stdout(&table(&rows, &all, args.by, cost.as_ref()))?;
    }
    Ok(if silent > 0 { exit::SYSTEM } else { 0 })
}

#[derive(Default)]
struct Sums {
    since_ns: i64,
    /// By user and key: what is told twice, by two hosts that share a home, counts once.
    used: BTreeMap<(String, Key), Used>,
    /// The runs that are counted by their journals.
    runs: BTreeSet<String>,
    /// Why journals could not be read, or not to their end, and which lines of pruned runs.
    damaged: Vec<String>,
}

impl Sums {
    fn new(since: Option<Duration>) -> Sums {
        let before_now = |age: Duration| homing_clock::system_ns() - i64::try_from(age.as_nanos()).unwrap_or(i64::MAX);
        Sums { since_ns: since.map_or(i64::MIN, before_now), ..Sums::default() }
    }

    fn take_folder(&mut self, root: &Path) -> Result<(), Failure> {
        let cannot = |e: std::io::Error| Failure::system(format!("cannot read {}: {e}", root.display()));
        match fs::read_dir(root) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(cannot(e)),
            _ => {}
        }
        for name in homing_journal::names(root) {
            self.take_run(&root.join(&name), &name);
        }
        let user = owner(&root.join(homing_journal::PRUNED));
        let (gone, damaged) = pruned::kept(root).map_err(cannot)?;
        self.damaged.extend(damaged);
        let since_ns = self.since_ns;
        for (key, used) in gone.into_iter().filter(|(_, used)| used.last_ns >= since_ns) {
            self.runs.insert(key.run.clone());
            self.take(Line { user: user.clone(), key, used });
        }
        Ok(())
    }

    fn take_run(&mut self, dir: &Path, name: &str) {
        let user = owner(&dir.join(homing_journal::FILE));
        let mut usage = RunUsage::new(name, self.since_ns);
        let events = homing_journal::replay(dir).map_err(|e| self.damaged.push(e.to_string()));
        for event in events.into_iter().flatten() {
            match event {
                Ok(event) => usage.add(&event),
                Err(e) => self.damaged.push(e.to_string()),
            }
        }
        self.runs.insert(name.into());
        usage.rows().for_each(|(key, used)| self.take(Line { user: user.clone(), key, used }));
    }

    fn take(&mut self, line: Line) {
        self.used.insert((line.user, line.key), line.used);
    }

    fn by(&self, by: By) -> BTreeMap<String, Used> {
        let mut rows: BTreeMap<String, Used> = BTreeMap::new();
        for ((user, key), used) in &self.used {
            let row = match by {
                By::Command => &key.command,
                By::Host => &key.host,
                By::Run => &key.run,
                By::User => user,
                By::Project if key.project.is_empty() => "-",
                By::Project => &key.project,
            };
            rows.entry(row.to_string()).or_default().add(used);
        }
        rows
    }

    fn lines(&self) -> String {
        let used = self.used.iter().map(|((user, key), used)| Line {
            user: user.clone(),
            key: key.clone(),
            used: used.clone(),
        });
        used.map(|line| serde_json::to_string(&line).unwrap_or_default() + "\n").collect()
    }

    fn json(&self, rows: &BTreeMap<String, Used>, all: &Used, cost: Option<&Cost>) -> Value {
        let object = |used: &Used| {
            let mut object = serde_json::to_value(used).unwrap_or_default();
            object["cost"] = json!(cost.map(|cost| used.cost(cost.host_hour)));
            object["cpu_use"] = json!(used.cpu_use());
            object["memory_use"] = json!(used.memory_use());
            object
        };
        let named = sorted(rows).into_iter().map(|(name, used)| {
            let mut row = object(used);
            row["name"] = json!(name);
            row
        });
        json!({
            "rows": named.collect::<Vec<_>>(), "all": object(all),
            "currency": cost.map(|cost| &cost.currency), "not_counted": self.damaged,
        })
    }
}

/// The rows, those that held slots longest first.
fn sorted(rows: &BTreeMap<String, Used>) -> Vec<(&String, &Used)> {
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_by_key(|(_, used)| std::cmp::Reverse(used.slot_us));
    rows
}

fn table(rows: &BTreeMap<String, Used>, all: &Used, by: By, cost: Option<&Cost>) -> String {
    let first = by.word().to_ascii_uppercase();
    // Runs ask for no memory and wait in no queue: without jobs there is nothing to tell of that.
    let [memory_use, queued] = if all.queued_us.is_some() { ["MEM USE", "QUEUED"] } else { ["", ""] };
    let price = cost.map_or("", |cost| &cost.currency);
    let head = [
        &first,
        "ATTEMPTS",
        "FAILED",
        "SLOT TIME",
        "HOST TIME",
        "CPU TIME",
        "CPU USE",
        "GB-HOURS",
        "AT HOME",
        "NETWORK",
        "READ",
        price,
        memory_use,
        queued,
    ];
    let mut cells = vec![head.map(String::from)];
    cells.extend(sorted(rows).into_iter().map(|(name, used)| row(&shown(name), used, cost)));
    if rows.len() > 1 {
        cells.push(row(&format!("({})", count(rows.len() as u64, "row")), all, cost));
    }
    aligned(&cells, 1..head.len())
}

fn row(name: &str, used: &Used, cost: Option<&Cost>) -> [String; 14] {
    let placed = used.attempts > used.unplaced;
    let known = |n: u64| if placed { bytes(n) } else { "-".into() };
    let share = |part: Option<f64>| part.map_or("-".into(), |part| format!("{:.0} %", 100.0 * part));
    let jobs = |text: String| if used.queued_us.is_some() { text } else { String::new() };
    [
        name.to_string(),
        used.attempts.to_string(),
        used.failed.to_string(),
        span(used.slot_us),
        span(used.host_us),
        span(used.cpu_us),
        share(used.cpu_use()),
        format!("{:.2}", used.memory_byte_s as f64 / 1e9 / 3600.0),
        known(used.local_bytes),
        known(used.remote_bytes),
        used.read_bytes.map_or("-".into(), bytes),
        cost.map_or(String::new(), |cost| format!("{:.2}", used.cost(cost.host_hour))),
        jobs(share(used.memory_use())),
        jobs(span(used.queued_us.unwrap_or(0))),
    ]
}

/// The login name of a file's owner.
fn owner(path: &Path) -> String {
    fs::symlink_metadata(path).map_or_else(|_| "-".into(), |file| homing_queue::user_name(file.uid()))
}
