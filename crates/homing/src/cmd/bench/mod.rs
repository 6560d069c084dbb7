//! `homing bench volume`: what a shared folder gives, measured from its clients. `homing bench net` is in its own folder.

mod fio;
mod limit;
pub(crate) mod net;
mod page;
mod plot;
mod show;
mod tune;
mod visible;
mod words;

use crate::cluster::ClusterArgs;
use crate::failure::Failure;
use clap::Subcommand;
use fio::{Case, Op};
use homing_model::units::{bytes, count};
use homing_remote::{Options, Remote};
use homing_steps::{Executor, SshExecutor};
use homing_volume::Spec;
use serde::{Deserialize, Serialize};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Measure a shared folder: rates, small files, and how soon other hosts see a change
    Volume(VolumeArgs),
    /// Measure the network: which host, direction or link is slow
    Net(net::Args),
}

/// Arguments of `homing bench volume`.
#[derive(clap::Args)]
pub struct VolumeArgs {
    /// A folder of the volume, the same on all hosts
    #[arg(required_unless_present = "compare")]
    path: Option<String>,
    /// Hosts that take part
    #[arg(short = 'w', long, value_name = "NODESET")]
    hosts: Option<String>,
    /// Hosts whose caches are dropped before reads (default: those of -w); add servers that are others
    #[arg(long, value_name = "NODESET")]
    drop_on: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Numbers of hosts at once (default: 1 and all)
    #[arg(long, value_delimiter = ',')]
    clients: Vec<usize>,
    /// Block sizes
    #[arg(long, value_delimiter = ',', default_value = "64k,1M")]
    bs: Vec<String>,
    /// Bytes that each host writes and reads
    #[arg(long, default_value = "256M", value_parser = homing_lab::parse_size)]
    size: u64,
    /// Files that these bytes are cut into, one after another; 1 to see what pieces (--stripe) do
    #[arg(long, value_name = "N", default_value_t = 16)]
    in_files: u32,
    /// Bytes of random reads and writes of each host
    #[arg(long, default_value = "16M", value_parser = homing_lab::parse_size)]
    random_size: u64,
    /// Small files of each host
    #[arg(long, default_value_t = 200)]
    files: u32,
    /// Numbers of copies, each in a folder of its own goal (MooseFS only)
    #[arg(long, value_delimiter = ',')]
    copies: Vec<u32>,
    /// What to measure (default: all)
    #[arg(long, value_delimiter = ',')]
    only: Vec<Op>,
    /// Trials of how soon another host sees a change; 0 for none
    #[arg(long, default_value_t = 5)]
    trials: u32,
    /// Rate of a host's link in Mbit/s, for the share of the theoretical limit
    #[arg(long, value_name = "MBIT")]
    link: Option<f64>,
    /// A name for the results
    #[arg(long, default_value = "")]
    label: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write JSON there; a sweep (--tune) that this file holds in part goes on where it was
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Draw it there, on one page that needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Compare two saved results instead
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"])]
    compare: Option<Vec<PathBuf>>,
    /// Try mount options and tell the best: nfs
    #[arg(long, value_name = "KIND")]
    tune: Option<tune::Kind>,
    /// The server's max_block_size values that --tune tries too; its NFS service is restarted for each
    #[arg(long, value_delimiter = ',', value_parser = homing_lab::parse_size)]
    server_block: Vec<u64>,
    /// The rsize and wsize values that --tune tries, the default besides
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = homing_lab::parse_size, default_value = "4K,16K,64K,128K,256K,1M")]
    tune_sizes: Vec<u64>,
    /// The numbers of connections (nconnect) that --tune tries with the best size
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "4,8")]
    tune_connections: Vec<u32>,
    /// Mount with the best options that --tune found, and write them into fstab
    #[arg(long)]
    apply: bool,
    /// Begin commands with `sudo -n`
    #[arg(long)]
    sudo: bool,
}

/// Everything that was measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Results {
    /// As given by `--label`.
    pub label: String,
    /// The folder.
    pub path: String,
    /// Hosts that took part.
    pub hosts: Vec<String>,
    /// What was done about caches.
    pub caches: String,
    /// Size of the pieces that files are cut into, bytes, where that is known.
    #[serde(default)]
    pub stripe: Option<u64>,
    /// Bytes a host wrote and read.
    pub size: u64,
    /// Files that these were cut into, one after another; 0: not known.
    #[serde(default)]
    pub in_files: u32,
    /// A row a case.
    pub rows: Vec<Row>,
    /// How soon other hosts see a change.
    pub visible: Vec<visible::Delay>,
}

/// One case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What was measured.
    pub case: Case,
    /// Megabytes (10^6) a second, all hosts together; for small files 0.
    pub mb_per_s: f64,
    /// Operations, or files, a second, all hosts together.
    pub per_s: f64,
    /// 99th percentile of an operation's latency, milliseconds, of the slowest host.
    pub p99_ms: f64,
    /// Share of the theoretical limit, when `--link` tells it.
    pub share: Option<f64>,
}

