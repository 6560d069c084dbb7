//! The records of a job. Each is written once, by one process.

use crate::array::Array;
use crate::process::ProcessIdentity;
use homing_model::{Command, RawText};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The conventions that a job follows: the names of its output files, and the report appended to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// Conventions of `homing sub`.
    #[default]
    Homing,
    /// Conventions of `bsub`: `%J` and `%I` in names, a report at the end of the output file.
    Lsf,
}

/// The content of `spec.json`: the request, for the owner. `job.json` is the same for all users, without the command,
/// its folder and its files.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct JobSpec {
    /// Format, 1.
    pub v: u32,
    /// Login name of the submitter, for show; the folder's owner is decisive.
    pub user: String,
    /// When it was submitted, ns since the epoch.
    pub submit_ns: i64,
    /// The host where it was submitted.
    pub from: String,
    /// Working directory there.
    pub cwd: RawText,
    /// The command.
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
    /// The condition for its start; see [`crate::depend`].
    #[serde(default)]
    pub after: Option<String>,
    /// Files for standard input, output and error; `%J` id, `%I` index.
    #[serde(default)]
    pub stdin: Option<RawText>,
    /// See `stdin`. A file in the job's folder when `None`.
    #[serde(default)]
    pub stdout: Option<RawText>,
    /// See `stdin`. The file of standard output when `None`.
    #[serde(default)]
    pub stderr: Option<RawText>,
    /// Whether output files are emptied first instead of appended to.
    #[serde(default)]
    pub overwrite: bool,
    /// It is ended after this many seconds.
    #[serde(default)]
    pub limit_s: Option<u64>,
    /// Graphics processors that it takes on its host, in parts of one ([`homing_model::resource::PARTS`]).
    #[serde(default)]
    pub gpu_parts: u64,
    /// It is ended when its processes have more memory than this many bytes.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// The host that it must run on; this machine when `None`.
    #[serde(default)]
    pub host: Option<String>,
    /// The hosts that its user named (`bsub -m`), in order of preference; kept for queries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked_hosts: Vec<String>,
    /// Hosts near which it should run, for an engine that has several.
    #[serde(default)]
    pub near: Vec<String>,
    /// Whether it must run on one of `near`.
    #[serde(default)]
    pub near_only: bool,
    /// Hosts on which it must not run.
    #[serde(default)]
    pub not_on: Vec<String>,
    /// Whether its slots may lie on several hosts.
    #[serde(default)]
    pub spread: bool,
    /// Its slots on each host, if they lie on several; it is started on the first.
    #[serde(default)]
    pub hosts: Vec<Share>,
    /// The bytes that each rank reads here and elsewhere, if rank k reads part k of the inputs. Empty if no host is
    /// known to hold them.
    #[serde(default)]
    pub ranks: Vec<Reads>,
    /// Whether it is a share of a job over several hosts: it holds its slots, and starts only on order.
    #[serde(default)]
    pub gated: bool,
    /// Load expressions (`-R`), all of which must hold at the start.
    #[serde(default)]
    pub require: Vec<String>,
    /// Project, kept for queries.
    #[serde(default)]
    pub project: Option<String>,
    /// Job group of LSF (`bsub -g`), a path from the root.
    #[serde(default)]
    pub group: Option<String>,
    /// Application profile of LSF (`bsub -app`), a name to choose jobs by.
    #[serde(default)]
    pub app: Option<String>,
    /// Further arguments for the engine, as given: sbatch's.
    #[serde(default)]
    pub extra: Vec<String>,
    /// The process that waits for it, on the machine where it was submitted. The job ends with that process.
    #[serde(default)]
    pub bound: Option<ProcessIdentity>,
    /// Its identity on the machine where it was submitted, if that is another one.
    #[serde(default)]
    pub origin: Option<Origin>,
    /// Its rank among its user's jobs of the queue: smaller ones start first, 0 by default.
    #[serde(default)]
    pub order: i64,
    /// Whether it waits until a user releases it (`bsub -H`).
    #[serde(default)]
    pub held: bool,
    /// The storage server that it uses. It starts when that server serves fewer jobs and tasks than its limit.
    #[serde(default)]
    pub storage: Option<Storage>,
    /// Its conventions.
    #[serde(default)]
    pub style: Style,
}

