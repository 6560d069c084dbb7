//! `homing up`: makes a cluster of hosts that have ssh, with a plan first and a way back.

mod back;
pub mod down;
mod login;
mod mtu;
mod packages;
mod set;
mod show;
mod volumes;

use crate::cluster::ClusterArgs;
use crate::cmd::tree::TreeArgs;
use crate::consent::Consent;
use clap::builder::PossibleValuesParser;
use homing_exec::{Options, Remote};
use homing_model::Failure;
use homing_model::text::shown_lines;
use homing_relay::Fetched;
use homing_setup::{Area, ClusterSite, SetupRecord};
use homing_steps::{Along, SshExecutor};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The most bytes of a host's answer: its users, the wanted files and its journal.
const ANSWER: usize = 64 << 20;

/// Arguments of `homing up`.
///
/// docs/manual/up.md describes the set-up part of a cluster file. homing queries the
/// hosts once, and changes only hosts that differ from the file. It shows a summary of
/// the plan and prompts for a confirmation. Each host records its changes, so that the
/// same command continues after a crash.
///
/// Exit status: 0: up to date; 1: done, but homing check or --diff found something;
/// 254: some hosts failed; 255: the request is wrong.
#[derive(clap::Args, Default)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Cluster file (default: as for all commands)
    #[arg(value_name = "CLUSTER.toml", conflicts_with = "cluster")]
    file: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Show the steps for each host, with the changes of files, and do nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    consent: Consent,
    /// Only these areas: names, users, ssh, packages, clock, sysctl, limits, mtu, disks, volumes, homes, mounts, slurm
    #[arg(long, value_name = "AREA", value_delimiter = ',', value_parser = areas(), hide_possible_values = true)]
    only: Vec<String>,
    /// Continue the set-up that was interrupted last, with its file and options
    #[arg(long, conflicts_with_all = ["file", "cluster", "only", "undo", "diff", "sudo", "dry_run"])]
    resume: bool,
    /// Restore the state before the set-up; files that somebody has changed since stay, and so do packages
    #[arg(long, conflicts_with_all = ["only", "diff"])]
    undo: bool,
    /// Print changes on the hosts since homing set them up
    #[arg(long, conflicts_with_all = ["only", "dry_run"])]
    diff: bool,
    /// Do not run homing check at the end
    #[arg(long)]
    no_check: bool,
    /// Begin commands with `sudo -n`
    #[arg(long)]
    sudo: bool,
    /// Do not print the steps
    #[arg(short, long)]
    quiet: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Time limit of one area on one host
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = crate::cmd::times::step_limit)]
    timeout: u64,
    #[command(flatten)]
    tree: TreeArgs,
}

fn areas() -> PossibleValuesParser {
    PossibleValuesParser::new(Area::ALL.map(Area::name))
}

/// One call of `homing up` or `homing down`.
struct UpSession {
    args: Args,
    site: ClusterSite,
    executor: Along,
    record: SetupRecord,
    /// The token by which a host recognises the last process that looked at it in order to change it. None if this
    /// process changes nothing.
    lead: Option<String>,
    /// The host that `homing down` takes out: a plan counts its bytes as moved.
    leaving: Option<String>,
    /// By area: files of packages that one host fetched for all.
    fetched: Vec<(String, Fetched)>,
    /// Whether this machine can fetch packages and no host can.
    only_from_here: Cell<bool>,
}

/// Sets hosts up, undoes that, or compares.
pub fn run(mut args: Args) -> Result<i32, Failure> {
    let resumed = if args.resume { Some(SetupRecord::interrupted()?) } else { None };
    if let Some(record) = &resumed {
        args.file = record.file.clone();
        args.sudo = record.sudo;
        args.only = record.only.clone();
    }
    if args.file.is_some() {
        args.cluster = args.cluster.of_file(args.file.clone());
    }
    let cluster = args.cluster.load()?;
    let mut site = cluster.site_with_volumes()?;
    args.cluster.fit_to_lab(&mut site)?;
    if !(args.undo || args.diff) {
        let faults = crate::cmd::snapshot::section_faults(&args.cluster)?;
        if !faults.is_empty() {
            return Err(Failure::usage(format!("the cluster file: {}", faults.join("; "))));
        }
    }
    let record = match resumed {
        Some(record) => record,
        None => record_of(args.cluster.file(), &site)?,
    };
    // A call that cannot get consent only looks: it must not take the hosts from a set-up under way.
    let changes = !args.dry_run && !args.diff && args.consent.possible("setting up hosts").is_ok();
    let lead = changes.then(token);
    let mut session = UpSession::new(args, site, record, lead);
    match () {
        () if session.args.undo => session.undo(),
        () if session.args.diff => session.diff(),
        () => session.set_up(),
    }
}

fn record_of(file: Option<&Path>, site: &ClusterSite) -> Result<SetupRecord, Failure> {
    SetupRecord::of(file.map(absolute).transpose()?, &site.hosts)
}

fn absolute(file: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(file).map_err(|e| Failure::usage(format!("{}: {e}", file.display())))
}

fn options(args: &Args) -> Options {
    let timeout = Some(Duration::from_secs(args.timeout));
    args.tree.of(Options { command_timeout: timeout, keep: ANSWER, ..Options::default() })
}

/// Returns the executor for the hosts, along a tree where that is safe. If the cluster file has no address of a host,
/// the set-up writes the address by which it is reached. That must be the address used from here, and not by a
/// leader. An undo goes without a tree, because it may remove a host's way to others.
fn executor(args: &Args, site: &ClusterSite) -> Along {
    let direct = SshExecutor { remote: Remote::new(options(args)), sudo: args.sudo };
    let is_fit = !args.undo && site.hosts.iter().all(|host| site.networks(host).next().is_some());
    let tree = if is_fit { args.tree } else { TreeArgs::none() };
    tree.along(direct)
}

/// Returns a token of this process, made of its number and the time.
fn token() -> String {
    format!("{}-{}", std::process::id(), homing_os::clock::system_ns())
}

impl UpSession {
    fn new(args: Args, site: ClusterSite, record: SetupRecord, lead: Option<String>) -> UpSession {
        let executor = executor(&args, &site);
        let (leaving, fetched, only_from_here) = (None, Vec::new(), Cell::new(false));
        UpSession { args, site, executor, record, lead, leaving, fetched, only_from_here }
    }

    /// Requests consent once per call. Later rounds complete the changes that the user agreed to.
    fn confirm(&mut self, what: &str, summary: &str) -> Result<(), Failure> {
        self.args.consent.quietly(self.args.quiet).confirm(what, summary)?;
        self.args.consent = Consent::GIVEN;
        Ok(())
    }

    fn print_message(&self, text: &str) {
        if !self.args.quiet && !self.args.json {
            eprintln!("{}", shown_lines(text));
        }
    }
}
