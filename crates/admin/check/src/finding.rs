//! A fault of a host: its code, its place, and its remedy.

use crate::Area;
use crate::answers::HostAnswers;
use homing_model::NodeSet;
use homing_model::text::WordReader;
use serde::Serialize;
use std::collections::BTreeSet;

/// The severity of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A failure, or wrong results.
    Error,
    /// Slowness, or a failure to come.
    Warning,
}

impl Severity {
    /// Returns the word for users.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// A kind of fault. The meaning of a name never changes.
#[derive(Debug)]
pub struct Code {
    /// Such as `HC-CLOCK-01`.
    pub name: &'static str,
    /// Its severity.
    pub severity: Severity,
    /// The fault, in general.
    pub what: &'static str,
    /// Its effect on users.
    pub means: &'static str,
    /// The command or file that shows it.
    pub seen: &'static str,
    /// The remedy, in general.
    pub mend: &'static str,
}

impl PartialEq for Code {
    fn eq(&self, other: &Code) -> bool {
        self.name == other.name
    }
}

/// A command, and the hosts for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// A line for a shell there.
    pub line: String,
    /// Whether the line mends the fault. Otherwise it shows more, and a person decides.
    pub mends: bool,
    /// Whether only root may run it.
    pub root: bool,
    /// The hosts, if they are not those of the finding.
    pub elsewhere: Option<NodeSet>,
    /// A file that the line reads, and the host that has it.
    pub input: Option<(String, String)>,
}

/// A fault that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct HostFinding {
    /// Its kind.
    pub code: &'static Code,
    /// The hosts that have it.
    pub hosts: NodeSet,
    /// The fault on these hosts.
    pub what: String,
    /// The command or file that shows it, and its output.
    pub seen: String,
    /// The remedy.
    pub remedy: Option<Remedy>,
}

impl Code {
    /// Returns its area, by the middle part of its name.
    pub fn area(&self) -> Area {
        match self.name.split('-').nth(1).unwrap_or_default() {
            "NAME" => Area::Names,
            "CLOCK" => Area::Clocks,
            "SSH" => Area::Ssh,
            "USER" => Area::Users,
            "MOUNT" => Area::Mounts,
            "DISK" => Area::Disks,
            "MEM" | "CPU" => Area::Memory,
            "NET" => Area::Network,
            "VOL" => Area::Volumes,
            _ => Area::Services,
        }
    }

    /// Returns a finding on a host.
    pub fn on(&'static self, host: &HostAnswers, what: impl Into<String>, seen: impl Into<String>) -> HostFinding {
        self.at(&host.name, what, seen)
    }

    /// Returns a finding on a host by its name.
    pub fn at(&'static self, host: &str, what: impl Into<String>, seen: impl Into<String>) -> HostFinding {
        let hosts = [host.to_string()].into_iter().collect();
        HostFinding { code: self, hosts, what: what.into(), seen: seen.into(), remedy: None }
    }
}

impl HostFinding {
    fn with(self, line: impl Into<String>, mends: bool, root: bool) -> HostFinding {
        HostFinding { remedy: Some(Remedy { line: line.into(), mends, root, elsewhere: None, input: None }), ..self }
    }

    /// Adds the command that mends it, as root.
    pub fn mend(self, line: impl Into<String>) -> HostFinding {
        self.with(line, true, true)
    }

    /// Adds the command that mends it; the user's own rights are enough.
    pub fn mend_as_user(self, line: impl Into<String>) -> HostFinding {
        self.with(line, true, false)
    }

    /// Adds a command that shows more.
    pub fn look(self, line: impl Into<String>) -> HostFinding {
        self.with(line, false, false)
    }

    /// Adds a remedy that is a command of homing itself, for this machine.
    pub fn here(self, line: &str) -> HostFinding {
        self.with(line, true, false).of_this_machine()
    }

    /// Adds a command of homing itself that shows more, for this machine.
    pub fn look_here(self, line: &str) -> HostFinding {
        self.with(line, false, false).of_this_machine()
    }

