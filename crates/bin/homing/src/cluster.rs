//! The options that choose a cluster, for all commands that take hosts. The crate `cluster` reads the cluster file.

use clap::ArgMatches;
pub use homing_cluster::*;
use homing_model::{Failure, NodeSet};
use homing_setup::ClusterSite;
use std::cell::OnceCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// `--cluster` and `--lab`. Global, for the commands that have commands below them.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct ClusterArgs {
    /// Cluster file (default: ./cluster.toml, ~/.config/homing/cluster.toml, /etc/homing/cluster.toml)
    #[arg(long, value_name = "FILE", global = true)]
    cluster: Option<PathBuf>,
    /// Use this lab of `homing lab`: its keys, and its hosts if no cluster file is named
    #[arg(long, value_name = "LAB", global = true)]
    lab: Option<String>,
    /// The content of the files, once they were read. A change of a file after that counts for the next command only.
    #[arg(skip)]
    said: OnceCell<Rc<Cluster>>,
}

impl ClusterArgs {
    /// Returns the options for a file that was named by other means.
    pub fn named(cluster: Option<PathBuf>) -> ClusterArgs {
        ClusterArgs { cluster, ..ClusterArgs::default() }
    }

    /// Makes a lab the cluster of this program and of all that it starts. Call it before there are other threads, and
    /// before the cluster file is read.
    pub fn enter(&self) -> Result<(), Failure> {
        self.lab.as_deref().map_or(Ok(()), |name| enter(name, self.file()))
    }

    /// Returns the same options with another cluster file.
    pub fn of_file(&self, cluster: Option<PathBuf>) -> ClusterArgs {
        ClusterArgs { cluster, lab: self.lab.clone(), ..ClusterArgs::default() }
    }

    /// Gives the hosts of a set-up their addresses in the networks of the named lab, unless the cluster file has some.
    /// Refuses hosts that are not of the lab, before a command changes them.
    pub fn fit_to_lab(&self, site: &mut ClusterSite) -> Result<(), Failure> {
        let Some(plan) = self.lab.as_deref().map(homing_lab::reach).transpose()? else { return Ok(()) };
        let strangers: NodeSet = site.hosts.iter().filter(|host| plan.host(host).is_none()).cloned().collect();
        if strangers.is_empty() {
            for host in site.hosts.iter().filter_map(|host| plan.host(host)) {
                let addresses = host.addresses();
                if !addresses.is_empty() {
                    site.addresses.entry(host.name()).or_insert(addresses);
                }
            }
            return Ok(());
        }
        let (lab, has) = (&plan.spec.name, plan.names());
        let why = format!("the cluster file names {strangers}; lab {lab} has the hosts {has} alone");
        Err(Failure::usage(why).hint(format!("homing lab up --hosts N makes a lab of N hosts; or hosts = \"{has}\"")))
    }

    /// Returns the cluster of the cluster files.
    pub fn load(&self) -> Result<&Cluster, Failure> {
        if let Some(said) = self.said.get() {
            return Ok(said);
        }
        let said = Cluster::load(self.cluster.as_deref())?;
        Ok(self.said.get_or_init(|| Rc::new(said)))
    }

    /// Returns the named file.
    pub fn file(&self) -> Option<&Path> {
        self.cluster.as_deref()
    }

    /// Returns the user's own file: the named one, or the first that is found.
    pub fn own_file(&self) -> Option<PathBuf> {
        own_path(self.file(), true)
    }

    /// Returns whether a lab was named. Its hosts are meant if no others are named.
    pub fn is_lab(&self) -> bool {
        self.lab.is_some()
    }

    /// Returns whether the options name hosts, for a command line that is not entered yet.
    pub fn names_hosts(&self) -> Result<bool, Failure> {
        Ok(self.lab.is_some() || self.load()?.has_hosts())
    }

    /// Returns the cluster of options that another process enters later.
    pub fn of_later(&self) -> Result<Rc<Cluster>, Failure> {
        match &self.lab {
            Some(name) if self.cluster.is_none() => {
                Ok(Rc::new(Cluster::load(Some(&homing_lab::reach(name)?.cluster_file()))?))
            }
            _ => self.load().map(|_| self.said.get().cloned().unwrap_or_else(|| unreachable!("it was just read"))),
        }
    }

    /// Merges the options of a submission with those of the job's script.
    pub fn or(self, other: ClusterArgs) -> ClusterArgs {
        if self.cluster.is_some() || self.lab.is_some() { self } else { other }
    }

    /// Returns the same words again, for a program that must use the same cluster.
    pub fn words(&self) -> Vec<OsString> {
        let cluster = self.cluster.iter().flat_map(|file| ["--cluster".into(), file.clone().into_os_string()]);
        let lab = self.lab.iter().flat_map(|name| ["--lab".into(), OsString::from(name)]);
        cluster.chain(lab).collect()
    }
}

/// Enters the lab of any command line, as [`ClusterArgs::enter`] does.
pub fn enter_of(matches: &ArgMatches) -> Result<(), Failure> {
    match matches.subcommand() {
        Some((_, below)) => enter_of(below),
        // An error: the command takes no hosts.
        None => {
            let file = matches.try_get_one::<PathBuf>("cluster").ok().flatten();
            let lab = matches.try_get_one::<String>("lab").ok().flatten();
            lab.map_or(Ok(()), |name| enter(name, file.map(PathBuf::as_path)))
        }
    }
}

/// Programs that this one starts use the lab's keys, and the named cluster file or else that of the lab.
fn enter(name: &str, file: Option<&Path>) -> Result<(), Failure> {
    let plan = homing_lab::reach(name)?;
    let absolute = |file: &Path| {
        std::path::absolute(file).map_err(|e| Failure::usage(format!("the cluster file {}: {e}", file.display())))
    };
    let (config, cluster) = (plan.ssh_config(), file.map_or_else(|| Ok(plan.cluster_file()), absolute)?);
    // SAFETY: this program has no other thread here.
    unsafe {
        std::env::set_var("HOMING_CLUSTER", cluster);
        std::env::set_var("HOMING_SSH", format!("ssh -F {}", config.display()));
    }
    Ok(())
}
