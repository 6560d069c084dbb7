//! `homing volume`: file systems over hosts.

pub mod args;
pub mod change;
pub mod create;
pub mod show;
mod transport;

use crate::cluster::ClusterArgs;
use crate::consent::Consent;
pub use args::Args;
use args::{One, Verb, VolumeOptions};
use homing_exec::{Options, Remote};
use homing_model::Failure;
use homing_steps::SshExecutor;
use homing_volume::{Drive, Figures, Manner, VolumeRecord};
use std::io::IsTerminal;
use std::time::Duration;

/// Executes the subcommand.
pub fn run(args: Args) -> Result<i32, Failure> {
    match args.verb {
        Verb::Create(a) => create::run(&args.way, a),
        Verb::List(a) => show::list(&args.way, a),
        Verb::Status(a) => show::status(&args.way, a),
        Verb::BalanceReport(a) => show::balance(&args.way, a),
        Verb::Mount(a) => change::mount(&args.way, &a),
        Verb::Unmount(a) => change::unmount(&args.way, &a),
        Verb::AddHost(a) => change::add_host(&args.way, &a),
        Verb::DrainHost(a) => change::drain_host(&args.way, &a),
        Verb::SetCopies(a) => change::set_copies(&args.way, &a),
        Verb::SetStripe(a) => change::set_stripe(&args.way, &a),
        Verb::SetOption(a) => change::set_option(&args.way, &a),
        Verb::SetExport(a) => change::set_export(&args.way, &a),
        Verb::Heal(a) => change::heal(&args.way, &a),
        Verb::Rebalance(a) => change::rebalance(&args.way, &a),
        Verb::Delete(a) => change::delete(&args.way, &a),
        Verb::Resume(a) => change::resume(&args.way, &a),
        Verb::Undo(a) => change::undo(&args.way, &a),
    }
}

/// Returns a drive for commands of this manner. `lock`: the volume that is changed.
pub fn drive(way: &VolumeOptions, lock: Option<&str>) -> Result<Drive, Failure> {
    drive_showing(way, lock, |text| print!("{text}"))
}

/// Returns a drive that plans changes, and neither makes nor shows them.
pub fn planner(way: &VolumeOptions) -> Result<Drive, Failure> {
    drive_showing(&VolumeOptions { dry_run: true, ..way.clone() }, None, |_| {})
}

fn drive_showing(way: &VolumeOptions, lock: Option<&str>, show: fn(&str)) -> Result<Drive, Failure> {
    let options = Options { command_timeout: Some(Duration::from_secs(way.timeout)), ..Options::default() };
    let executor = SshExecutor { remote: Remote::new(options), sudo: way.sudo };
    let say: fn(&str) = if way.quiet { |_| {} } else { |text| eprintln!("{text}") };
    let live = std::io::stderr().is_terminal();
    let consent = way.consent.quietly(way.quiet);
    let confirm = Box::new(move |what: &str, summary: &str| consent.confirm(what, summary));
    Drive::new(executor, Manner { dry_run: way.dry_run, print: say, show, confirm, live }, lock)
}

/// Returns the record of a volume, or else builds it from the answers of its hosts.
///
/// # Errors
/// Also that hosts are given although this machine has a record: the hosts of the command would be others than these. The
/// repetition of an interrupted command goes on.
pub fn found(drive: &Drive, way: &VolumeOptions, one: &One) -> Result<VolumeRecord, Failure> {
    let known = VolumeRecord::load(&homing_volume::folder(), &one.name).ok().flatten();
    if let (true, Some(record)) = (one.query.is_given(), known) {
        record.refuse_hosts(&one.query.chosen(way.cluster.load()?, None)?)?;
    }
    drive.find(&one.name, || one.query.chosen(way.cluster.load()?, None))
}

/// The time limit of a command on a host that is only looked at, in seconds.
const PATIENCE: u64 = 5;

/// Returns the record of a volume, with a drive for queries that changes and prints nothing.
fn looked_at(cluster: &ClusterArgs, name: &str) -> Result<(Drive, VolumeRecord), Failure> {
    let cluster = cluster.clone();
    let consent = Consent::default();
    let way =
        VolumeOptions { cluster, dry_run: false, consent, sudo: false, quiet: true, timeout: PATIENCE, silent: true };
    let drive = drive(&way, None)?;
    let record = found(&drive, &way, &One::named(name))?;
    Ok((drive, record))
}

/// Returns the figures of a volume. Hosts that are known to be silent are not queried.
pub fn figures(cluster: &ClusterArgs, name: &str, silent: &[&str]) -> Result<Figures, Failure> {
    let (drive, record) = looked_at(cluster, name)?;
    Figures::of(&drive, record, silent)
}

/// Returns the hosts of a volume.
pub fn hosts_of(cluster: &ClusterArgs, name: &str) -> Result<Vec<String>, Failure> {
    Ok(looked_at(cluster, name)?.1.spec.hosts())
}

/// Returns the faults that `status` would report, as findings of `homing check`. Hosts that are known to be silent
/// are not queried.
pub fn checked(cluster: &ClusterArgs, name: &str, silent: &[&str]) -> Result<Vec<homing_check::HostFinding>, Failure> {
    let (drive, record) = looked_at(cluster, name)?;
    let spec = record.spec;
    let hosts: Vec<String> = spec.hosts().into_iter().filter(|h| !silent.contains(&h.as_str())).collect();
    let seen = drive.observe(&spec, &hosts);
    Ok(homing_check::volume::found(&spec, &hosts, &seen, &drive.findings(&spec, &seen)))
}
