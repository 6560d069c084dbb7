//! `homing topology`: finds which host is on which switch.

use crate::cmd::bench::{TELL, name_silent};
use crate::cmd::runs::to_stdout;
use crate::cmd::targets::Targets;
use homing_bench::net::Hosts;
use homing_bench::topology::{self, TopologyQuery, TopologyReport};
use homing_model::{Failure, exit};
use homing_network::files;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Arguments of `homing topology`.
///
/// Exit status: 0: the place of each host is known; 1: it is not, or --diff
/// has found something; 254, 255: homing's own failures.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    targets: Targets,
    /// Query no switch: infer from measurements which hosts share a link
    #[arg(long)]
    measure: bool,
    /// Print the differences from the last result for the same hosts
    #[arg(long)]
    diff: bool,
    /// Write Slurm's topology.conf to FILE
    #[arg(long, value_name = "FILE")]
    topology_conf: Option<PathBuf>,
    /// Write Slurm's topology.yaml to FILE
    #[arg(long, value_name = "FILE")]
    topology_yaml: Option<PathBuf>,
    /// Write MooseFS's mfstopology.cfg to FILE
    #[arg(long, value_name = "FILE")]
    mfstopology: Option<PathBuf>,
    /// Draw the tree into FILE, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Query switches over SNMP for their neighbours and for the addresses behind their ports; FILE holds the community
    #[arg(long, value_name = "FILE", conflicts_with = "measure")]
    snmp: Option<PathBuf>,
    /// Addresses of switches to query, where LLDP does not report them
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', requires = "snmp")]
    switch: Vec<IpAddr>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Query lldpd with `sudo -n`
    #[arg(long)]
    sudo: bool,
}

/// How long each pair is loaded per part when the tree is inferred, in seconds.
const LOADED: f64 = 0.5;

/// Finds the tree, stores it, and writes the wanted files.
pub fn run(args: Args) -> Result<i32, Failure> {
    let names = args.targets.hosts()?;
    let hosts = Hosts::answering(args.targets.options()?, &names, LOADED)?;
    name_silent(&hosts);
    let names: Vec<String> = hosts.known.iter().map(|host| host.name.clone()).collect();
    let way = TopologyQuery { sudo: args.sudo, community: args.snmp.as_deref(), switches: &args.switch };
    let mut found = match args.measure {
        true => TopologyReport::measured(&hosts, homing_os::clock::system_ns() as u64, TELL)?,
        false => TopologyReport::from_neighbours(&hosts, &way)?,
    };
    let before = topology::keep(&names, &found.tree)?;
    if args.diff {
        let before = before.ok_or_else(|| {
            Failure::usage("--diff: no earlier result for these hosts; this one is recorded for the next --diff")
        })?;
        found.compared(&before);
    }
    let status = found.status();
    to_stdout(&if args.json { topology::json(&found, status) } else { topology::text(&found) })?;
    write(&args, &found, &hosts)?;
    Ok(if hosts.silent.is_empty() { status } else { exit::SYSTEM })
}

fn put(file: &Path, text: &str) -> Result<(), Failure> {
    homing_os::folder::write_whole(file, text.as_bytes(), None)
        .map_err(|e| Failure::system(format!("writing {}: {e}", file.display())))
}

/// Writes files for other programs. Slurm loses hosts that its file leaves out.
fn write(args: &Args, found: &TopologyReport, hosts: &Hosts) -> Result<(), Failure> {
    let addresses = hosts.known.iter().map(|host| host.name.clone()).zip(hosts.addresses.iter().copied()).collect();
    let texts = [
        (&args.topology_conf, files::slurm_conf(&found.tree)),
        (&args.topology_yaml, files::slurm_yaml(&found.tree)),
        (&args.mfstopology, files::moosefs(&found.tree, &addresses)),
    ];
    if let Some(file) = &args.svg {
        put(file, &topology::svg(found))?;
    }
    let silent = hosts.silent.iter().map(|(host, _)| host.as_str());
    let missing: Vec<&str> = found.missing().chain(silent).collect();
    for (file, text) in texts.iter().filter_map(|(file, text)| Some((file.as_deref()?, text))) {
        if !missing.is_empty() {
            let text = format!("{} was not written: the switch of {} is unknown", file.display(), missing.join(", "));
            return Err(Failure::system(text).hint("--measure, or leave them out with -x"));
        }
        put(file, text)?;
    }
    Ok(())
}
