//! The options that choose a cluster, for all commands that take hosts. The crate `cluster` reads the cluster file.

use clap::ArgMatches;
pub use homing_cluster::*;
use homing_model::Failure;
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
    /// Use the hosts of this lab of `homing lab`, with the keys of the lab
    #[arg(long, value_name = "LAB", global = true, conflicts_with = "cluster")]
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
        self.lab.as_deref().map_or(Ok(()), enter)
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
            Some(name) => Ok(Rc::new(Cluster::load(Some(&homing_lab::reach(name)?.cluster_file()))?)),
            None => self.load().map(|_| self.said.get().cloned().unwrap_or_else(|| unreachable!("it was just read"))),
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
        None => matches.try_get_one::<String>("lab").ok().flatten().map_or(Ok(()), |name| enter(name)),
    }
}

fn enter(name: &str) -> Result<(), Failure> {
    let plan = homing_lab::reach(name)?;
    let config = plan.ssh_config();
    // SAFETY: this program has no other thread here.
    unsafe {
        std::env::set_var("HOMING_CLUSTER", plan.cluster_file());
        std::env::set_var("HOMING_SSH", format!("ssh -F {}", config.display()));
    }
    Ok(())
}
