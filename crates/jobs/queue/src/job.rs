//! The records of a job. Each is written once, by one process.

use crate::array::Array;
use crate::process::Process;
use homing_model::{Command, RawText};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whose manners a job has: what its output files are called, and what is appended to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// `homing sub`.
    #[default]
    Homing,
    /// `bsub`: `%J` and `%I` in names, a report at the end of the output file.
    Lsf,
}

/// `spec.json`: what was asked for, for the owner. `job.json` is the same for
/// all users, without the command, its folder and its files.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct JobSpec {
    /// Format, 1.
    pub v: u32,
    /// Login name of the submitter, for show; the folder's owner is what counts.
    pub user: String,
    /// When, ns since the epoch.
    pub submit_ns: i64,
    /// On which host it was submitted.
    pub from: String,
    /// Working directory there.
    pub cwd: RawText,
    /// What to run.
    pub command: Command,
    /// Name for people.
    pub name: String,
    /// Queue.
    pub queue: String,
    /// Slots that it takes.
    pub slots: u32,
    /// Elements of an array.
    #[serde(default)]
    pub array: Option<Array>,
    /// What must have happened before it starts; see [`crate::depend`].
    #[serde(default)]
    pub after: Option<String>,
    /// Files for standard input, output and error; `%J` id, `%I` index.
    #[serde(default)]
    pub stdin: Option<RawText>,
    /// See `stdin`. In the job's folder when `None`.
    #[serde(default)]
    pub stdout: Option<RawText>,
    /// See `stdin`. Where standard output goes when `None`.
    #[serde(default)]
    pub stderr: Option<RawText>,
    /// Output files are emptied first, not appended to.
    #[serde(default)]
    pub overwrite: bool,
    /// Ended after this many seconds.
    #[serde(default)]
    pub limit_s: Option<u64>,
    /// Ended when its processes have more memory than so many bytes.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// The host that it must run on; this machine when `None`.
    #[serde(default)]
    pub host: Option<String>,
    /// Hosts near which it should run, for an engine that has several.
    #[serde(default)]
    pub near: Vec<String>,
    /// It must run on one of these.
    #[serde(default)]
    pub near_only: bool,
    /// Hosts on which it must not run.
    #[serde(default)]
    pub not_on: Vec<String>,
    /// Its slots may lie on several hosts.
    #[serde(default)]
    pub spread: bool,
    /// Where its slots lie, where that is several hosts; it is started on the first.
    #[serde(default)]
    pub hosts: Vec<Share>,
    /// What its ranks read where, if rank k reads part k of its inputs; nothing where no host is known to hold them.
    #[serde(default)]
    pub ranks: Vec<Reads>,
    /// It holds its slots, and starts when it is told to, if ever: the share of a job over several hosts.
    #[serde(default)]
    pub gated: bool,
    /// Load expressions (`-R`), all of which must hold at the start.
    #[serde(default)]
    pub require: Vec<String>,
    /// Project, kept for the asking.
    #[serde(default)]
    pub project: Option<String>,
    /// Job group of LSF's (`bsub -g`), a path from the root.
    #[serde(default)]
    pub group: Option<String>,
    /// Application profile of LSF's (`bsub -app`), a name to choose jobs by.
    #[serde(default)]
    pub app: Option<String>,
    /// Further arguments of the engine below, as given: sbatch's.
    #[serde(default)]
    pub extra: Vec<String>,
    /// Who waits for it: it ends with that process of the machine where it was submitted.
    #[serde(default)]
    pub bound: Option<Process>,
    /// What it is on the machine where it was submitted, when that is another one.
    #[serde(default)]
    pub origin: Option<Origin>,
    /// Its place among its user's jobs of the queue: smaller ones start first, 0 where nobody has said one.
    #[serde(default)]
    pub order: i64,
    /// It waits until somebody lets it go (`bsub -H`).
    #[serde(default)]
    pub held: bool,
    /// The storage server that it uses: it starts when that serves fewer jobs and tasks than it may.
    #[serde(default)]
    pub storage: Option<Storage>,
    /// Manners.
    #[serde(default)]
    pub style: Style,
}

