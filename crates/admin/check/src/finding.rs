//! What is told of a fault.

use crate::Area;
use crate::answers::Host;
use homing_model::NodeSet;
use homing_model::text::quoted_unless;
use serde::Serialize;
use std::collections::BTreeSet;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something fails, or gives wrong results.
    Error,
    /// It is slow, or will fail.
    Warning,
}

impl Severity {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// A kind of fault. Its name never changes its meaning.
#[derive(Debug)]
pub struct Code {
    /// As `HC-CLOCK-01`.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in general.
    pub what: &'static str,
    /// What it does to a user.
    pub means: &'static str,
    /// Where it is seen: a command or a file.
    pub seen: &'static str,
    /// What mends it, in general.
    pub mend: &'static str,
}

impl PartialEq for Code {
    fn eq(&self, other: &Code) -> bool {
        self.name == other.name
    }
}

/// A command, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// A line for the shell there.
    pub line: String,
    /// It mends the fault; otherwise it shows more, and a person decides.
    pub mends: bool,
    /// Only root may.
    pub root: bool,
    /// The hosts, when they are not those of the finding.
    pub elsewhere: Option<NodeSet>,
    /// A file that the line reads, and the host that has it.
    pub input: Option<(String, String)>,
}

/// A fault that was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Its kind.
    pub code: &'static Code,
    /// Where.
    pub hosts: NodeSet,
    /// What is wrong there.
    pub what: String,
    /// The command or file, and what it said.
    pub seen: String,
    /// What to do.
    pub remedy: Option<Remedy>,
}

impl Code {
    /// What it is about: the middle of its name says.
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

    /// A finding on a host.
    pub fn on(&'static self, host: &Host, what: impl Into<String>, seen: impl Into<String>) -> Finding {
        self.at(&host.name, what, seen)
    }

    /// A finding on a host by its name.
    pub fn at(&'static self, host: &str, what: impl Into<String>, seen: impl Into<String>) -> Finding {
        let hosts = [host.to_string()].into_iter().collect();
        Finding { code: self, hosts, what: what.into(), seen: seen.into(), remedy: None }
    }
}

impl Finding {
    fn with(self, line: impl Into<String>, mends: bool, root: bool) -> Finding {
        Finding { remedy: Some(Remedy { line: line.into(), mends, root, elsewhere: None, input: None }), ..self }
    }

    /// The command that mends it, as root.
    pub fn mend(self, line: impl Into<String>) -> Finding {
        self.with(line, true, true)
    }

    /// The command that mends it; the user's own rights are enough.
    pub fn mend_as_user(self, line: impl Into<String>) -> Finding {
        self.with(line, true, false)
    }

    /// A command that tells more.
    pub fn look(self, line: impl Into<String>) -> Finding {
        self.with(line, false, false)
    }

    /// The remedy is a command of homing itself, for this machine.
    pub fn here(self, line: &str) -> Finding {
        self.with(line, true, false).of_this_machine()
    }

    /// A command of homing itself that tells more, for this machine.
    pub fn look_here(self, line: &str) -> Finding {
        self.with(line, false, false).of_this_machine()
    }

    fn of_this_machine(self) -> Finding {
        Finding { remedy: self.remedy.map(|r| Remedy { elsewhere: Some(NodeSet::default()), ..r }), ..self }
    }

    /// The remedy runs on this host and not on those of the finding.
    pub fn from_host(mut self, host: &str) -> Finding {
        if let Some(remedy) = &mut self.remedy {
            remedy.elsewhere = Some([host.to_string()].into_iter().collect());
        }
        self
    }

    /// The remedy reads a file of another host.
    pub fn fed_by(mut self, host: &str, file: &str) -> Finding {
        if let Some(remedy) = &mut self.remedy {
            remedy.input = Some((host.into(), file.into()));
        }
        self
    }

    /// Where the remedy runs as one of these users, `sudo` stands before what only root may.
    pub(crate) fn with_sudo(mut self, users: &BTreeSet<&str>) -> Finding {
        let Some(remedy) = self.remedy.as_mut().filter(|r| r.root) else { return self };
        let hosts = remedy.elsewhere.as_ref().unwrap_or(&self.hosts);
        if hosts.iter().any(|host| users.contains(host)) {
            remedy.line = format!("sudo sh -c {}", word(&remedy.line));
        }
        self
    }

    /// The same fault, on other hosts perhaps.
    fn is_like(&self, other: &Finding) -> bool {
        self.code == other.code && self.what == other.what && self.seen == other.seen && self.remedy == other.remedy
    }

    /// The remedy as a command to paste. `way` are options of `homing exec`, with a blank behind each.
    pub fn command(&self, way: &str) -> Option<String> {
        let remedy = self.remedy.as_ref()?;
        let hosts = remedy.elsewhere.as_ref().unwrap_or(&self.hosts);
        if hosts.is_empty() {
            // A command of homing means the cluster that was checked.
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

/// Of options of `homing exec` those that name a cluster, which come first.
fn cluster_of(way: &str) -> &str {
    if !["--cluster ", "--lab "].iter().any(|option| way.starts_with(option)) {
        return "";
    }
    let end = [" -l ", " -o "].iter().filter_map(|option| way.find(option)).min();
    way[..end.unwrap_or(way.len())].trim_end()
}

/// One word for a shell.
pub(crate) fn word(text: &str) -> String {
    quoted_unless(text, |c| c.is_ascii_alphanumeric() || "-_./:@%+,".contains(c))
}

/// Equal findings once, with all their hosts; worst first, then by area.
pub(crate) fn folded(all: Vec<Finding>) -> Vec<Finding> {
    let mut kinds: Vec<(Finding, Vec<String>)> = Vec::new();
    for finding in all {
        let hosts: Vec<String> = finding.hosts.iter().map(String::from).collect();
        match kinds.iter_mut().find(|(known, _)| known.is_like(&finding)) {
            Some((_, known)) => known.extend(hosts),
            None => kinds.push((finding, hosts)),
        }
    }
    // A set is made once: a thousand unions of it would be felt.
    let whole = |(finding, hosts): (Finding, Vec<String>)| Finding { hosts: hosts.into_iter().collect(), ..finding };
    let mut folded: Vec<Finding> = kinds.into_iter().map(whole).collect();
    folded.sort_by_key(|f| (f.code.severity, f.code.area()));
    folded
}
