//! The users of each storage server, and its limits.

use homing_cluster::Cluster;
use homing_dispatch::source::leases::ServerSection;
use homing_lease::LeaseFolder;
use homing_model::Event;
use homing_model::event::EventKind;
use homing_model::metrics::{MetricKind, Metrics, bounded};
use homing_model::text::shown;
use homing_report::Now;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A folder of leases that does not answer within this time is passed over.
const PATIENCE: Duration = Duration::from_millis(500);

/// The users of a storage server that is no host of the run.
pub struct Serves {
    /// Its name.
    pub server: String,
    /// Whether Slurm counts its jobs, instead of leases.
    pub by_slurm: bool,
    /// The most tasks and jobs of all users together at once, if known.
    pub limit: Option<u32>,
    /// The number of each user.
    pub users: Vec<(String, u32)>,
}

impl Serves {
    fn name(&self) -> String {
        format!("{}{}", self.server, if self.by_slurm { ", Slurm" } else { "" })
    }

    /// Returns how many there are now.
    pub fn tasks(&self) -> u32 {
        self.users.iter().map(|(_, held)| held).sum()
    }

    /// Returns it for programs.
    pub fn as_json(&self) -> Value {
        let users: BTreeMap<&str, u32> = self.users.iter().map(|(user, held)| (user.as_str(), *held)).collect();
        json!({"server": self.name(), "tasks": self.tasks(), "limit": self.limit, "users": users})
    }

    /// Returns a row for each, under a head; empty if there are none.
    pub fn table(servers: &[Serves]) -> String {
        let row = |one: &Serves| {
            let users: Vec<String> = one.users.iter().map(|(user, held)| format!("{user} {held}")).collect();
            let limit = one.limit.map_or("-".into(), |limit| limit.to_string());
            format!("{:<18} {:>8} {limit:>5}  {}\n", shown(&one.name()), one.tasks(), shown(&users.join(", ")))
        };
        let head = format!("\n{:<18} {:>8} {:>5}  users\n", "SERVER", "tasks", "limit");
        if servers.is_empty() { String::new() } else { head + &servers.iter().map(row).collect::<String>() }
    }
}

/// Returns the servers whose jobs Slurm counts, if Slurm answers.
fn licensed(cluster: &Cluster, notes: &mut Vec<String>) -> Vec<Serves> {
    let servers = cluster.servers();
    if !homing_scheduler::slurm::ask::is_configured() || servers.values().all(|server| server.license.is_none()) {
        return Vec::new();
    }
    let all = homing_scheduler::slurm::ask::licenses().unwrap_or_else(|why| {
        notes.push(why.to_string());
        Vec::new()
    });
    let one = |(server, said): (String, ServerSection)| {
        let license = all.iter().find(|license| Some(&license.name) == said.license.as_ref())?;
        let users = license.users.iter().map(|(user, held)| (user.clone(), *held)).collect();
        Some(Serves { server, by_slurm: true, limit: Some(license.total), users })
    };
    servers.into_iter().filter_map(one).collect()
}

/// Returns the present state of the servers for which a cluster file names a folder of leases.
fn looked_at(cluster: &Cluster) -> impl Iterator<Item = Serves> {
    cluster.servers().into_iter().filter_map(|(server, said)| {
        let limit = said.io.map(|io| io.get());
        let place = LeaseFolder { folder: said.leases?, server: server.clone(), limit, unfit: None };
        let seen =
            homing_os::threads::within(PATIENCE, move || homing_lease::look(&place)).flatten().unwrap_or_default();
        let users = seen.users.into_iter().map(|(uid, held)| (homing_queue::user_name(uid), held)).collect();
        Some(Serves { server, by_slurm: false, limit: seen.limit.or(limit), users })
    })
}

/// The state of runs that are under way on this machine, and the users of each server.
#[derive(Default)]
pub struct InForce {
    /// The most tasks that these runs give each host's storage, added up.
    pub limits: BTreeMap<String, u32>,
    /// Servers that are no hosts of the runs: as the folder of leases has them, or else the newest record of such a
    /// run.
    pub servers: Vec<Serves>,
    /// The number of runs.
    pub runs: usize,
    /// Their attempts under way.
    pub tasks: usize,
    /// Why some sources did not answer.
    pub notes: Vec<String>,
}

