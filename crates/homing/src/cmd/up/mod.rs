//! `homing up`: hosts that have ssh become a cluster, with a plan first and a way back.

mod back;
pub mod down;
mod login;
mod lost;
mod record;
mod set;
mod show;
mod volumes;

use crate::cluster::{Cluster, ClusterArgs};
use crate::failure::Failure;
use clap::builder::PossibleValuesParser;
use homing_exec::{Options, Remote};
use homing_setup::{Area, Site};
use homing_steps::SshExecutor;
use record::Record;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of a host's answer: its users, the files that are looked at, and its journal.
const ANSWER: usize = 64 << 20;

/// Arguments of `homing up`.
///
/// What a cluster file may say of the set-up stands in docs/manual/up.md. Hosts
/// are asked once; where all is so already, nothing is done. What was done is
/// noted on each host, so that the same command goes on after a crash.
///
/// Exit status: 0: as wanted; 1: done, and homing check has something to say,
/// or --diff has found something; 254: not on all hosts; 255: the request.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Cluster file (default: as for all commands)
    #[arg(value_name = "CLUSTER.toml", conflicts_with_all = ["cluster", "lab"])]
    file: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Show what would be done on each host, with the changes of files, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// These areas alone: names, users, ssh, packages, clock, sysctl, limits, disks, volumes, homes, mounts, slurm
    #[arg(long, value_name = "AREA", value_delimiter = ',', value_parser = areas(), hide_possible_values = true)]
    only: Vec<String>,
    /// Take up the set-up that was interrupted last, with its file and options
    #[arg(long, conflicts_with_all = ["file", "cluster", "only", "undo", "diff", "sudo", "dry_run"])]
    resume: bool,
    /// Put back what was there before; what somebody has changed since stays, and so do packages
    #[arg(long, conflicts_with_all = ["only", "diff"])]
    undo: bool,
    /// Tell what was changed on the hosts since homing set it up
    #[arg(long, conflicts_with_all = ["only", "dry_run"])]
    diff: bool,
    /// Do not run homing check at the end
    #[arg(long)]
    no_check: bool,
    /// Begin commands with `sudo -n`
    #[arg(long)]
    sudo: bool,
    /// Say nothing of the steps
    #[arg(short, long)]
    quiet: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Seconds for one area on one host
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    timeout: u64,
}

fn areas() -> PossibleValuesParser {
    PossibleValuesParser::new(Area::ALL.map(Area::name))
}

/// One call.
struct Session {
    args: Args,
    site: Site,
    executor: SshExecutor,
    record: Record,
    /// By what hosts know who looked at them last in order to change them; nothing for one that only looks.
    lead: Option<String>,
}

/// Sets up, undoes or compares.
pub fn run(mut args: Args) -> Result<i32, Failure> {
    let resumed = if args.resume { Some(Record::interrupted()?) } else { None };
    if let Some(record) = &resumed {
        args.file = record.file.clone();
        args.sudo = record.sudo;
        args.only = record.only.clone();
    }
    let file = args.file.clone().or_else(|| args.cluster.file().map(PathBuf::from));
    let cluster = match &args.file {
        Some(file) => Cluster::load(Some(file))?,
        None => args.cluster.load()?,
    };
    let mut site = cluster.site()?;
    site.volumes = volumes::of(&cluster, &site)?;
    let record = match resumed {
        Some(record) => record,
        None => record_of(file.as_deref(), &site)?,
    };
    let executor = SshExecutor { remote: Remote::new(options(&args)), sudo: args.sudo };
    let lead = (!args.dry_run && !args.diff).then(token);
    let mut session = Session { args, site, executor, record, lead };
    match () {
        () if session.args.undo => session.undo(),
        () if session.args.diff => session.diff(),
        () => session.set_up(),
    }
}

fn record_of(file: Option<&Path>, site: &Site) -> Result<Record, Failure> {
    Record::of(file.map(absolute).transpose()?, &site.hosts)
}

fn absolute(file: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(file).map_err(|e| Failure::usage(format!("{}: {e}", file.display())))
}

fn options(args: &Args) -> Options {
    Options { command_timeout: Some(Duration::from_secs(args.timeout.max(1))), keep: ANSWER, ..Options::default() }
}

/// This process, by its number and the time.
fn token() -> String {
    format!("{}-{}", std::process::id(), homing_clock::system_ns())
}

impl Session {
    fn say(&self, text: &str) {
        if !self.args.quiet && !self.args.json {
            eprintln!("{text}");
        }
    }
}
