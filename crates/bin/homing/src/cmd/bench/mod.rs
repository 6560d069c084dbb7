//! `homing bench volume`: measures a shared folder from its clients. `homing bench net` is in its own file.

pub(crate) mod net;

use crate::cluster::{Cluster, ClusterArgs};
use crate::cmd::runs::to_stdout;
use crate::cmd::targets::HostArgs;
use clap::Subcommand;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use homing_bench::ProgressReporter;
use homing_bench::net::Hosts;
use homing_bench::volume::{self, Bench, FioOperation, Setup, tune};
use homing_exec::{Options, Remote};
use homing_model::units::{bytes, count};
use homing_model::{Failure, alike, document};
use homing_steps::SshExecutor;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    #[command(flatten)]
    targets: HostArgs,
    /// Hosts whose caches are dropped before reads (default: the hosts that take part); add the servers if they are other hosts
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
    /// Number of files for these bytes, one after another; 1 shows the effect of pieces (--stripe)
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
    /// Measurements to take (default: all)
    #[arg(long, value_delimiter = ',', value_parser = ops())]
    only: Vec<FioOperation>,
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
    /// Write JSON to FILE; a sweep (--tune) that FILE holds in part continues
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Write a self-contained HTML page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Compare two saved results instead
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"])]
    compare: Option<Vec<PathBuf>>,
    /// Try mount options and print the best: nfs
    #[arg(long, value_name = "KIND")]
    tune: Option<Tuned>,
    /// The server's max_block_size values that --tune tries too; its NFS service is restarted for each
    #[arg(long, value_delimiter = ',', value_parser = homing_lab::parse_size)]
    server_block: Vec<u64>,
    /// The rsize and wsize values that --tune tries besides the default
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

/// A kind of mount that can be tuned.
#[derive(Clone, Copy, Debug)]
enum Tuned {
    /// A mount of NFS.
    Nfs,
}

impl std::str::FromStr for Tuned {
    type Err = String;
    fn from_str(s: &str) -> Result<Tuned, String> {
        if s == "nfs" { Ok(Tuned::Nfs) } else { Err(format!("{s:?} cannot be tuned; the only value is nfs")) }
    }
}

/// Returns the parser of measurements, by their names.
fn ops() -> impl TypedValueParser<Value = FioOperation> {
    let about = |op| match op {
        FioOperation::Write => "Sequential writes, synced at the end",
        FioOperation::Read => "Sequential reads",
        FioOperation::Randwrite => "Random writes, synced at the end",
        FioOperation::Randread => "Random reads",
        FioOperation::Create => "Creating small files",
        FioOperation::Stat => "Reading their attributes, as `ls -l` does",
        FioOperation::Unlink => "Removing them",
    };
    PossibleValuesParser::new(FioOperation::ALL.map(|op| PossibleValue::new(op.name()).help(about(op))))
        .map(|word| FioOperation::ALL.into_iter().find(|op| op.name() == word).unwrap_or(FioOperation::Write))
}

/// Names hosts that take no part because they do not answer.
pub(crate) fn name_silent(hosts: &Hosts) {
    let silent = hosts.silent.iter().map(|(host, why)| (host.as_str(), why.as_str()));
    alike::folded(silent).iter().for_each(|line| eprintln!("homing: left out: {line}"));
}

/// Prints progress for a user at a terminal, and notes always.
pub(crate) const TELL: ProgressReporter = ProgressReporter {
    progress: |line| {
        if crate::progress::place().is_some() {
            eprintln!("{line}");
        }
    },
    note: |line| eprintln!("homing: {line}"),
};

/// Executes the subcommand.
pub fn run(args: Args) -> Result<i32, Failure> {
    match args.verb {
        Verb::Volume(args) => run_volume(args),
        Verb::Net(args) => net::run(&args),
    }
}

