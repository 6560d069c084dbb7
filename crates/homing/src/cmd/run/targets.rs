//! Which hosts a run may use, and how each is reached.

use super::args::{Args, On};
use crate::cluster::Cluster;
use crate::failure::Failure;
use homing_dispatch::HostPlan;
use homing_launch::Via;
use homing_locate::{HostNames, Locator};
use std::collections::BTreeSet;
use std::path::Path;

/// Files looked at to learn which hosts hold a volume.
const SAMPLE: usize = 64;

/// The hosts of a run.
pub struct Targets {
    /// Used from the start.
    pub hosts: Vec<HostPlan>,
    /// Used when those fail.
    pub spares: Vec<HostPlan>,
}

impl From<Vec<HostPlan>> for Targets {
    fn from(hosts: Vec<HostPlan>) -> Targets {
        Targets { hosts, spares: vec![] }
    }
}

/// The hosts of the run.
pub fn targets(args: &Args, cwd: &Path, locator: &Locator, run: &str, tasks: Option<u64>) -> Result<Targets, Failure> {
    let cluster = Cluster::load(args.cluster.as_deref())?;
    let given = args.hosts.is_some() || cluster.has_hosts();
    if super::slurm::is_chosen(args, given) {
        return super::slurm::targets(args, &cluster, run, tasks, holders(args, cwd, locator));
    }
    let local = match args.on {
        On::Local => true,
        On::Auto => !given,
        On::Ssh | On::Slurm => false,
    };
    if local {
        if args.hosts.is_some() {
            return Err(Failure::usage("--hosts goes with --on ssh; --on local is this machine alone"));
        }
        return Ok(vec![HostPlan { name: super::hostname(), via: Via::Local, slots: None }].into());
    }
    let names = if given { cluster.hosts(args.hosts.as_deref())? } else { holders(args, cwd, locator) };
    if names.is_empty() {
        return Err(Failure::usage("--on ssh needs hosts, and no input lies on a volume that names any")
            .hint("--hosts n[1-4], or a cluster.toml with hosts = \"n[1-4]\""));
    }
    Ok(names.into_iter().map(|name| plan(name, &cluster)).collect::<Vec<_>>().into())
}

fn plan(name: String, cluster: &Cluster) -> HostPlan {
    let own = super::hostname();
    let here = name == own || own.split('.').next() == Some(name.as_str()) || name == "localhost";
    let via = if here { Via::Local } else { Via::Ssh { target: name.clone() } };
    HostPlan { slots: cluster.slots_of(&name), name, via }
}

/// Storage hosts of the inputs that can be read off the command line, or of the working directory.
fn holders(args: &Args, cwd: &Path, locator: &Locator) -> Vec<String> {
    let words = args.words.iter().chain(&args.near).map(|w| cwd.join(w)).filter(|p| p.exists());
    let mut hosts: BTreeSet<String> = BTreeSet::new();
    let holding = |path: &Path| {
        let files = if path.is_dir() { locator.locate_tree(path, SAMPLE).files } else { vec![locator.locate(path)] };
        let network = files.into_iter().filter(|f| !f.volume.starts_with("local:"));
        network.flat_map(|f| f.bytes_per_host().into_keys()).collect::<Vec<_>>()
    };
    words.take(SAMPLE).for_each(|p| hosts.extend(holding(&p)));
    if hosts.is_empty() {
        hosts.extend(holding(cwd));
    }
    let names = HostNames::default();
    let named: BTreeSet<String> = hosts.iter().map(|host| names.of(host)).collect();
    named.into_iter().collect()
}
