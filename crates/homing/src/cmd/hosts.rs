//! `homing hosts`: who is there, with how many slots, and how loaded each is now.

mod ansible;

use crate::cluster::{Cluster, ClusterArgs, Server};
use crate::failure::{Failure, exit};
use homing_folder::lease::{self, Place};
use homing_launch::{Channel, Options, Via};
use homing_model::alike;
use homing_model::event::What;
use homing_model::text::shown;
use homing_model::{HostFacts, HostSample};
use homing_wire::{FromWorker, ToWorker};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time between the two samples that rates are made of.
const BETWEEN: Duration = Duration::from_millis(500);
/// Hosts asked at once; ClusterShell's default.
const FAN_OUT: usize = 64;

/// Arguments of `homing hosts`.
#[derive(clap::Args)]
pub struct Args {
    /// Hosts, as a node set (default: those of cluster.toml, else this machine)
    #[arg(short = 'w', long, value_name = "NODESET")]
    hosts: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// As JSON; an unknown value is null
    #[arg(long)]
    json: bool,
    /// As a dynamic inventory of Ansible, with the groups and addresses of cluster.toml; nobody is asked
    #[arg(long, conflicts_with_all = ["json", "watch"])]
    ansible: bool,
    /// Again every SECONDS, until interrupted
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "5")]
    watch: Option<u64>,
}

/// What is known of a host: its facts and two samples, or why not.
pub type Answer = Result<(HostFacts, HostSample, HostSample), String>;

/// Prints a row a host.
pub fn run(args: Args) -> Result<i32, Failure> {
    let cluster = args.cluster.load()?;
    let mut names = cluster.hosts(args.hosts.as_deref())?;
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if names.is_empty() {
        names.push(own.clone());
    }
    if args.ansible {
        return crate::cmd::runs::to_stdout(&ansible::inventory(&cluster, &names)?);
    }
    loop {
        let answers = ask_all(&names, &own);
        let (limits, servers) = in_force(&cluster);
        if args.json {
            let with = |n: &String, mut row: Value| {
                row["io_limit"] = json!(limits.get(n));
                row
            };
            let rows: Vec<Value> = names.iter().zip(&answers).map(|(n, a)| with(n, as_json(n, a, &cluster))).collect();
            println!(
                "{}",
                json!({ "hosts": rows, "servers": servers.iter().map(Serves::as_json).collect::<Vec<_>>() })
            );
        } else {
            print_table(&names, &answers, &limits);
            Serves::print(&servers);
        }
        let Some(pause) = args.watch else {
            let failed = answers.iter().any(Result::is_err);
            return Ok(if failed { exit::SYSTEM } else { 0 });
        };
        std::thread::sleep(Duration::from_secs(pause.max(1)));
    }
}

/// Who uses a storage server that is no host of the run.
struct Serves {
    server: String,
    limit: Option<u32>,
    users: Vec<(String, u32)>,
}

impl Serves {
    fn tasks(&self) -> u32 {
        self.users.iter().map(|(_, held)| held).sum()
    }

    fn as_json(&self) -> Value {
        let users: BTreeMap<&str, u32> = self.users.iter().map(|(user, held)| (user.as_str(), *held)).collect();
        json!({"server": self.server, "tasks": self.tasks(), "limit": self.limit, "users": users})
    }

    fn print(servers: &[Serves]) {
        if !servers.is_empty() {
            println!("\n{:<18} {:>8} {:>5}  users", "SERVER", "tasks", "limit");
        }
        for one in servers {
            let users: Vec<String> = one.users.iter().map(|(user, held)| format!("{user} {held}")).collect();
            let limit = one.limit.map_or("-".into(), |limit| limit.to_string());
            println!("{:<18} {:>8} {:>5}  {}", shown(&one.server), one.tasks(), limit, shown(&users.join(", ")));
        }
    }
}

/// Servers whose jobs Slurm counts, where it answers.
fn licensed(cluster: &Cluster) -> Vec<Serves> {
    let servers = cluster.servers();
    if !homing_slurm::ask::is_configured() || servers.values().all(|server| server.license.is_none()) {
        return Vec::new();
    }
    let all = homing_slurm::ask::licenses().unwrap_or_else(|why| {
        eprintln!("homing: {why}");
        Vec::new()
    });
    let one = |(server, said): (String, Server)| {
        let license = all.iter().find(|license| Some(&license.name) == said.license.as_ref())?;
        let users = license.users.iter().map(|(user, held)| (user.clone(), *held)).collect();
        Some(Serves { server: format!("{server}, Slurm"), limit: Some(license.total), users })
    };
    servers.into_iter().filter_map(one).collect()
}

/// Servers whose place of leases a cluster file names, as they are now.
fn looked_at(cluster: &Cluster) -> impl Iterator<Item = Serves> {
    cluster.servers().into_iter().filter_map(|(server, said)| {
        let limit = said.io.map(|io| io.get());
        let place = Place { folder: said.leases?, server: server.clone(), limit, unfit: None };
        let seen = homing_mounts::within(BETWEEN, move || lease::look(&place)).flatten().unwrap_or_default();
        let users = seen.users.into_iter().map(|(uid, held)| (homing_queue::user_name(uid), held)).collect();
        Some(Serves { server, limit: seen.limit.or(limit), users })
    })
}

