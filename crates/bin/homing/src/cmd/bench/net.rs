//! `homing bench net`: finds the slow hosts, directions and links.

use crate::cmd::runs::to_stdout;
use crate::cmd::targets::Targets;
use homing_bench::net::{self, Hosts};
use homing_exec::{Command, Remote};
use homing_model::{Failure, exit};
use homing_network::findings;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `homing bench net`.
///
/// Exit status: 0: nothing is slow; 1: something is; 254, 255: homing's own
/// failures.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    targets: Targets,
    /// Time of each load of a pair: each direction, then both
    #[arg(long, value_name = "TIME", default_value = "0.5", value_parser = crate::cmd::times::load_time)]
    seconds: Duration,
    /// Measure every pair of hosts, not only as many as show a slow host
    #[arg(long)]
    pairs: bool,
    /// Measure only two hosts (A and B, or those of -w) with messages of 1 byte to 1 MiB: the time of each, and its
    /// share of the link
    #[arg(long, conflicts_with = "pairs", num_args = 0..=2, value_names = ["A", "B"])]
    curve: Option<Vec<String>>,
    /// Beside that the same over the MPI of the hosts, by their mpicc and mpirun
    #[arg(long, requires = "curve")]
    mpi: bool,
    /// Measure the rate of storage servers to all other hosts at once, and to one alone: servers of mounts, or of
    /// NODESET
    #[arg(long, value_name = "NODESET", num_args = 0..=1, require_equals = true, conflicts_with = "curve")]
    storage: Option<Option<String>>,
    /// Write a self-contained HTML page with all pairs
    #[arg(long, value_name = "FILE", conflicts_with = "curve")]
    html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Measures the network, and reports its slow parts.
pub fn run(args: &Args) -> Result<i32, Failure> {
    let mut names = match args.curve.as_deref() {
        Some([a, b]) => vec![a.clone(), b.clone()],
        Some([_]) => return Err(Failure::usage("--curve: name two hosts, or none if -w names two")),
        _ => args.targets.hosts()?,
    };
    if names.len() < 2 {
        return Err(Failure::usage("at least two hosts are needed").hint("-w 'n[1-4]'"));
    }
    if args.curve.is_some() && names.len() != 2 {
        return Err(Failure::usage("--curve measures exactly two hosts").hint("--curve n1 n2"));
    }
    let servers = servers(args, &names)?;
    names.extend(servers.iter().filter(|server| !names.contains(server)).cloned().collect::<Vec<_>>());
    let seconds = args.seconds.as_secs_f64();
    let hosts = Hosts::answering(args.targets.options()?, &names, seconds)?;
    super::name_silent(&hosts);
    if args.curve.is_some() {
        return curve(&hosts, args);
    }
    let measured = net::measure(&hosts, args.pairs, homing_os::clock::system_ns() as u64, super::TELL)?;
    let found = findings(&measured);
    let place = |server: &String| hosts.known.iter().position(|host| host.name == *server);
    let served = net::serving(&hosts, &servers.iter().filter_map(place).collect::<Vec<_>>(), super::TELL)?;
    if let Some(file) = &args.html {
        super::put(file, net::page(&measured, &found, &served))?;
    }
    to_stdout(&match args.json {
        true => net::json(&measured, &found, &served),
        false => net::text(&measured, &found) + &net::more(&served),
    })?;
    Ok(if hosts.silent.is_empty() { i32::from(!found.is_empty()) } else { exit::SYSTEM })
}

/// Returns the named servers, or the servers of the hosts' network mounts.
fn servers(args: &Args, names: &[String]) -> Result<Vec<String>, Failure> {
    match &args.storage {
        None => Ok(Vec::new()),
        Some(Some(set)) => Ok(args.targets.cluster().load()?.hosts(Some(set))?),
        Some(None) => {
            let said = Remote::new(args.targets.options()?).run(names, &Command::argv(["cat", "/proc/self/mountinfo"]));
            let mounts = said.flat_map(|said| homing_mounts::network(homing_mounts::parse(&said.stdout)));
            let all: BTreeSet<String> = mounts.filter_map(|mount| homing_mounts::server(&mount)).collect();
            if all.is_empty() {
                return Err(Failure::usage("--storage: no network mount of these hosts names a server")
                    .hint("--storage=NODESET names the hosts whose disks hold the bytes"));
            }
            Ok(all.into_iter().collect())
        }
    }
}

fn curve(hosts: &Hosts, args: &Args) -> Result<i32, Failure> {
    let pair = hosts.curve()?;
    let names = format!("{} and {}", hosts.known[0].name, hosts.known[1].name);
    if let Some(why) = &pair.failed {
        return Err(Failure::system(format!("measuring between {names}: {why}")));
    }
    if pair.stalled {
        let text = format!("measuring between {names}: small packets arrive, large packets are lost");
        return Err(
            Failure::system(text).hint("ip link show: compare the MTU of both interfaces and of the switch ports")
        );
    }
    let points = |took: &[homing_network::Latency]| net::points(took, hosts.known[0].speed.min(hosts.known[1].speed));
    let mpi = if args.mpi { Some(net::mpi(hosts)?) } else { None };
    let curve = net::Curve { tcp: points(&pair.latency), mpi: mpi.map(|(name, took)| (name, points(&took))) };
    to_stdout(&if args.json { net::curve_json(hosts, &curve) } else { net::curve(hosts, &curve) })
}
