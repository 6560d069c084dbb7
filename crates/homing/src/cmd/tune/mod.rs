//! `homing tune net`: settings of the network, measured before and after, and kept when they are better.

use crate::cmd::bench::TELL;
use crate::cmd::fresh::Fresh;
use crate::cmd::runs::to_stdout;
use crate::cmd::targets::Targets;
use crate::failure::{Failure, exit};
use clap::Subcommand;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use homing_bench::net::Hosts;
use homing_bench::net::tune::{self, Facts, Fate, Kind, Tuner, Wish};
use homing_exec::{Options, Remote};
use homing_model::NodeSet;
use homing_network::{Load, Order};
use homing_steps::{Observed, Phase, Question, SshExecutor, carry_out, observe, undo};
use std::collections::BTreeMap;
use std::time::Duration;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Try settings of the network, measure before and after, and keep what is better
    Net(Net),
}

/// Arguments of `homing tune net`.
///
/// Exit status: 0: all that was tried was kept or taken back as it should be;
/// 1: a host refused a setting, or was cut off by one and took it back;
/// 254, 255: homing's own failures.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Net {
    #[command(flatten)]
    targets: Targets,
    /// Try only these (default: all)
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = kinds())]
    only: Vec<Kind>,
    /// Give all hosts this MTU, or none: -w has to name all hosts of the segment
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(576..=65535))]
    mtu: Option<u32>,
    /// Raise the MTU though machines are on the segment that -w does not name
    #[arg(long, requires = "mtu")]
    not_all: bool,
    /// How long each pair is loaded, a part: each direction, then both
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5)]
    seconds: f64,
    /// Write nothing down: what is kept lasts until the next boot
    #[arg(long)]
    until_boot: bool,
    /// Tell what would be tried
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Take back all that `homing tune net` has kept on these hosts
    #[arg(long, conflicts_with_all = ["only", "mtu", "until_boot", "dry_run"])]
    undo: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Begin commands with `sudo -n`
    #[arg(long)]
    sudo: bool,
}

fn kinds() -> impl TypedValueParser<Value = Kind> {
    let about = |kind| match kind {
        Kind::Offloads => "What the card does with many packets at once",
        Kind::Rings => "Packets that the card keeps for the kernel",
        Kind::Queues => "Queues of the card",
        Kind::Coalescing => "How long the card waits before it interrupts",
        Kind::Congestion => "TCP's congestion control",
        Kind::Buffers => "What a TCP connection may have under way",
        Kind::Mtu => "The largest packet, with --mtu",
    };
    PossibleValuesParser::new(Kind::ALL.map(|kind| PossibleValue::new(kind.name()).help(about(kind))))
        .map(|word| Kind::ALL.into_iter().find(|kind| kind.name() == word).unwrap_or(Kind::Offloads))
}

/// For a script that sets something: a host that does not answer for so long is cut off. Its guard has not fired by then.
const SETS: Duration = Duration::from_secs(5);
/// For a new connection, which is tried again.
const CALLED: Duration = Duration::from_secs(3);

/// Machines that this host has spoken to on its interface, but for its gateways and who asks.
const NEIGHBOURS: &str = r#"set -- ${SSH_CONNECTION:-}
i=$(ip -o -4 addr show | awk -v a="${3:-}" '{ split($4, x, "/"); if (x[1] == a) print $2 }' | head -n 1)
g=$(ip -4 route show default | awk '{ for (i = 1; i < NF; i++) if ($i == "via") print $(i + 1) }')
ip -4 neigh show dev "$i" | awk -v g=" $(echo $g) ${1:-} " '$NF != "FAILED" && $NF != "INCOMPLETE" && !index(g, " " $1 " ") { print $1 }'"#;

/// Tries, or takes back.
pub fn run(args: &Args) -> Result<i32, Failure> {
    let Verb::Net(args) = &args.verb;
    if !crate::cmd::bench::net::SECONDS.contains(&args.seconds) {
        return Err(Failure::usage(format!("--seconds {}: from 0.1 to 60", args.seconds)));
    }
    let names = args.targets.hosts()?;
    let options = args.targets.options()?;
    let quick =
        Options { command_timeout: Some(SETS), connect_timeout: CALLED.min(options.connect_timeout), ..options };
    let executor = SshExecutor { remote: Remote::new(args.targets.options()?), sudo: args.sudo };
    if args.undo {
        return take_back(args, &executor, &names);
    }
    if names.len() < 2 {
        return Err(Failure::usage("a network has two hosts at least").hint("-w 'n[1-4]'"));
    }
    let hosts = Hosts::ask(args.targets.options()?, &names, args.seconds)?;
    let mut seen = look(&executor, &hosts)?;
    let wish = Wish { only: args.only.clone(), mtu: args.mtu };
    let (trials, left) = tune::trials(&facts(&hosts, &seen)?, &wish);
    if args.mtu.is_some() && !args.not_all && trials.iter().any(|trial| trial.kind == Kind::Mtu) {
        alone(&hosts)?;
    }
    if args.dry_run {
        return to_stdout(&if args.json { tune::planned_json(&trials, &left) } else { tune::planned(&trials, &left) });
    }
    let fresh = Fresh::new(quick.clone()).map_err(Failure::system)?;
    let quick = SshExecutor { remote: Remote::new(quick), sudo: args.sudo };
    let mut tried = Vec::new();
    for (nth, trial) in trials.into_iter().enumerate() {
        let tuner = Tuner {
            hosts: &hosts,
            executor: &quick,
            fresh: &|| fresh.remote(),
            token: format!("{}-{}-{nth}", std::process::id(), homing_clock::system_ns()),
            lasting: !args.until_boot,
            tell: TELL,
        };
        tried.push(tuner.tries(trial, &mut seen)?);
    }
    let status = i32::from(tried.iter().any(|one| matches!(one.fate, Fate::Failed(_))));
    to_stdout(&if args.json { tune::json(&tried, &left, status) } else { tune::text(&tried, &left) })?;
    Ok(status)
}