/// Runs it.
pub fn run(args: Args) -> Result<i32, Failure> {
    match args.verb {
        Verb::Volume(args) => volume(args),
        Verb::Net(args) => net::run(&args),
    }
}

fn volume(args: VolumeArgs) -> Result<i32, Failure> {
    if let Some(files) = &args.compare {
        return show::compare(&files[0], &files[1], args.html.as_deref());
    }
    let cluster = args.cluster.load()?;
    let hosts = cluster.hosts(args.hosts.as_deref())?;
    if hosts.is_empty() {
        return Err(Failure::usage("no host to measure from").hint("-w 'n[1-4]'"));
    }
    let path = args.path.clone().unwrap_or_default();
    homing_volume::check_path(&path).map_err(Failure::usage)?;
    check_sizes(&args)?;
    let drop_on = match &args.drop_on {
        Some(text) => cluster.hosts(Some(text))?,
        None => hosts.clone(),
    };
    let volume = limit::volume_of(&path);
    let options = Options { command_timeout: Some(Duration::from_secs(600)), ..Options::default() };
    let bench = Bench {
        executor: SshExecutor { remote: Remote::new(options), sudo: args.sudo },
        args,
        hosts,
        drop_on,
        path,
        volume,
    };
    if bench.args.tune.is_some() {
        return tune::run(&bench);
    }
    let results = bench.measure()?;
    if let Some(file) = &bench.args.save {
        let text = serde_json::to_vec_pretty(&results).map_err(Failure::system)?;
        show::write(file, text)?;
    }
    if let Some(file) = &bench.args.html {
        show::write(file, page::html(&results))?;
    }
    if bench.args.json {
        println!("{}", serde_json::to_string(&results).map_err(Failure::system)?);
    } else {
        show::table(&results);
    }
    Ok(0)
}

/// One call.
pub struct Bench {
    executor: SshExecutor,
    args: VolumeArgs,
    hosts: Vec<String>,
    drop_on: Vec<String>,
    path: String,
    /// What homing knows of the volume, if it is one of its own.
    volume: Option<Spec>,
}

impl Bench {
    /// Runs the same command on hosts; the first failure ends it.
    fn all(
        &self,
        hosts: &[String],
        argv: impl Fn(usize, &str) -> Vec<String>,
        doing: &str,
    ) -> Result<Vec<String>, Failure> {
        let commands: Vec<_> = hosts.iter().enumerate().map(|(i, h)| (h.clone(), argv(i, h))).collect();
        let said = self.executor.programs(&commands);
        hosts
            .iter()
            .zip(said)
            .map(|(h, s)| s.map_err(|why| Failure::system(format!("{doing} on {h} in {}: {why}", self.path))))
            .collect()
    }