    fn of_this_machine(self) -> HostFinding {
        HostFinding { remedy: self.remedy.map(|r| Remedy { elsewhere: Some(NodeSet::default()), ..r }), ..self }
    }

    /// Has the remedy run on this host and not on those of the finding.
    pub fn from_host(mut self, host: &str) -> HostFinding {
        if let Some(remedy) = &mut self.remedy {
            remedy.elsewhere = Some([host.to_string()].into_iter().collect());
        }
        self
    }

    /// Has the remedy read a file of another host.
    pub fn fed_by(mut self, host: &str, file: &str) -> HostFinding {
        if let Some(remedy) = &mut self.remedy {
            remedy.input = Some((host.into(), file.into()));
        }
        self
    }

    /// Prefixes a remedy for root with `sudo` if it runs as one of these users.
    pub(crate) fn with_sudo(mut self, users: &BTreeSet<&str>) -> HostFinding {
        let Some(remedy) = self.remedy.as_mut().filter(|r| r.root) else { return self };
        let hosts = remedy.elsewhere.as_ref().unwrap_or(&self.hosts);
        if hosts.iter().any(|host| users.contains(host)) {
            remedy.line = format!("sudo sh -c {}", word(&remedy.line));
        }
        self
    }

    /// Whether it is the same fault, perhaps on other hosts.
    fn is_like(&self, other: &HostFinding) -> bool {
        self.code == other.code && self.what == other.what && self.seen == other.seen && self.remedy == other.remedy
    }

    /// Returns the remedy as a command to paste. `way`: options of `homing exec`, with a blank after each.
    pub fn command(&self, way: &str) -> Option<String> {
        let remedy = self.remedy.as_ref()?;
        let hosts = remedy.elsewhere.as_ref().unwrap_or(&self.hosts);
        if hosts.is_empty() {
            // A command of homing applies to the cluster that was checked.
            let cluster = cluster_of(way);
            let is_ours = remedy.line.starts_with("homing ") && !cluster.is_empty();
            return Some(if is_ours { format!("{} {cluster}", remedy.line) } else { remedy.line.clone() });
        }
        let hosts = hosts.to_string();
        let exec = format!("homing exec {way}-w {} {}", word(&hosts), word(&remedy.line));
        Some(match &remedy.input {
            Some((host, file)) => {
                let sudo = if remedy.line.starts_with("sudo ") { "sudo " } else { "" };
                let cat = word(&format!("{sudo}cat {}", word(file)));
                format!("homing exec {way}-nN -w {} {cat} | {exec}", word(host))
            }
            None => exec,
        })
    }
}

/// Returns the options of `homing exec` that name a cluster, which come first.
fn cluster_of(way: &str) -> &str {
    if !["--cluster ", "--lab "].iter().any(|option| way.starts_with(option)) {
        return "";
    }
    let end = [" -l ", " -o "].iter().filter_map(|option| way.find(option)).min();
    way[..end.unwrap_or(way.len())].trim_end()
}

/// Quotes a word for the shell of a person who pastes a command.
pub(crate) fn word(text: &str) -> String {
    WordReader::LoginShell.quoted(text)
}

/// Joins equal findings, with all their hosts; worst first, then by area.
pub(crate) fn folded(all: Vec<HostFinding>) -> Vec<HostFinding> {
    let mut kinds: Vec<(HostFinding, Vec<String>)> = Vec::new();
    for finding in all {
        let hosts: Vec<String> = finding.hosts.iter().map(String::from).collect();
        match kinds.iter_mut().find(|(known, _)| known.is_like(&finding)) {
            Some((_, known)) => known.extend(hosts),
            None => kinds.push((finding, hosts)),
        }
    }
    // Each set is made once: a thousand unions would be slow.
    let whole =
        |(finding, hosts): (HostFinding, Vec<String>)| HostFinding { hosts: hosts.into_iter().collect(), ..finding };
    let mut folded: Vec<HostFinding> = kinds.into_iter().map(whole).collect();
    folded.sort_by_key(|f| (f.code.severity, f.code.area()));
    folded
}