/// A storage server, and where its leases are; see [`homing_lease`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Storage {
    /// Its name, for people.
    pub name: String,
    /// Distinguishes it from other servers with leases in the same folder.
    pub server: String,
    /// The folder of its leases, by its path on the job's host.
    pub leases: RawText,
    /// The most jobs and tasks of all users together at once, if a cluster file sets it.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// The bytes of the part of the inputs that a rank is assumed to read.
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
    /// Returns the hosts of its shares, if they are chosen.
    pub fn named_hosts(&self) -> Vec<&str> {
        self.hosts.iter().map(|share| share.host.as_str()).collect()
    }

    /// Returns its slots on a host, if it was started on `started`.
    pub fn slots_on(&self, host: &str, started: &str) -> u32 {
        match self.over_several() {
            Some(shares) => shares.iter().filter(|share| share.host == host).map(|share| share.slots).sum(),
            None if host == started => self.slots,
            None => 0,
        }
    }

    /// Returns its shares if its slots lie on several hosts. A share of such a job has its slots on one host.
    pub fn over_several(&self) -> Option<&[Share]> {
        Some(&self.hosts[..]).filter(|shares| !shares.is_empty() && !self.gated)
    }

    /// Returns why it is to end, if a process that it depends on has gone.
    pub(crate) fn forsaken(&self, boot_id: &str) -> Option<&'static str> {
        let gone = |process: &ProcessIdentity| !process.is_alive(boot_id);
        if self.origin.as_ref().is_some_and(|origin| gone(&origin.process)) {
            return Some("the process that sent it here has ended");
        }
        self.bound.as_ref().is_some_and(gone).then_some("the process that waited for it has ended")
    }

    /// Whether it is a share of a job that was submitted on this machine. The job itself represents the share.
    pub(crate) fn is_own_share(&self) -> bool {
        self.gated && self.origin.is_some() && self.from == crate::host_name()
    }
}

/// A job's identity where it was submitted, in the spool of the host that runs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Its number there.
    pub id: u64,
    /// Its index there.
    pub index: u32,
    /// The process on this host that answers for it. Without that process the job ends.
    pub process: ProcessIdentity,
}

/// The content of `private.json`, which only the submitter may read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Private {
    /// The environment.
    pub env: Vec<(RawText, RawText)>,
    /// A script for the interpreter that its first line names.
    #[serde(default)]
    pub script: Option<RawText>,
    /// Its standard input, if that came through a pipe.
    #[serde(default)]
    pub input: Option<RawText>,
    /// The file mode creation mask.
    #[serde(default)]
    pub umask: u32,
    /// A line for the shell of the machine where it was submitted, after the job's end.
    #[serde(default)]
    pub on_exit: Option<RawText>,
}

/// The content of `start.INDEX.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Start {
    /// When it started, ns since the epoch.
    pub at_ns: i64,
    /// The host.
    pub host: String,
    /// The keeper.
    #[serde(flatten)]
    pub process: ProcessIdentity,
}

/// The content of `end.INDEX.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobEnd {
    /// When it ended, ns since the epoch.
    pub at_ns: i64,
    /// Exit status; 128 + N after signal N, as in shells.
    pub exit: i32,
    /// Why it was ended (killed, time or memory limit, could not start), or why it failed, if known.
    #[serde(default)]
    pub reason: Option<String>,
    /// Processor time of it and its children, ms.
    #[serde(default)]
    pub cpu_ms: u64,
    /// Largest resident set of one of its processes, KiB.
    #[serde(default)]
    pub max_rss_kib: u64,
    /// For a job over several hosts: bytes that each host received over its network interfaces meanwhile, for any
    /// process.
    #[serde(default)]
    pub received: BTreeMap<String, u64>,
}

/// The content of `kill.json` or `kill.INDEX.json`: a request to end the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kill {
    /// The user who requests it.
    pub by: String,
    /// The signal; the usual sequence when `None`.
    pub signal: Option<i32>,
    /// When, ns since the epoch. The same request is carried out once.
    pub at_ns: i64,
    /// Set if a dead rank, not a user, requests the end: the cause, and the job's exit status.
    #[serde(default)]
    pub died: Option<(String, i32)>,
}

/// The content of `stop.json` or `load.INDEX.json`: the job is suspended, or must not start. In `ask.INDEX.json`: its
/// host was requested to start it and has not.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stop {
    /// The user or the load index, or why the host has not started it.
    pub by: String,
}