    fn measure(&self) -> Result<Results, Failure> {
        let folder = format!("{}/.homing-bench.{}", self.path, std::process::id());
        self.all(&self.hosts[..1], |_, _| sh(r#"command -v fio >/dev/null || { echo "no fio; install the package fio"; exit 1; }; mkdir -- "$1""#, &[&folder]), "preparing")?;
        let measured = self.measure_in(&folder);
        let swept =
            self.all(&self.hosts[..1], |_, _| sh(r#"rm -rf --one-file-system -- "$1""#, &[&folder]), "cleaning up");
        let results = measured?;
        swept?;
        Ok(results)
    }

    fn measure_in(&self, folder: &str) -> Result<Results, Failure> {
        let mut results = Results {
            label: self.args.label.clone(),
            path: self.path.clone(),
            hosts: self.hosts.clone(),
            caches: self.drop_caches(),
            size: self.args.size,
            in_files: self.args.in_files.max(1),
            stripe: self.volume.as_ref().and_then(|v| v.stripe),
            ..Results::default()
        };
        let goals: Vec<Option<u32>> =
            if self.args.copies.is_empty() { vec![None] } else { self.args.copies.iter().copied().map(Some).collect() };
        let all = goals.len() * self.cases(None).len();
        let begun = Instant::now();
        for goal in goals {
            let place = self.folder_of(folder, goal)?;
            let copies = goal.or(self.volume.as_ref().map(|v| v.copies));
            for case in self.cases(copies) {
                self.say(&case, results.rows.len(), all, begun.elapsed());
                results.rows.push(self.one(&case, &place)?);
            }
        }
        if self.args.trials > 0 && self.hosts.len() > 1 {
            results.visible = visible::measure(self, folder)?;
        }
        Ok(results)
    }

    /// On a terminal: what is measured now, and about how long the rest takes.
    fn say(&self, case: &Case, done: usize, all: usize, took: Duration) {
        if !std::io::stderr().is_terminal() {
            return;
        }
        let left = (done > 0).then(|| took.mul_f64((all - done) as f64 / done as f64).as_secs());
        let left = left.map_or(String::new(), |s| format!(", about {s} s to go"));
        eprintln!("[{}/{all}] {case}{left}", done + 1);
    }

    /// A folder whose files have this goal.
    fn folder_of(&self, folder: &str, goal: Option<u32>) -> Result<String, Failure> {
        let Some(goal) = goal else { return Ok(folder.into()) };
        let place = format!("{folder}/goal{goal}");
        let text = r#"mkdir -- "$1" && mfssetgoal "$2" "$1""#;
        self.all(&self.hosts[..1], |_, _| sh(text, &[&place, &goal.to_string()]), "setting the goal")?;
        Ok(place)
    }

    fn cases(&self, copies: Option<u32>) -> Vec<Case> {
        let mut clients = self.args.clients.clone();
        if clients.is_empty() {
            clients = vec![1, self.hosts.len()];
            clients.dedup();
        }
        clients.retain(|c| (1..=self.hosts.len()).contains(c));
        let mut cases = Vec::new();
        for op in Op::ALL {
            if !self.args.only.is_empty() && !self.args.only.contains(&op) {
                continue;
            }
            let sizes: &[String] = if op.is_small_files() { &self.args.bs[..1] } else { &self.args.bs };
            for bs in sizes {
                let bs = if op.is_small_files() { "4k".to_string() } else { bs.clone() };
                cases.extend(clients.iter().map(|&clients| Case { op, bs: bs.clone(), clients, copies }));
            }
        }
        cases
    }

    /// Caches of all hosts; a kernel that many hosts share drops them for all.
    fn drop_caches(&self) -> String {
        let argv = sh("sync; echo 3 > /proc/sys/vm/drop_caches", &[]);
        let commands: Vec<_> = self.drop_on.iter().map(|h| (h.clone(), argv.clone())).collect();
        let reads = match self.executor.programs(&commands).iter().all(Result::is_ok) {
            true => format!("before reads the caches of {} are dropped", self.drop_on.join(", ")),
            false => {
                "caches could not be dropped on all hosts, which takes root and a writable /proc/sys/vm/drop_caches: reads may \
                 come from the memory of servers".into()
            }
        };
        format!(
            "written data is synced before the clock stops; hosts read what another one wrote; {reads}; \
             those of other hosts, and disks' own caches, may still help"
        )
    }

    fn one(&self, case: &Case, folder: &str) -> Result<Row, Failure> {
        let hosts = &self.hosts[..case.clients];
        for op in case.op.before() {
            let before = Case { op: *op, bs: "1M".into(), ..case.clone() };
            // What is read was written by the neighbour, so that no reader finds it in its own memory.
            let turn = usize::from(case.op.reads());
            let writers: Vec<String> =
                (0..case.clients).map(|i| self.hosts[(i + turn) % self.hosts.len()].clone()).collect();
            self.all(&writers, |i, _| fio::argv(&before, folder, self, i), &before.to_string())?;
        }
        if case.op.reads() {
            self.drop_caches();
        }
        let texts = self.all(hosts, |i, _| fio::argv(case, folder, self, i), &case.to_string())?;
        let sweep = sh(r#"rm -rf --one-file-system -- "$1"/f.*"#, &[folder]);
        self.all(&self.hosts[..1], |_, _| sweep.clone(), "cleaning up")?;
        let mut row =
            fio::row(case, &texts).ok_or_else(|| Failure::system(format!("{case}: fio's answer is not understood")))?;
        row.share = self.limit(case).map(|most| row.mb_per_s / most);
        Ok(row)
    }

    /// Megabytes a second that the links allow, when their rate and the volume are known.
    fn limit(&self, case: &Case) -> Option<f64> {
        let mut ways = limit::Ways::of(self.volume.as_ref()?, &self.hosts);
        ways.copies = case.copies.unwrap_or(ways.copies);
        ways.limit(case.op, case.clients, self.args.link? / 8.0)
    }
}

/// A file in which no block fits would be measured as nothing a second.
fn check_sizes(args: &VolumeArgs) -> Result<(), Failure> {
    let each = args.size / u64::from(args.in_files.max(1));
    let large = args.bs.iter().find(|bs| homing_lab::parse_size(bs).is_ok_and(|bytes| bytes > each));
    large.map_or(Ok(()), |bs| {
        let files = count(args.in_files.into(), "file");
        let text = format!("--size {} in {files}: a block of {bs} fits into none", bytes(args.size));
        Err(Failure::usage(text).hint("a larger --size, fewer --in-files, or a smaller --bs"))
    })
}

/// A script for sh with arguments.
fn sh(text: &str, args: &[&str]) -> Vec<String> {
    ["sh", "-c", text, "sh"].iter().chain(args).map(|s| s.to_string()).collect()
}
