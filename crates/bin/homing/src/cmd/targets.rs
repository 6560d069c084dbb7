//! The options that name hosts and the connections to them, shared by `exec`, `push`, `pull` and `check`. Letters and
//! meaning are those of clush.

use crate::cluster::{Cluster, ClusterArgs};
use homing_batch::{BatchError, parse_duration, parse_duration_within};
use homing_model::nodeset::host_lines;
use homing_model::{Failure, NodeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const HOSTS: &str = "Hosts";
const WAY: &str = "Connections";

/// Hosts and connections.
#[derive(clap::Args)]
pub struct Targets {
    /// Hosts, as a node set
    #[arg(help_heading = HOSTS, short = 'w', long, value_name = "NODESET")]
    hosts: Vec<String>,
    /// Leave out these hosts
    #[arg(help_heading = HOSTS, short = 'x', long, value_name = "NODESET")]
    exclude: Vec<String>,
    /// All hosts of the groups or of the cluster file
    #[arg(help_heading = HOSTS, short, long)]
    all: bool,
    /// Hosts of a group
    #[arg(help_heading = HOSTS, short, long, value_name = "GROUP")]
    group: Vec<String>,
    /// Leave out the hosts of a group
    #[arg(help_heading = HOSTS, short = 'X', long, value_name = "GROUP")]
    exclude_group: Vec<String>,
    /// Read hosts from FILE: node sets, one or more a line
    #[arg(help_heading = HOSTS, long, alias = "machinefile", value_name = "FILE")]
    hostfile: Vec<PathBuf>,
    #[command(flatten, next_help_heading = HOSTS)]
    cluster: ClusterArgs,
    /// Number of hosts at work at once
    #[arg(help_heading = WAY, short, long, default_value_t = 64, value_name = "N")]
    fanout: usize,
    /// Time limit for connecting to a host
    #[arg(help_heading = WAY, short = 't', long, alias = "connect_timeout", default_value = "10", value_name = "TIME", value_parser = |text: &str| time("-t", text))]
    connect_timeout: Duration,
    /// Time limit of the command on a host
    #[arg(help_heading = WAY, short = 'u', long, alias = "command_timeout", value_name = "TIME", value_parser = |text: &str| time("-u", text))]
    command_timeout: Option<Duration>,
    /// User on the hosts
    #[arg(help_heading = WAY, short = 'l', long, value_name = "USER")]
    user: Option<String>,
    /// More options for ssh, quoted as in a shell
    #[arg(help_heading = WAY, short = 'o', long = "options", value_name = "OPTIONS", allow_hyphen_values = true)]
    ssh_options: Vec<String>,
    /// Keep an unused connection for this time; 0 closes it at the end
    #[arg(help_heading = WAY, long, default_value = "10m", value_name = "TIME", value_parser = |text: &str| parse_duration("--persist", text))]
    persist: Duration,
}

/// Hosts of a command that looks at them. The letters are those of [`Targets`].
#[derive(clap::Args, Clone, Debug, Default)]
pub struct HostArgs {
    /// Hosts, as a node set (default: those of cluster.toml, else this machine)
    #[arg(short = 'w', long, value_name = "NODESET")]
    hosts: Option<String>,
    /// Leave out these hosts
    #[arg(short = 'x', long, value_name = "NODESET")]
    exclude: Option<String>,
    /// Hosts of a group
    #[arg(short, long, value_name = "GROUP", conflicts_with = "hosts")]
    group: Option<String>,
    /// All hosts of the groups or of the cluster file
    #[arg(short, long, conflicts_with_all = ["hosts", "group"])]
    all: bool,
}

impl HostArgs {
    /// Returns whether hosts are meant.
    pub fn is_given(&self) -> bool {
        self.all || self.hosts.is_some() || self.group.is_some() || self.exclude.is_some()
    }

    /// Returns the names of the hosts: those of cluster.toml by default, else this machine.
    pub fn names(&self, cluster: &Cluster) -> Result<Vec<String>, Failure> {
        let group = self.group.as_ref().map(|group| format!("@{group}"));
        let mut names = match self.all.then(|| cluster.hosts(Some("@*"))) {
            Some(Ok(all)) => all,
            // Without groups, all hosts are those of the cluster file.
            _ => cluster.hosts(self.hosts.clone().or(group).as_deref())?,
        };
        if names.is_empty() {
            names.push(homing_os::names::own_name());
        }
        if let Some(unwanted) = &self.exclude {
            let unwanted = cluster.set(unwanted, None)?;
            names.retain(|host| !unwanted.contains(host));
            if names.is_empty() {
                return Err(Failure::usage(format!("-x {unwanted} leaves no host")));
            }
        }
        Ok(names)
    }
}

/// Reads a time that is more than 0.
fn time(option: &'static str, text: &str) -> Result<Duration, BatchError> {
    parse_duration_within(option, text, f64::MIN_POSITIVE..=f64::INFINITY)
}

/// Returns a word as a person pastes it into a shell.
pub fn shell_word(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.into(), |quoted| quoted.into_owned())
}

