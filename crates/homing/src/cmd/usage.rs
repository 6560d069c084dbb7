//! `homing usage`: what runs used, added up from their journals, and what it cost.

mod metrics;

use super::check::write_whole;
use super::pruned;
use super::runs::to_stdout;
use crate::cluster::{ClusterArgs, Cost};
use crate::failure::Failure;
use homing_batch::parse_duration;
use homing_model::text::{aligned, shown};
use homing_model::units::{bytes, count, span};
use homing_report::{Key, RunUsage, Used};
use serde_json::{Value, json};
use std::collections::BTreeMap;
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
    cluster: ClusterArgs,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum By {
    Command,
    Host,
    Run,
    User,
}

impl By {
    /// As a label.
    fn word(self) -> &'static str {
        match self {
            By::Command => "command",
            By::Host => "host",
            By::Run => "run",
            By::User => "user",
        }
    }
}

/// Prints the sums.
pub fn run(args: Args) -> Result<i32, Failure> {
    let cost = args.cluster.load()?.cost().cloned();
    let folders = if args.folders.is_empty() { vec![homing_journal::root()] } else { args.folders };
    let before_now = |age: Duration| homing_clock::system_ns() - i64::try_from(age.as_nanos()).unwrap_or(i64::MAX);
    let mut sums = Sums { since_ns: args.since.map_or(i64::MIN, before_now), ..Sums::default() };
    for folder in &folders {
        sums.take_folder(folder, args.by)?;
    }
    sums.damaged.iter().for_each(|why| eprintln!("homing: what follows is not counted: {why}"));
    if let Some(file) = &args.prometheus {
        let text = metrics::text(sums.sorted(), args.by.word(), cost.as_ref(), homing_clock::system_ns());
        return write_whole(file, &text).map(|()| 0);
    }
    let all: Used = sums.rows.values().sum();
    if args.json {
        let text = serde_json::to_string_pretty(&sums.json(&all, cost.as_ref())).map_err(Failure::system)?;
        return to_stdout(&(text + "\n"));
    }
    if sums.rows.is_empty() {
        let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        eprintln!("homing: nothing has run in {}", folders.join(", "));
        return Ok(0);
    }
    to_stdout(&sums.table(&all, args.by, cost.as_ref()))
}

#[derive(Default)]
struct Sums {
    since_ns: i64,
    rows: BTreeMap<String, Used>,
    /// Why journals could not be read, or not to their end, and which lines of pruned runs.
    damaged: Vec<String>,
}

impl Sums {
    fn take_folder(&mut self, root: &Path, by: By) -> Result<(), Failure> {
        let cannot = |e: std::io::Error| Failure::system(format!("cannot read {}: {e}", root.display()));
        match fs::read_dir(root) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(cannot(e)),
            _ => {}
        }
        for name in homing_journal::names(root) {
            self.take_run(&root.join(&name), &name, by);
        }
        let user = owner(&root.join(homing_journal::PRUNED));
        let (gone, damaged) = pruned::kept(root).map_err(cannot)?;
        self.damaged.extend(damaged);
        for (key, used) in gone {
            if used.last_ns >= self.since_ns {
                self.take(by, &user, &key, &used);
            }
        }
        Ok(())
    }

    fn take_run(&mut self, dir: &Path, name: &str, by: By) {
        let user = owner(&dir.join(homing_journal::FILE));
        let mut usage = RunUsage::new(name, self.since_ns);
        let events = homing_journal::replay(dir).map_err(|e| self.damaged.push(e.to_string()));
        for event in events.into_iter().flatten() {
            match event {
                Ok(event) => usage.add(&event),
                Err(e) => self.damaged.push(e.to_string()),
            }
        }
        usage.rows().for_each(|(key, used)| self.take(by, &user, &key, &used));
    }

    fn take(&mut self, by: By, user: &str, key: &Key, used: &Used) {
        let row = match by {
            By::Command => &key.command,
            By::Host => &key.host,
            By::Run => &key.run,
            By::User => user,
        };
        self.rows.entry(row.to_string()).or_default().add(used);
    }

    /// The rows, those that held slots longest first.
    fn sorted(&self) -> Vec<(&String, &Used)> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by_key(|(_, used)| std::cmp::Reverse(used.slot_us));
        rows
    }

    fn json(&self, all: &Used, cost: Option<&Cost>) -> Value {
        let object = |used: &Used| {
            let mut object = serde_json::to_value(used).unwrap_or_default();
            object["cost"] = json!(cost.map(|cost| used.cost(cost.host_hour)));
            object
        };
        let rows = self.sorted().into_iter().map(|(name, used)| {
            let mut row = object(used);
            row["name"] = json!(name);
            row
        });
        json!({
            "rows": rows.collect::<Vec<_>>(), "all": object(all),
            "currency": cost.map(|cost| &cost.currency), "not_counted": self.damaged,
        })
    }

    fn table(&self, all: &Used, by: By, cost: Option<&Cost>) -> String {
        let first = by.word().to_ascii_uppercase();
        let price = cost.map_or("", |cost| &cost.currency);
        let times = ["SLOT TIME", "HOST TIME", "CPU TIME", "GB-HOURS"];
        let [slot, host, cpu, memory] = times;
        let head = [first.as_str(), "ATTEMPTS", "FAILED", slot, host, cpu, memory, "AT HOME", "NETWORK", "READ", price];
        let mut rows = vec![head.map(String::from)];
        rows.extend(self.sorted().into_iter().map(|(name, used)| cells(&shown(name), used, cost)));
        if self.rows.len() > 1 {
            rows.push(cells(&format!("({})", count(self.rows.len() as u64, "row")), all, cost));
        }
        aligned(&rows, 1..head.len())
    }
}

fn cells(name: &str, used: &Used, cost: Option<&Cost>) -> [String; 11] {
    let placed = used.attempts > used.unplaced;
    let known = |n: u64| if placed { bytes(n) } else { "-".into() };
    [
        name.to_string(),
        used.attempts.to_string(),
        used.failed.to_string(),
        span(used.slot_us),
        span(used.host_us),
        span(used.cpu_us),
        format!("{:.2}", used.memory_byte_s as f64 / 1e9 / 3600.0),
        known(used.local_bytes),
        known(used.remote_bytes),
        used.read_bytes.map_or("-".into(), bytes),
        cost.map_or(String::new(), |cost| format!("{:.2}", used.cost(cost.host_hour))),
    ]
}

/// The login name of a file's owner.
fn owner(path: &Path) -> String {
    fs::symlink_metadata(path).map_or_else(|_| "-".into(), |file| homing_queue::user_name(file.uid()))
}