fn run_volume(args: VolumeArgs) -> Result<i32, Failure> {
    if let Some(files) = &args.compare {
        return compare(&files[0], &files[1], args.html.as_deref());
    }
    check_sizes(&args)?;
    let options = Options { command_timeout: Some(Duration::from_secs(600)), ..Options::default() };
    let executor = SshExecutor { remote: Remote::new(options), sudo: args.sudo };
    let setup = setup(&args, args.cluster.load()?)?;
    let bench = Bench::new(setup.clone(), Box::new(executor), TELL)?;
    if let Some(Tuned::Nfs) = args.tune {
        return run_tune(&args, &bench, &setup);
    }
    let (results, ended) = bench.measure();
    if results.rows.is_empty() {
        return ended.map(|()| 0);
    }
    if let Some(file) = &args.save {
        put(file, document::text(&results))?;
    }
    if let Some(file) = &args.html {
        put(file, volume::html(&results))?;
    }
    to_stdout(&match args.json {
        true => document::line(&results),
        false => volume::table(&results),
    })?;
    ended.map(|()| 0)
}

fn setup(args: &VolumeArgs, cluster: &Cluster) -> Result<Setup, Failure> {
    let hosts = args.targets.chosen(cluster, None)?;
    if hosts.is_empty() {
        return Err(Failure::usage("no host to measure from").hint("-w 'n[1-4]'"));
    }
    let drop_on = match &args.drop_on {
        Some(text) => cluster.hosts(Some(text))?,
        None => hosts.clone(),
    };
    Ok(Setup {
        path: args.path.clone().unwrap_or_default(),
        hosts,
        drop_on,
        clients: args.clients.clone(),
        bs: args.bs.clone(),
        size: args.size,
        in_files: args.in_files.max(1),
        random_size: args.random_size,
        files: args.files,
        copies: args.copies.clone(),
        only: args.only.clone(),
        trials: args.trials,
        link: args.link,
        label: args.label.clone(),
    })
}

fn run_tune(args: &VolumeArgs, bench: &Bench, setup: &Setup) -> Result<i32, Failure> {
    let trials = tune::Trials {
        server_block: args.server_block.clone(),
        sizes: args.tune_sizes.clone(),
        connections: args.tune_connections.clone(),
        save: args.save.clone(),
    };
    let sweep = tune::run(bench, &trials)?;
    if let Some(file) = &args.html {
        put(file, tune::page(&setup.path, &setup.drop_on, &sweep))?;
    }
    let mut text = if args.json { document::line(&sweep) } else { tune::table(&sweep) };
    if sweep.is_worth_it() && args.apply {
        tune::apply(bench, &sweep)?;
        eprintln!("mounted with the best options on {}", setup.hosts.join(", "));
    } else if sweep.is_worth_it() && !args.json {
        let path = &setup.path;
        text += &format!(
            "to use them, put these options into the line of {path} in /etc/fstab, unmount and mount; or give --apply\n"
        );
    }
    to_stdout(&text)
}

fn compare(old: &Path, new: &Path, page: Option<&Path>) -> Result<i32, Failure> {
    let (old, new) = (volume::load(old)?, volume::load(new)?);
    if let Some(file) = page {
        put(file, volume::compared_html(&old, &new))?;
    }
    to_stdout(&volume::compared(&old, &new))
}

fn put(file: &Path, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    homing_os::folder::write_file(file, text).map_err(|e| Failure::system(format!("writing {}: {e}", file.display())))
}

/// Refuses a block that is larger than each file: the measured rate would be zero.
fn check_sizes(args: &VolumeArgs) -> Result<(), Failure> {
    let each = args.size / u64::from(args.in_files.max(1));
    let large = args.bs.iter().find(|bs| homing_lab::parse_size(bs).is_ok_and(|bytes| bytes > each));
    large.map_or(Ok(()), |bs| {
        let files = count(args.in_files.into(), "file");
        let text = format!("--size {} in {files}: a block of {bs} is larger than each file", bytes(args.size));
        Err(Failure::usage(text).hint("a larger --size, fewer --in-files, or a smaller --bs"))
    })
}
