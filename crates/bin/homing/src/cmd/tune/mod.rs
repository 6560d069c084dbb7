//! `homing tune net`: measures settings of the network before and after, and keeps the better ones.

use crate::cmd::bench::TELL;
use crate::cmd::runs::to_stdout;
use crate::cmd::targets::Targets;
use crate::consent::Consent;
use clap::Subcommand;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use homing_bench::net::Hosts;
use homing_bench::net::tune::{self, TrialResult, TunableKind, Tuner, TuningOptions};
use homing_exec::{Fresh, Options, Remote};
use homing_model::{Failure, NodeSet, document, exit};
use homing_steps::SshExecutor;
use std::time::Duration;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Try settings of the network, measure before and after, and keep the better ones
    Net(Net),
}

/// Arguments of `homing tune net`.
///
/// Exit status: 0: each setting was kept or undone as measured. 1: a host refused a
/// setting, or lost its connection by one and undid it. 254, 255: homing's own failures.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Net {
    #[command(flatten)]
    targets: Targets,
    /// Try only these (default: all)
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = kinds())]
    only: Vec<TunableKind>,
    /// Set this MTU on all hosts, or on none: -w must name all hosts of the segment
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(576..=65535))]
    mtu: Option<u32>,
    /// Raise the MTU even if the segment has machines that -w does not name
    #[arg(long, requires = "mtu")]
    not_all: bool,
    /// Time of each load of a pair: each direction, then both
    #[arg(long, value_name = "TIME", default_value = "0.5", value_parser = crate::cmd::times::load_time)]
    seconds: Duration,
    /// Write no files: kept settings last until the next boot
    #[arg(long)]
    until_boot: bool,
    /// List the settings that would be tried
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    consent: Consent,
    /// Undo all settings that `homing tune net` has kept on these hosts
    #[arg(long, conflicts_with_all = ["only", "mtu", "until_boot", "dry_run"])]
    undo: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Begin commands with `sudo -n`
    #[arg(long)]
    sudo: bool,
}

fn kinds() -> impl TypedValueParser<Value = TunableKind> {
    let about = |kind| match kind {
        TunableKind::Offloads => "Handling of many packets at once by the card",
        TunableKind::Rings => "Packets that the card buffers for the kernel",
        TunableKind::Queues => "Queues of the card",
        TunableKind::Coalescing => "Delay of the card before an interrupt",
        TunableKind::Congestion => "TCP's congestion control",
        TunableKind::Buffers => "Bytes that a TCP connection may have in flight",
        TunableKind::Mtu => "The largest packet, with --mtu",
        TunableKind::Nconnect => "Connections of NFS mounts",
    };
    PossibleValuesParser::new(TunableKind::ALL.map(|kind| PossibleValue::new(kind.name()).help(about(kind))))
        .map(|word| TunableKind::ALL.into_iter().find(|kind| kind.name() == word).unwrap_or(TunableKind::Offloads))
}

/// The time limit of a script that changes a setting. A host that is silent for longer is cut off, and its guard has
/// not fired yet.
const SETS: Duration = Duration::from_secs(5);
/// The time limit of a new connection, which is tried again.
const CALLED: Duration = Duration::from_secs(3);

/// Tries settings, or takes them back.
pub fn run(args: Args) -> Result<i32, Failure> {
    let Verb::Net(args) = args.verb;
    let names = args.targets.hosts()?;
    let options = args.targets.options()?;
    let quick =
        Options { command_timeout: Some(SETS), connect_timeout: CALLED.min(options.connect_timeout), ..options };
    let executor = SshExecutor { remote: Remote::new(args.targets.options()?), sudo: args.sudo };
    if !args.dry_run {
        args.consent.possible("changing settings of the network")?;
    }
    if args.undo {
        let hosts: NodeSet = names.iter().cloned().collect();
        let summary = format!("{hosts}: settings that homing tune net has kept will be undone");
        args.consent.confirm("changing settings of the network", &summary)?;
        return take_back(&args, &executor, &names);
    }
    if names.len() < 2 {
        return Err(Failure::usage("at least two hosts are needed").hint("-w 'n[1-4]'"));
    }
    let hosts = Hosts::query(args.targets.options()?, &names, args.seconds.as_secs_f64())?;
    let mut seen = tune::look(&executor, &hosts)?;
    let wish = TuningOptions { only: args.only.clone(), mtu: args.mtu, until_boot: args.until_boot };
    let (trials, left) = tune::trials(&tune::facts(&hosts, &seen)?, &wish);
    if args.mtu.is_some() && !args.not_all && trials.iter().any(|trial| trial.kind == TunableKind::Mtu) {
        tune::alone(&hosts)?;
    }
    if args.dry_run {
        return to_stdout(&if args.json { tune::planned_json(&trials, &left) } else { tune::planned(&trials, &left) });
    }
    if !trials.is_empty() {
        args.consent.confirm("changing settings of the network", &tune::planned(&trials, &left))?;
    }
    let fresh = Fresh::new(quick.clone()).map_err(Failure::system)?;
    let quick = SshExecutor { remote: Remote::new(quick), sudo: args.sudo };
    let mut tried = Vec::new();
    for (nth, trial) in trials.into_iter().enumerate() {
        let tuner = Tuner {
            hosts: &hosts,
            executor: &quick,
            fresh: &|| fresh.remote(),
            token: format!("net-{}-{}-{nth}", std::process::id(), homing_os::clock::system_ns()),
            lasting: !args.until_boot,
            reporter: TELL,
        };
        tried.push(tuner.widens(trial, &mut seen)?);
    }
    let status = i32::from(tried.iter().any(|one| matches!(one.fate, TrialResult::Failed(_))));
    to_stdout(&if args.json { tune::json(&tried, &left, status) } else { tune::text(&tried, &left) })?;
    Ok(status)
}

fn take_back(args: &Net, executor: &SshExecutor, names: &[String]) -> Result<i32, Failure> {
    let (mut told, well) = tune::take_back(executor, names);
    let status = if well { 0 } else { exit::SYSTEM };
    if args.json {
        return to_stdout(&document::line(serde_json::json!({ "undone": told, "exit": status }))).map(|_| status);
    }
    if told.is_empty() {
        told.push("nothing to undo".into());
    }
    to_stdout(&(told.join("\n") + "\n")).map(|_| status)
}
