//! The options that name hosts, shared by all commands that look at hosts, and those for connections to them, which
//! `exec`, `push`, `pull`, `check` and others have too. Letters and meaning are those of clush.

use crate::cluster::{Cluster, ClusterArgs};
use homing_batch::{BatchError, parse_duration, parse_duration_within};
use homing_model::nodeset::host_lines;
use homing_model::{Failure, NodeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const HOSTS: &str = "Hosts";
const WAY: &str = "Connections";

/// Hosts of a command.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct HostArgs {
    /// Hosts, as a node set
    #[arg(short = 'w', long, value_name = "NODESET")]
    hosts: Vec<String>,
    /// Leave out these hosts
    #[arg(short = 'x', long, value_name = "NODESET")]
    exclude: Vec<String>,
    /// All hosts of the groups or of the cluster file
    #[arg(short, long)]
    all: bool,
    /// Hosts of a group
    #[arg(short, long, value_name = "GROUP")]
    group: Vec<String>,
    /// Leave out the hosts of a group
    #[arg(short = 'X', long, value_name = "GROUP")]
    exclude_group: Vec<String>,
    /// Read hosts from FILE: node sets, one or more a line
    #[arg(long, alias = "machinefile", value_name = "FILE")]
    hostfile: Vec<PathBuf>,
}

impl HostArgs {
    /// Returns whether an option names hosts.
    pub fn named(&self) -> bool {
        self.all || !(self.hosts.is_empty() && self.group.is_empty() && self.hostfile.is_empty())
    }

    /// Returns whether an option names or excludes hosts.
    pub fn is_given(&self) -> bool {
        self.named() || !(self.exclude.is_empty() && self.exclude_group.is_empty())
    }

    /// Returns the named hosts without the excluded ones, in order. If no option names any, these are the hosts of the
    /// cluster file, or none. `source`: that of groups that name none.
    pub fn chosen(&self, cluster: &Cluster, source: Option<&str>) -> Result<Vec<String>, Failure> {
        self.without_excluded(self.wanted(cluster, source, false)?, cluster, source)
    }

    /// Returns the names of the hosts. If no option names any and the cluster file has none, this is this machine.
    pub fn names(&self, cluster: &Cluster) -> Result<Vec<String>, Failure> {
        let mut wanted = self.wanted(cluster, None, true)?;
        if wanted.is_empty() {
            wanted = [homing_os::names::own_name()].into_iter().collect();
        }
        self.without_excluded(wanted, cluster, None)
    }

    fn without_excluded(
        &self,
        wanted: NodeSet,
        cluster: &Cluster,
        source: Option<&str>,
    ) -> Result<Vec<String>, Failure> {
        let unwanted: Vec<String> = self.exclude.iter().cloned().chain(groups(&self.exclude_group)).collect();
        let left = wanted.difference(&union(&unwanted, cluster, source)?);
        if left.is_empty() && !wanted.is_empty() {
            return Err(Failure::usage(format!("no host is left of {wanted} without {}", unwanted.join(","))));
        }
        Ok(left.iter().map(String::from).collect())
    }

    /// Returns the hosts that the options name, before any is excluded. `may_be_none`: `-a` without groups and without
    /// hosts in the cluster file is no error.
    fn wanted(&self, cluster: &Cluster, source: Option<&str>, may_be_none: bool) -> Result<NodeSet, Failure> {
        let of_file = || Ok(cluster.hosts(None)?.into_iter().collect());
        if !self.named() {
            return of_file();
        }
        let mut wanted: Vec<String> = self.hosts.iter().cloned().chain(groups(&self.group)).collect();
        for file in &self.hostfile {
            let text = std::fs::read_to_string(file)
                .map_err(|e| Failure::usage(format!("cannot read the hosts in {}: {e}", file.display())))?;
            wanted.extend(host_lines(&text).map(String::from));
        }
        let named = union(&wanted, cluster, source)?;
        if !self.all {
            let none = || Failure::usage("the options for hosts name no host").hint("-w 'n[1-4]', -g GROUP or -a");
            return if named.is_empty() { Err(none()) } else { Ok(named) };
        }
        // Without groups, all hosts are those of the cluster file.
        let all = match cluster.set("@*", source) {
            // The error names the source of groups that lists no hosts.
            Err(e) if !may_be_none && !cluster.has_hosts() => return Err(e),
            Err(_) => of_file()?,
            Ok(all) => all,
        };
        Ok(all.union(&named))
    }
}

fn groups(names: &[String]) -> impl Iterator<Item = String> {
    names.iter().map(|group| format!("@{group}"))
}

fn union(texts: &[String], cluster: &Cluster, source: Option<&str>) -> Result<NodeSet, Failure> {
    texts.iter().try_fold(NodeSet::default(), |all, text| Ok(all.union(&cluster.set(text, source)?)))
}

/// Hosts and connections.
#[derive(clap::Args)]
pub struct Targets {
    #[command(flatten, next_help_heading = HOSTS)]
    chosen: HostArgs,
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

/// Reads a time that is more than 0.
fn time(option: &'static str, text: &str) -> Result<Duration, BatchError> {
    parse_duration_within(option, text, f64::MIN_POSITIVE..=f64::INFINITY)
}

/// Returns a word as a person pastes it into a shell.
pub fn shell_word(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.into(), |quoted| quoted.into_owned())
}

impl Targets {
    /// Returns whether an option names hosts.
    pub fn named(&self) -> bool {
        self.chosen.named()
    }

    /// Returns whether no option names or excludes hosts, and no lab is meant.
    pub fn are_unnamed(&self) -> bool {
        !(self.chosen.is_given() || self.cluster.is_lab())
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

    /// Returns the named hosts, in order. A lab names its own.
    pub fn hosts(&self) -> Result<Vec<String>, Failure> {
        self.hosts_by(None)
    }

    /// Returns the named hosts, in order. `source`: that of groups that name none.
    pub fn hosts_by(&self, source: Option<&str>) -> Result<Vec<String>, Failure> {
        if !self.named() && !self.cluster.is_lab() {
            return Err(Failure::usage("no hosts are named").hint("-w 'n[1-4]', -g GROUP or -a"));
        }
        self.chosen.chosen(self.cluster.load()?, source)
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