impl Targets {
    /// Returns whether any hosts were named.
    pub fn named(&self) -> bool {
        self.all || !(self.hosts.is_empty() && self.group.is_empty() && self.hostfile.is_empty())
    }

    /// Returns whether no option names or excludes hosts, and no lab is meant.
    pub fn are_unnamed(&self) -> bool {
        let excludes = !(self.exclude.is_empty() && self.exclude_group.is_empty());
        !(self.named() || excludes || self.cluster.is_lab())
    }

    /// Returns the cluster that the options mean.
    pub fn cluster(&self) -> &ClusterArgs {
        &self.cluster
    }

    /// Returns the options that reach hosts in the same way, for a command to paste, with a blank behind each.
    pub fn way_words(&self) -> String {
        let user = self.user.iter().flat_map(|user| ["-l".to_string(), user.clone()]);
        let ssh = self.ssh_options.iter().flat_map(|words| ["-o".to_string(), words.clone()]);
        let cluster = self.cluster.words().into_iter().map(|word| word.to_string_lossy().into_owned());
        cluster.chain(user).chain(ssh).map(|word| shell_word(&word) + " ").collect()
    }

    /// Returns the hosts, in order.
    pub fn hosts(&self) -> Result<Vec<String>, Failure> {
        self.hosts_by(None)
    }

    /// Returns the hosts, in order. `source`: that of groups that name none.
    pub fn hosts_by(&self, source: Option<&str>) -> Result<Vec<String>, Failure> {
        let groups = |names: &[String]| names.iter().map(|g| format!("@{g}")).collect::<Vec<_>>();
        let mut wanted = self.hosts.clone();
        wanted.extend(groups(&self.group));
        let unnamed = wanted.is_empty() && self.hostfile.is_empty();
        if self.all || (unnamed && self.cluster.is_lab()) {
            wanted.push("@*".into());
        }
        for file in &self.hostfile {
            let text = std::fs::read_to_string(file)
                .map_err(|e| Failure::usage(format!("cannot read the hosts in {}: {e}", file.display())))?;
            wanted.extend(host_lines(&text).map(String::from));
        }
        if wanted.is_empty() {
            return Err(Failure::usage("no hosts are named").hint("-w 'n[1-4]', -g GROUP or -a"));
        }
        let mut unwanted = self.exclude.clone();
        unwanted.extend(groups(&self.exclude_group));
        let cluster = self.cluster.load()?;
        let union = |texts: &[String]| -> Result<NodeSet, Failure> {
            let sets = texts.iter().map(|text| cluster.set(text, source));
            sets.reduce(|a, b| Ok(a?.union(&b?))).unwrap_or_else(|| Ok(NodeSet::default()))
        };
        let set = union(&wanted)?.difference(&union(&unwanted)?);
        if set.is_empty() {
            return Err(Failure::usage(format!("{:?} leaves no host", wanted.join(","))));
        }
        Ok(set.iter().map(String::from).collect())
    }

    /// Returns the options for connections.
    pub fn options(&self) -> Result<homing_exec::Options, Failure> {
        let mut options = homing_exec::Options::default();
        for words in &self.ssh_options {
            let words = shlex::split(words)
                .ok_or_else(|| Failure::usage(format!("-o: {words:?} has a quote without an end")))?;
            options.ssh.extend(words.into_iter().map(OsString::from));
        }
        if self.fanout == 0 {
            return Err(Failure::usage("-f 0: at least one host must be at work"));
        }
        Ok(homing_exec::Options {
            user: self.user.clone(),
            fan_out: self.fanout,
            connect_timeout: self.connect_timeout,
            command_timeout: self.command_timeout,
            persist: self.persist,
            ..options
        })
    }
}