/// What all hosts are like; each has to answer, and to be root's.
fn look(executor: &SshExecutor, hosts: &Hosts) -> Result<BTreeMap<String, Observed>, Failure> {
    let mut seen = BTreeMap::new();
    for host in &hosts.known {
        let question = tune::question(host.interface.as_deref());
        let said = observe(executor, std::slice::from_ref(&host.name), &question);
        let there = said.into_values().next().unwrap_or(Err("it was not asked".into()));
        let there = there.map_err(|why| Failure::system(format!("asking {}: {why}", host.name)))?;
        if there.uid != 0 {
            let text = format!("you are user {} on {}, and root is needed to set anything", there.uid, host.name);
            return Err(Failure::system(text).hint("--sudo, or HOMING_SSH='ssh -l root'"));
        }
        seen.insert(host.name.clone(), there);
    }
    Ok(seen)
}

/// What is under way on a full connection takes one round.
fn facts(hosts: &Hosts, seen: &BTreeMap<String, Observed>) -> Result<Vec<Facts>, Failure> {
    let round = hosts.carry_out(&Order { load: Load::Alone, brief: false, pairs: vec![(0, 1)] })?;
    let pair = &round.pairs[0];
    let rate = pair.there.map_or(0.0, |flow| flow.mbit_per_s);
    // Half of a round trip, twice: Mbit/s times microseconds are bits.
    let round_trip = pair.latency.last().map_or(0.0, |took| took.p50_us * 2.0);
    let of = |host: &homing_network::Host| {
        let rate = rate.max(host.speed.map_or(0.0, f64::from));
        let seen = seen[&host.name].clone();
        let processors = seen.outputs.get("nproc").and_then(|n| n.trim().parse().ok()).unwrap_or(1);
        let interface = host.interface.clone().unwrap_or_default();
        Facts { host: host.name.clone(), interface, seen, processors, under_way: (rate * round_trip / 8.0) as u64 }
    };
    Ok(hosts.known.iter().map(of).collect())
}

/// Nobody else is on the segment: who keeps the smaller MTU would get packets that are too large.
fn alone(hosts: &Hosts) -> Result<(), Failure> {
    let own: Vec<String> = hosts.addresses.iter().map(ToString::to_string).collect();
    let said = hosts.all(&homing_exec::Command::argv(["sh", "-c", NEIGHBOURS]));
    let text =
        |said: Result<homing_exec::HostResult, String>| String::from_utf8_lossy(&said.ok()?.stdout).into_owned().into();
    let heard: Vec<String> = said.into_iter().filter_map(text).collect();
    let others: NodeSet = heard
        .iter()
        .flat_map(|text| text.lines())
        .filter(|line| line.parse::<std::net::Ipv4Addr>().is_ok() && !own.iter().any(|own| own == line))
        .map(String::from)
        .collect();
    if others.is_empty() {
        return Ok(());
    }
    let text = format!("--mtu: {others} is on the segment too, and -w does not name it; nothing was changed");
    Err(Failure::usage(text)
        .hint("name all hosts of the segment, or say --not-all where the others have this MTU already"))
}

fn take_back(args: &Net, executor: &SshExecutor, names: &[String]) -> Result<i32, Failure> {
    let journals = observe(executor, names, &tune::question(None));
    let mut question: Question = tune::question(None);
    let changes = journals.values().flatten().flat_map(|seen| &seen.journal).map(|(_, change)| change);
    question.links = Question::of_changes(changes.filter(|change| tune::is_own(change))).links;
    let seen = observe(executor, names, &question);
    let (mut phase, mut told, mut failed) =
        (Phase { name: "the way back".into(), ..Phase::default() }, Vec::new(), false);
    for (host, there) in seen {
        let mut there = match there {
            Ok(there) => there,
            Err(why) => {
                (failed, told) = (true, [told, vec![format!("{host}: {why}")]].concat());
                continue;
            }
        };
        there.journal.retain(|(_, change)| tune::is_own(change));
        let undone = undo(&there);
        let back = undone.steps.iter().map(|step| format!("{host}: {}", step.change.told()));
        told.extend(back.chain(undone.changed.iter().map(|why| format!("{host}: {why}"))));
        phase.steps.insert(host.clone(), undone.steps);
        phase.void.insert(host, undone.void);
    }
    let lost = carry_out(executor, &[phase], &mut |_| {});
    told.extend(lost.iter().map(|(host, why)| format!("{host}: {why}")));
    let status = if failed || !lost.is_empty() { exit::SYSTEM } else { 0 };
    if args.json {
        return to_stdout(&(serde_json::json!({ "undone": told, "exit": status }).to_string() + "\n")).map(|_| status);
    }
    if told.is_empty() {
        told.push("nothing to take back".into());
    }
    to_stdout(&(told.join("\n") + "\n")).map(|_| status)
}