/// A storage server, and where its leases are; see [`homing_lease`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Storage {
    /// Its name, for people.
    pub name: String,
    /// Tells it apart from others with leases in the same folder.
    pub server: String,
    /// The folder of its leases, as the host of the job calls it.
    pub leases: RawText,
    /// Jobs and tasks at once of everybody together, where a cluster file says so.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// Where the part of its inputs lies that a rank is taken to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reads {
    /// Bytes on its own host.
    pub home: u64,
    /// Bytes that come over the network.
    pub away: u64,
}

/// Slots of a job on one of its hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The host.
    pub host: String,
    /// Slots there.
    pub slots: u32,
}

impl JobSpec {
    /// The hosts of its shares, where those are chosen.
    pub fn named_hosts(&self) -> Vec<&str> {
        self.hosts.iter().map(|share| share.host.as_str()).collect()
    }

    /// Slots that it has on a host, where its start was on `started`.
    pub fn slots_on(&self, host: &str, started: &str) -> u32 {
        match self.over_several() {
            Some(shares) => shares.iter().filter(|share| share.host == host).map(|share| share.slots).sum(),
            None if host == started => self.slots,
            None => 0,
        }
    }

    /// Where its slots lie when that is several hosts. A share of such a job has its own on one.
    pub fn over_several(&self) -> Option<&[Share]> {
        Some(&self.hosts[..]).filter(|shares| !shares.is_empty() && !self.gated)
    }

    /// Why it is to end, where a process without which it is not wanted has gone.
    pub(crate) fn forsaken(&self, boot_id: &str) -> Option<&'static str> {
        let gone = |process: &Process| !process.is_alive(boot_id);
        if self.origin.as_ref().is_some_and(|origin| gone(&origin.process)) {
            return Some("whoever sent it here has gone");
        }
        self.bound.as_ref().is_some_and(gone).then_some("whoever waited for it has gone")
    }

    /// It is the share of a job that was submitted on this machine, which the job itself stands for.
    pub(crate) fn is_own_share(&self) -> bool {
        self.gated && self.origin.is_some() && self.from == crate::host_name()
    }
}

/// What a job is where it was submitted, in the spool of the host that runs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Its number there.
    pub id: u64,
    /// Its index there.
    pub index: u32,
    /// Who answers for it on this host: without that process the job ends.
    pub process: Process,
}

/// `private.json`: what only the submitter may read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Private {
    /// The environment.
    pub env: Vec<(RawText, RawText)>,
    /// A script to be fed to the interpreter that its first line names.
    #[serde(default)]
    pub script: Option<RawText>,
    /// Its standard input, when that came through a pipe.
    #[serde(default)]
    pub input: Option<RawText>,
    /// The mask for the files that it makes.
    #[serde(default)]
    pub umask: u32,
}

/// `start.INDEX.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Start {
    /// When, ns since the epoch.
    pub at_ns: i64,
    /// Where.
    pub host: String,
    /// The keeper.
    #[serde(flatten)]
    pub process: Process,
}

/// `end.INDEX.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// When, ns since the epoch.
    pub at_ns: i64,
    /// Exit status; 128 + N after signal N, as shells say it.
    pub exit: i32,
    /// Why it ended when not by itself (killed, time or memory limit, could not start), or why it failed where that is known.
    #[serde(default)]
    pub reason: Option<String>,
    /// Processor time of it and its children, ms.
    #[serde(default)]
    pub cpu_ms: u64,
    /// Largest resident set of one of its processes, KiB.
    #[serde(default)]
    pub max_rss_kib: u64,
    /// Of a job over several hosts: bytes that each received over its network interfaces meanwhile, for whomever.
    #[serde(default)]
    pub received: BTreeMap<String, u64>,
}

/// `kill.json` or `kill.INDEX.json`: somebody wants it to end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kill {
    /// By whom.
    pub by: String,
    /// With which signal; the usual sequence when `None`.
    pub signal: Option<i32>,
    /// When, ns since the epoch: the same request is carried out once.
    pub at_ns: i64,
    /// No user wants it: a rank has died, and what of, and the exit status that the job has for it.
    #[serde(default)]
    pub died: Option<(String, i32)>,
}

/// `stop.json` or `load.INDEX.json`: it stands still, or must not start. `ask.INDEX.json`: its host was asked, and has
/// not started it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stop {
    /// By whom, by which load index, or why the host has not started it.
    pub by: String,
}
