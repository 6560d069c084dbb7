//! The sums over journals and other sources.

use crate::usage::table::{energy_of_all, sorted};
use crate::usage::{UsageGrouping, UsageLine, pruned};
use homing_cluster::{Cluster, Cost};
use homing_report::{RunUsage, Taken, UsageKey, Used};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// The sums.
#[derive(Default)]
pub struct Sums {
    /// The earliest end that counts, ns since the epoch.
    pub since_ns: i64,
    /// By user and key, so that a line from two hosts that share a home counts once.
    used: BTreeMap<(String, UsageKey), Used>,
    /// The runs that are counted by their journals.
    pub runs: BTreeSet<String>,
    /// Why journals could not be read, or not to their end, and the damaged lines of pruned runs.
    pub damaged: Vec<String>,
}

impl Sums {
    /// Makes empty sums: of all, or only of runs and jobs that ended in this time until now.
    pub fn new(since: Option<Duration>) -> Sums {
        let before_now =
            |age: Duration| homing_os::clock::system_ns() - i64::try_from(age.as_nanos()).unwrap_or(i64::MAX);
        Sums { since_ns: since.map_or(i64::MIN, before_now), ..Sums::default() }
    }

    /// Adds the runs of a folder, and those that were pruned from it.
    pub fn take_folder(&mut self, root: &Path) -> Result<(), String> {
        let cannot = |e: std::io::Error| format!("cannot read {}: {e}", root.display());
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
            self.take(UsageLine { user: user.clone(), key, used });
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
        usage.rows().for_each(|(key, used)| self.take(UsageLine { user: user.clone(), key, used }));
    }

    /// Adds a line; it replaces one of the same user and key.
    pub fn take(&mut self, line: UsageLine) {
        self.used.insert((line.user, line.key), line.used);
    }

    /// Returns the sums, by the names of rows.
    pub fn by(&self, by: UsageGrouping) -> BTreeMap<String, Used> {
        let mut rows: BTreeMap<String, Used> = BTreeMap::new();
        for ((user, key), used) in &self.used {
            rows.entry(by.row(user, key).to_string()).or_default().add(used);
        }
        rows
    }

    /// Returns the energy, by the names of rows.
    pub fn energy(&self, by: UsageGrouping, cluster: &Cluster) -> BTreeMap<String, Taken> {
        let mut rows: BTreeMap<String, Taken> = BTreeMap::new();
        for ((user, key), used) in &self.used {
            let taken = used.taken(&key.host, cluster.watts(&key.host));
            rows.entry(by.row(user, key).to_string()).or_default().add(&taken);
        }
        rows
    }

    /// Returns all lines as JSON, one for each user and key.
    pub fn lines(&self) -> String {
        let used = self.used.iter().map(|((user, key), used)| UsageLine {
            user: user.clone(),
            key: key.clone(),
            used: used.clone(),
        });
        used.map(|line| serde_json::to_string(&line).unwrap_or_default() + "\n").collect()
    }

    /// Returns the sums of these rows, and of all, for programs.
    pub fn json(
        &self,
        rows: &BTreeMap<String, Used>,
        all: &Used,
        energy: &BTreeMap<String, Taken>,
        cost: Option<&Cost>,
    ) -> Value {
        let object = |used: &Used, taken: Option<&Taken>| {
            let mut object = serde_json::to_value(used).unwrap_or_default();
            object["cost"] = json!(cost.and_then(Cost::host_hour).map(|price| used.cost(price)));
            object["energy"] = json!(taken.map(Taken::json));
            object["energy_cost"] = json!(taken.zip(cost).and_then(|(taken, cost)| cost.of_energy(taken)));
            object["cpu_use"] = json!(used.cpu_use());
            object["memory_use"] = json!(used.memory_use());
            object
        };
        let named = sorted(rows).into_iter().map(|(name, used)| {
            let mut row = object(used, energy.get(name));
            row["name"] = json!(name);
            row
        });
        json!({
            "rows": named.collect::<Vec<_>>(), "all": object(all, energy_of_all(energy).as_ref()),
            "currency": cost.map(|cost| &cost.currency), "not_counted": self.damaged,
        })
    }
}

/// Returns the login name of a file's owner.
fn owner(path: &Path) -> String {
    fs::symlink_metadata(path).map_or_else(|_| "-".into(), |file| homing_queue::user_name(file.uid()))
}