/// How many tasks the runs of this user that are under way on this machine give each host's storage, added up; and
/// servers that are no hosts of them, as the newest look of such a run has it.
fn in_force(cluster: &Cluster) -> (BTreeMap<String, u32>, Vec<Serves>) {
    let mut sums = BTreeMap::new();
    let mut seen: BTreeMap<String, (i64, Serves)> = BTreeMap::new();
    for dir in homing_journal::live(&homing_journal::root()) {
        let Ok(replay) = homing_journal::replay(&dir) else { continue };
        let mut last = BTreeMap::new();
        for event in replay.flatten() {
            match event.what {
                What::Limit { storage, limit, .. } => drop(last.insert(storage, limit)),
                What::Leases { storage: server, limit, users } => {
                    let known = seen.get(&server).map_or(i64::MIN, |(at, _)| *at);
                    if event.at_ns > known {
                        seen.insert(server.clone(), (event.at_ns, Serves { server, limit, users }));
                    }
                }
                _ => {}
            }
        }
        for (storage, limit) in last.into_iter().filter_map(|(s, l)| Some((s, l?))) {
            *sums.entry(storage).or_default() += limit;
        }
    }
    let asked: Vec<Serves> = looked_at(cluster).collect();
    let other = |one: &Serves| !asked.iter().any(|asked| asked.server == one.server);
    let told: Vec<Serves> = seen.into_values().map(|(_, one)| one).filter(other).collect();
    (sums, asked.into_iter().chain(told).chain(licensed(cluster)).collect())
}

/// Asks hosts for facts and two samples, many at once.
pub fn ask_all(names: &[String], own: &str) -> Vec<Answer> {
    let mut answers = Vec::with_capacity(names.len());
    for window in names.chunks(FAN_OUT) {
        answers.extend(homing_threads::each(window, |name| ask(name, own)));
    }
    answers
}

/// What a worker is told that only samples its host, each time after `every`; `run` is what messages call it.
pub fn sampling(run: &str, every: Duration) -> ToWorker {
    ToWorker::Begin {
        run: run.into(),
        cwd: "/".into(),
        env: Vec::new(),
        slots: 1,
        sample_ms: every.as_millis() as u32,
        pulse: false,
        eager_output: false,
        nice: 0,
    }
}

fn ask(name: &str, own: &str) -> Answer {
    if name == own {
        let first = homing_probe::sample();
        std::thread::sleep(BETWEEN);
        return Ok((homing_probe::facts(), first, homing_probe::sample()));
    }
    let via = Via::Ssh { target: name.into() };
    let Channel { facts, mut to, mut from, keeper, .. } =
        homing_launch::open(name, &via, &Options::default()).map_err(|e| e.to_string())?;
    let begin = sampling("hosts", BETWEEN);
    let mut talk = || -> Result<(HostSample, HostSample), homing_wire::WireError> {
        homing_wire::send(&mut to, &begin)?;
        to.flush()?;
        let mut samples = Vec::new();
        while samples.len() < 2 {
            match homing_wire::receive(&mut from)? {
                Some(FromWorker::Sample(sample)) => samples.push(sample),
                Some(_) => {}
                None => return Err(homing_wire::WireError::Garbled("its worker ended early".into())),
            }
        }
        let last = samples.remove(1);
        Ok((samples.remove(0), last))
    };
    let result = talk();
    drop(to);
    keeper.end(Duration::from_secs(2));
    result.map(|(first, last)| (facts, first, last)).map_err(|e| e.to_string())
}

fn as_json(name: &str, answer: &Answer, cluster: &Cluster) -> Value {
    match answer {
        Err(reason) => json!({"host": name, "status": "unavail", "reason": reason}),
        Ok((facts, first, last)) => {
            let r = last.since(first);
            json!({
                "host": name, "status": "ok", "at_ns": last.at_ns, "cores": facts.cores,
                "slots": cluster.slots_of(name).unwrap_or(facts.cores),
                "memory_bytes": facts.memory_bytes, "r1m": r.r1m, "ut_percent": r.ut, "pg_per_s": r.pg,
                "mem_mib": r.mem, "io_percent": r.stalled, "io_kb_per_s": r.io, "bio_per_s": r.bio, "rpc_per_s": r.rpc, "net_mb_per_s": r.net,
            })
        }
    }
}

fn print_table(names: &[String], answers: &[Answer], limits: &BTreeMap<String, u32>) {
    println!(
        "{:<18} {:>8} {:>5} {:>5} {:>5} {:>6} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}{}",
        "HOST_NAME",
        "status",
        "cores",
        "r1m",
        "ut",
        "pg",
        "mem",
        "stalled",
        "io",
        "bio",
        "rpc",
        "net",
        if limits.is_empty() { "" } else { "   limit" }
    );
    let show = |value: Option<f64>, unit: &str| value.map_or("-".to_string(), |v| format!("{v:.1}{unit}"));
    let whole = |value: Option<f64>, unit: &str| value.map_or("-".to_string(), |v| format!("{v:.0}{unit}"));
    for (name, answer) in names.iter().zip(answers) {
        let Ok((facts, first, last)) = answer else {
            println!("{name:<18} {:>8}", "unavail");
            continue;
        };
        let r = last.since(first);
        println!(
            "{:<18} {:>8} {:>5} {:>5} {:>5} {:>6} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}{}",
            name,
            "ok",
            facts.cores,
            show(r.r1m, ""),
            whole(r.ut, "%"),
            show(r.pg, ""),
            whole(r.mem, "M"),
            whole(r.stalled, "%"),
            whole(r.io, "k"),
            show(r.bio, ""),
            show(r.rpc, ""),
            show(r.net, "M"),
            limits.get(name).map_or(String::new(), |limit| format!("{limit:>8}")),
        );
    }
    let silent = names.iter().zip(answers).filter_map(|(name, answer)| Some((name.as_str(), answer.as_ref().err()?)));
    alike::folded(silent.map(|(name, why)| (name, why.as_str()))).iter().for_each(|line| eprintln!("homing: {line}"));
}
