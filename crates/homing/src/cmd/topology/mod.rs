//! `homing topology`: which host is on which switch.

mod ask;
mod picture;
mod show;
mod snmp;

use crate::cmd::bench::TELL;
use crate::cmd::runs::to_stdout;
use crate::cmd::targets::Targets;
use crate::failure::Failure;
use homing_bench::net::{Hosts, measure};
use homing_model::NodeSet;
use homing_network::tree::{Tree, inferred, moved, tree};
use homing_network::{PortFinding, differing, files, joined, sides};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `homing topology`.
///
/// Exit status: 0: the place of each host is known; 1: it is not, or --diff
/// has found something; 254, 255: homing's own failures.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    targets: Targets,
    /// How long hosts without lldpd listen; switches speak every 30 seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 35, value_parser = clap::value_parser!(u32).range(1..=600))]
    wait: u32,
    /// Ask no switch: measure which hosts share a link, and infer
    #[arg(long)]
    measure: bool,
    /// Tell what is otherwise than the last time, for the same hosts
    #[arg(long)]
    diff: bool,
    /// Write Slurm's topology.conf there
    #[arg(long, value_name = "FILE")]
    topology_conf: Option<PathBuf>,
    /// Write Slurm's topology.yaml there
    #[arg(long, value_name = "FILE")]
    topology_yaml: Option<PathBuf>,
    /// Write MooseFS's mfstopology.cfg there
    #[arg(long, value_name = "FILE")]
    mfstopology: Option<PathBuf>,
    /// Write a script there that tells the switch of each host or address it is given, as Hadoop and others want it
    #[arg(long, value_name = "FILE")]
    rack_script: Option<PathBuf>,
    /// Draw the tree there, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Ask switches over SNMP for their neighbours and for the addresses behind their ports; FILE holds the community
    #[arg(long, value_name = "FILE", conflicts_with = "measure")]
    snmp: Option<PathBuf>,
    /// Addresses of switches to ask, where LLDP does not tell them
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', requires = "snmp")]
    switch: Vec<IpAddr>,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Listen, or ask lldpd, with `sudo -n`
    #[arg(long)]
    sudo: bool,
}

/// For connections, and for what a host does besides listening.
const BESIDES: Duration = Duration::from_secs(60);
/// How long each pair is loaded a part where the tree is inferred, in seconds.
const LOADED: f64 = 0.5;

/// All that was found out.
#[derive(Default)]
struct Found {
    tree: Tree,
    /// Hosts that did not tell.
    silent: Vec<ask::Silent>,
    /// Switches that did not answer, and why.
    deaf: BTreeMap<IpAddr, String>,
    /// What switch ports say that does not fit their hosts.
    ports: Vec<PortFinding>,
    /// What is otherwise than it was.
    moved: Vec<String>,
}

/// Finds the tree, keeps it, writes it.
pub fn run(args: &Args) -> Result<i32, Failure> {
    let names = args.targets.hosts()?;
    let mut options = args.targets.options()?;
    options.command_timeout.get_or_insert(BESIDES + Duration::from_secs(args.wait.into()));
    let hosts = Hosts::ask(options, &names, LOADED)?;
    let mut found = if args.measure { measured(&hosts)? } else { told(&hosts, args)? };
    let before = kept(&names, &found.tree)?;
    if args.diff {
        let before = before.ok_or_else(|| {
            Failure::usage("--diff: these hosts were not looked at before; they are known from now on")
        })?;
        found.moved = moved(&before, &found.tree);
    }
    let status = i32::from(!found.tree.alone.is_empty() || !found.silent.is_empty() || !found.moved.is_empty());
    to_stdout(&if args.json { show::json(&found, status) } else { show::text(&found) })?;
    write(args, &found, &hosts)?;
    Ok(status)
}

