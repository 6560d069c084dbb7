//! `homing bench net`: which host, direction or link is slow.

use crate::cmd::runs::to_stdout;
use crate::cmd::targets::Targets;
use crate::failure::Failure;
use homing_bench::net::{self, Hosts};
use homing_network::findings;

/// Arguments of `homing bench net`.
///
/// Exit status: 0: nothing is slow; 1: something is; 254, 255: homing's own
/// failures.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    targets: Targets,
    /// How long each pair is loaded, a part: each direction, then both
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5)]
    seconds: f64,
    /// Each host with each other, instead of as many as tell who is slow
    #[arg(long)]
    pairs: bool,
    /// Two hosts alone, with messages of 1 byte to 1 MiB: how long each takes, and what share of the link it uses
    #[arg(long, conflicts_with = "pairs")]
    curve: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// The least time of a part that tells something, and the longest, in seconds.
const SECONDS: std::ops::RangeInclusive<f64> = 0.1..=60.0;

/// Measures, and tells what is slow.
pub fn run(args: &Args) -> Result<i32, Failure> {
    if !SECONDS.contains(&args.seconds) {
        return Err(Failure::usage(format!("--seconds {}: from 0.1 to 60", args.seconds)));
    }
    let names = args.targets.hosts()?;
    if names.len() < 2 {
        return Err(Failure::usage("a network has two hosts at least").hint("-w 'n[1-4]'"));
    }
    if args.curve && names.len() != 2 {
        return Err(Failure::usage("--curve: of two hosts").hint("-w 'n[1-2]'"));
    }
    let hosts = Hosts::ask(args.targets.options()?, &names, args.seconds)?;
    if args.curve {
        return curve(&hosts, args.json);
    }
    let measured = net::measure(&hosts, args.pairs, homing_clock::system_ns() as u64, super::TELL)?;
    let found = findings(&measured);
    to_stdout(&if args.json { net::json(&measured, &found) } else { net::text(&measured, &found) })?;
    Ok(i32::from(!found.is_empty()))
}

fn curve(hosts: &Hosts, as_json: bool) -> Result<i32, Failure> {
    let pair = hosts.curve()?;
    let names = format!("{} and {}", hosts.known[0].name, hosts.known[1].name);
    if let Some(why) = &pair.failed {
        return Err(Failure::system(format!("measuring between {names}: {why}")));
    }
    if pair.stalled {
        let text = format!("measuring between {names}: small packets pass, large ones do not");
        return Err(Failure::system(text).hint("ip link show; the MTU of both interfaces and of the switch ports"));
    }
    let points = net::points(&pair, hosts.known[0].speed.min(hosts.known[1].speed));
    to_stdout(&if as_json { net::curve_json(hosts, &points) } else { net::curve(hosts, &points) })
}