impl InForce {
    /// Looks at the runs in these folders.
    pub fn now(cluster: &Cluster, runs: &[PathBuf]) -> InForce {
        let mut all = InForce::default();
        let mut seen = BTreeMap::new();
        for dir in runs.iter().flat_map(|folder| homing_journal::live(folder)) {
            let Ok(replay) = homing_journal::replay(&dir) else { continue };
            all.runs += 1;
            all.add(replay.flatten(), &mut seen);
        }
        let asked: Vec<Serves> = looked_at(cluster).collect();
        let other = |one: &Serves| !asked.iter().any(|asked| asked.server == one.server);
        let told: Vec<Serves> = seen.into_values().map(|(_, one)| one).filter(other).collect();
        let licensed = licensed(cluster, &mut all.notes);
        InForce { servers: asked.into_iter().chain(told).chain(licensed).collect(), ..all }
    }

    fn add(&mut self, events: impl Iterator<Item = Event>, seen: &mut BTreeMap<String, (i64, Serves)>) {
        let (mut last, mut now) = (BTreeMap::new(), Now::default());
        for event in events {
            now.add(&event);
            match event.what {
                EventKind::Limit { storage, limit, .. } => drop(last.insert(storage, limit)),
                EventKind::Leases { storage: server, limit, users } => {
                    let known = seen.get(&server).map_or(i64::MIN, |(at, _)| *at);
                    if event.at_ns > known {
                        let serves = Serves { server: server.clone(), by_slurm: false, limit, users };
                        seen.insert(server, (event.at_ns, serves));
                    }
                }
                _ => {}
            }
        }
        self.tasks += now.used().0;
        for (storage, limit) in last.into_iter().filter_map(|(s, l)| Some((s, l?))) {
            *self.limits.entry(storage).or_default() += limit;
        }
    }
}

/// Returns the gates in the format of Prometheus: the limit of tasks at each storage, and the places of each user
/// there.
pub fn prometheus_of_servers(in_force: &InForce) -> String {
    let mut metrics = Metrics::default();
    metrics.only("homing_runs_live", MetricKind::Gauge, "Runs in progress on this machine.", in_force.runs);
    metrics.only("homing_runs_running_tasks", MetricKind::Gauge, "Running tasks of these runs.", in_force.tasks);
    let name = "homing_host_io_limit_tasks";
    metrics.family(name, MetricKind::Gauge, "Largest number of tasks at the storage of a host, set by these runs.");
    in_force.limits.iter().for_each(|(host, limit)| metrics.sample(name, &[("host", host)], limit));
    for (name, help, rows) in [
        (
            "homing_server_limit_tasks",
            "Largest number of tasks and jobs at a file server.",
            (|one| one.limit.map(u64::from)) as fn(&Serves) -> Option<u64>,
        ),
        ("homing_server_tasks", "Tasks and jobs that use a file server now.", |one| Some(u64::from(one.tasks()))),
    ] {
        metrics.family(name, MetricKind::Gauge, help);
        for (one, value) in in_force.servers.iter().filter_map(|one| Some((one, rows(one)?))) {
            metrics.sample(name, &labels(one), value);
        }
    }
    let name = "homing_server_user_tasks";
    metrics.family(name, MetricKind::Gauge, "Tasks and jobs of one user at a file server now.");
    for one in &in_force.servers {
        let mut users: BTreeMap<String, u64> = BTreeMap::new();
        one.users.iter().for_each(|(user, held)| *users.entry(user.clone()).or_default() += u64::from(*held));
        for (user, held) in bounded(&users) {
            let [server, by] = labels(one);
            metrics.sample(name, &[server, by, ("user", user)], held);
        }
    }
    metrics.text()
}

/// Returns the labels. The same server may be counted by Slurm's licences and by leases.
fn labels(one: &Serves) -> [(&str, &str); 2] {
    [("server", one.server.as_str()), ("by", if one.by_slurm { "slurm" } else { "homing" })]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_how_many_is_told_of_each_server_once() {
        let users = vec![("a\"".to_string(), 2), ("b".to_string(), 1), ("a\"".to_string(), 3)];
        let one = |by_slurm, limit, users| Serves { server: "nas".into(), by_slurm, limit, users };
        let servers = vec![one(false, None, users), one(true, Some(8), vec![])];
        let text = prometheus_of_servers(&InForce {
            servers,
            limits: [("n1".to_string(), 5)].into(),
            runs: 2,
            tasks: 7,
            notes: vec![],
        });
        for line in [
            "homing_server_tasks{server=\"nas\",by=\"homing\"} 6\n",
            "homing_server_tasks{server=\"nas\",by=\"slurm\"} 0\n",
            "homing_server_limit_tasks{server=\"nas\",by=\"slurm\"} 8\n",
            "homing_server_user_tasks{server=\"nas\",by=\"homing\",user=\"a\\\"\"} 5\n",
            "homing_host_io_limit_tasks{host=\"n1\"} 5\n",
            "homing_runs_running_tasks 7\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert!(!text.contains("limit_tasks{server=\"nas\",by=\"homing\"}"), "unknown has no sample: {text}");
    }
}