fn told(hosts: &Hosts, args: &Args) -> Result<Found, Failure> {
    let (heard, silent) = ask::ask(hosts, args.wait, args.sudo)?;
    let ports = differing(&hosts.known, &heard);
    let found = Found { tree: tree(&heard), ports, silent, ..Found::default() };
    let Some(community) = &args.snmp else { return Ok(found) };
    let (switches, deaf) = snmp::ask(community, &args.switch, &heard)?;
    Ok(Found { tree: joined(found.tree, &switches, &ask::hardware(hosts)), deaf, ..found })
}

fn measured(hosts: &Hosts) -> Result<Found, Failure> {
    // Three rounds may miss a link that few pairs cross at once; in all of them some round has enough.
    let measured = measure(hosts, true, homing_clock::system_ns() as u64, TELL)?;
    let groups = sides(&measured);
    let named = |at: &usize| (hosts.known[*at].name.clone(), hosts.known[*at].interface.clone());
    let mut tree = inferred(&groups.iter().map(|group| group.iter().map(named).collect()).collect::<Vec<_>>());
    let grouped = |at: &usize| groups.iter().flatten().any(|host| host == at);
    tree.alone = (0..hosts.known.len()).filter(|at| !grouped(at)).map(|at| named(&at).0).collect();
    Ok(Found { tree, ..Found::default() })
}

fn file() -> PathBuf {
    homing_folder::state().join("topology.json")
}

/// What was found the last time, by node set.
pub fn known() -> Result<BTreeMap<String, Tree>, Failure> {
    let file = file();
    let damaged = |e: serde_json::Error| {
        Failure::system(format!("{} is damaged: {e}", file.display())).hint(format!("rm {}", file.display()))
    };
    match std::fs::read(&file) {
        Ok(text) => serde_json::from_slice(&text).map_err(damaged),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(e) => Err(Failure::system(format!("reading {}: {e}", file.display()))),
    }
}

/// What was known of the same hosts; from now on it is this.
fn kept(names: &[String], tree: &Tree) -> Result<Option<Tree>, Failure> {
    let (folder, file, mut all) = (homing_folder::state(), file(), known()?);
    let before = all.insert(names.iter().cloned().collect::<NodeSet>().to_string(), tree.clone());
    std::fs::create_dir_all(&folder).map_err(|e| Failure::system(format!("making {}: {e}", folder.display())))?;
    put(&file, &serde_json::to_string_pretty(&all).map_err(Failure::system)?)?;
    Ok(before)
}

fn put(file: &Path, text: &str) -> Result<(), Failure> {
    homing_folder::write_whole(file, text.as_bytes(), None)
        .map_err(|e| Failure::system(format!("writing {}: {e}", file.display())))
}

/// Files for others. Slurm loses hosts that its file leaves out.
fn write(args: &Args, found: &Found, hosts: &Hosts) -> Result<(), Failure> {
    let addresses = hosts.known.iter().map(|host| host.name.clone()).zip(hosts.addresses.iter().copied()).collect();
    let texts = [
        (&args.topology_conf, files::slurm_conf(&found.tree)),
        (&args.topology_yaml, files::slurm_yaml(&found.tree)),
        (&args.mfstopology, files::moosefs(&found.tree, &addresses)),
        (&args.rack_script, files::rack_script(&found.tree, &addresses)),
    ];
    if let Some(file) = &args.svg {
        put(file, &picture::svg(found))?;
    }
    let missing: Vec<&str> =
        found.tree.alone.iter().chain(found.silent.iter().map(|(host, _)| host)).map(String::as_str).collect();
    for (file, text) in texts.iter().filter_map(|(file, text)| Some((file.as_deref()?, text))) {
        if !missing.is_empty() {
            let text = format!("{} is not written: the switch of {} is not known", file.display(), missing.join(", "));
            return Err(Failure::system(text).hint("--measure, a longer --wait, or -x these hosts"));
        }
        put(file, text)?;
    }
    Ok(())
}
