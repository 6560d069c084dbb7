//! Chooses the hosts that a run may use, and how each is reached.

use super::args::{Args, On};
use super::granted;
use crate::cluster::{BatchHosts, Cluster, with_slots};
use homing_batch::Login;
use homing_dispatch::Licensed;
use homing_launch::{HostPlan, Via};
use homing_locate::{CandidatePaths, Finder, HostNames};
use homing_model::{ClusterLinks, Failure};
use homing_scheduler::System;
use std::collections::BTreeSet;
use std::path::Path;

/// The most files that are checked to learn which hosts hold a volume.
const SAMPLE: usize = 64;

/// The hosts of a run.
pub struct Targets {
    /// Hosts that are used from the start.
    pub hosts: Vec<HostPlan>,
    /// Hosts that are used when others fail.
    pub spares: Vec<HostPlan>,
    /// The known network links between the hosts.
    pub links: ClusterLinks,
    /// Storage servers for which each host holds Slurm licences.
    pub licensed: Vec<Licensed>,
}

impl From<Vec<HostPlan>> for Targets {
    fn from(hosts: Vec<HostPlan>) -> Targets {
        Targets { hosts, spares: vec![], links: ClusterLinks::default(), licensed: vec![] }
    }
}

impl Targets {
    /// Returns whether all hosts are this machine.
    pub fn are_here(&self) -> bool {
        self.hosts.iter().all(|host| host.via == Via::Local)
    }

    /// Returns whether a host or a spare host is another machine.
    pub fn may_be_away(&self) -> bool {
        self.hosts.iter().chain(&self.spares).any(|host| host.via != Via::Local)
    }

    /// Returns the batch system that grants some of the hosts.
    pub fn system(&self) -> Option<System> {
        self.hosts.iter().find_map(HostPlan::system)
    }
}

/// Returns the hosts of the run.
pub fn targets(args: &Args, cwd: &Path, run: &str, tasks: Option<u64>) -> Result<Targets, Failure> {
    let cluster = args.cluster.load()?;
    let logins = super::parallel::logins(&args.parallel)?;
    if args.ppn.is_some() {
        return Ok(super::wide::plan(args, cluster, !logins.is_empty())?.into());
    }
    agree(args, &logins)?;
    if !logins.is_empty() {
        let hosts = with_slots(logins.into_iter().map(|login| host_of(login, cluster)).collect())?;
        return Ok(Targets { links: cluster.links(Vec::new())?, ..hosts.into() });
    }
    if let Some(hosts) = batch_hosts(args)? {
        let hosts = hosts.plans(cluster)?;
        return Ok(Targets { links: cluster.links(Vec::new())?, ..hosts.into() });
    }
    let given = args.node_set().is_some() || cluster.has_hosts();
    if let Some(system) = granted::chosen(args, given) {
        let (hosts, spares, licensed) = granted::targets(system, args, cluster, run, tasks, holders(args, cwd)?)?;
        return Ok(Targets { hosts, spares, links: cluster.links(system.words().switches())?, licensed });
    }
    let local = match args.on {
        On::Local => true,
        On::Auto => !given,
        On::Ssh | On::Slurm | On::Lsf => false,
    };
    if local {
        return Ok(vec![HostPlan { name: super::hostname(), via: Via::Local, slots: None }].into());
    }
    let names = if given { cluster.hosts(args.node_set().as_deref())? } else { holders(args, cwd)? };
    if names.is_empty() {
        return Err(Failure::usage(
            "--on ssh needs hosts: none are named, and no input lies on a volume with known hosts",
        )
        .hint("--hosts 'n[1-4]', or a cluster.toml with hosts = \"n[1-4]\""));
    }
    let hosts = cluster.plans(names)?;
    Ok(Targets { links: cluster.links(Vec::new())?, ..hosts.into() })
}

/// Returns the hosts of the batch job around this process, unless the command line names hosts or a kind of hosts. They
/// count more than those of the cluster file, most of which belong to other jobs.
fn batch_hosts(args: &Args) -> Result<Option<BatchHosts>, Failure> {
    let is_chosen = matches!(args.on, On::Auto | On::Ssh) && args.node_set().is_none() && !args.cluster.is_lab();
    if is_chosen && !args.batch.is_given(args.ppn.is_some()) { BatchHosts::from_env() } else { Ok(None) }
}

/// Refuses words on hosts that no run takes. Queries no host.
pub fn refuse(args: &Args, cluster: &Cluster) -> Result<(), Failure> {
    let logins = super::parallel::logins(&args.parallel)?;
    if args.ppn.is_none() {
        agree(args, &logins)?;
    }
    args.node_set().as_deref().map_or(Ok(()), |hosts| cluster.hosts(Some(hosts)).map(drop))
}

/// Refuses options that contradict each other.
fn agree(args: &Args, logins: &[Login]) -> Result<(), Failure> {
    match args.node_set() {
        Some(_) if !logins.is_empty() => {
            Err(Failure::usage("--sshlogin and --hosts both name the hosts; give one of them"))
        }
        Some(_) if args.on == On::Local => {
            Err(Failure::usage("--hosts works with --on ssh; --on local uses only this machine"))
        }
        _ => Ok(()),
    }
}

/// Returns the host of a login in GNU parallel's notation.
fn host_of(login: Login, cluster: &Cluster) -> HostPlan {
    let name = match login.target.as_str() {
        ":" => return HostPlan { slots: login.slots, name: super::hostname(), via: Via::Local },
        target => target.rsplit('@').next().unwrap_or(target).to_string(),
    };
    let found = cluster.plan(name);
    let via = if login.target.contains('@') { Via::Ssh { target: login.target } } else { found.via };
    HostPlan { slots: login.slots.or(found.slots), name: found.name, via }
}

/// Returns the storage hosts of the inputs on the command line, or else of the files in the working directory.
fn holders(args: &Args, cwd: &Path) -> Result<Vec<String>, Failure> {
    let paths = |words: &[std::ffi::OsString]| words.iter().map(|w| cwd.join(w)).take(SAMPLE).collect();
    // Files of HDFS are left out: a service that answers by HTTP does not choose where commands run.
    let named = CandidatePaths { declared: paths(&args.near), words: paths(&args.words), ..CandidatePaths::default() };
    let (looked, cwd) = (named.all().cloned().chain([cwd.to_path_buf()]).collect(), cwd.to_path_buf());
    let own = args.cluster.load()?.locators();
    let look = move || {
        let finder = Finder::with_own(own);
        let hosts = finder.inputs(&named).shared;
        if hosts.is_empty() { finder.folder(&cwd, SAMPLE).shared } else { hosts }
    };
    let limit = args.fs_timeout;
    let hosts = homing_mounts::patiently(looked, limit, look)
        .map_err(|silent| Failure::system(format!("cannot find the hosts that hold the inputs: {silent}")))?;
    let names = HostNames::default();
    let named: BTreeSet<String> = hosts.keys().map(|host| names.of(host)).collect();
    Ok(named.into_iter().collect())
}
