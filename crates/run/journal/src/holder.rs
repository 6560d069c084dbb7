//! The writer of a journal: its name in the lock file, and whether it lives.

use homing_os::process::ProcessStat;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::os::unix::fs::MetadataExt;

/// The writer of a journal, as its lock file names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Host name.
    pub host: String,
    /// Process id there.
    pub pid: u32,
    /// The id of the host's boot.
    pub boot_id: String,
    /// The start of the process, in clock ticks since that boot; 0 when unknown.
    pub start: u64,
    /// A digest of the machine id, which distinguishes machines of the same name. The machine id itself stays
    /// confidential.
    #[serde(default)]
    pub machine: String,
    /// Inode of the pid namespace in which `pid` means something; 0 when unknown.
    #[serde(default)]
    pub pid_ns: u64,
    /// Whether the writer also holds an open file description lock on the journal.
    #[serde(default)]
    pub locked: bool,
}

/// The state of a holder, as far as it can be found without its lock on the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// The process runs.
    Alive,
    /// The process has ended, or its first thread has.
    Gone,
    /// The process is on another host, or in another pid namespace.
    Unknown,
}

impl Holder {
    pub(crate) fn me() -> Holder {
        let pid = std::process::id();
        Holder {
            host: host_name(),
            pid,
            boot_id: homing_os::names::boot_id(),
            start: start_of(pid).unwrap_or(0),
            machine: machine(),
            pid_ns: fs::metadata("/proc/self/ns/pid").map_or(0, |meta| meta.ino()),
            locked: false,
        }
    }

    /// Whether the holder runs on this kernel. If so, its lock on the journal is visible here.
    pub(crate) fn is_on_kernel_of(&self, me: &Holder) -> bool {
        !self.boot_id.is_empty() && self.boot_id == me.boot_id
    }

    /// Returns the state of the holder. `start_of` returns the start of a live process of this pid namespace.
    pub(crate) fn life(&self, me: &Holder, start_of: impl Fn(u32) -> Option<u64>) -> Life {
        let other = |one: u64, two: u64| one != 0 && two != 0 && one != two;
        let other_machine = !self.machine.is_empty() && self.machine != me.machine;
        match self.is_on_kernel_of(me) {
            true if other(self.pid_ns, me.pid_ns) || (self.pid_ns == 0 && self.host != me.host) => Life::Unknown,
            true if start_of(self.pid).is_some_and(|start| self.start == 0 || self.start == start) => Life::Alive,
            true => Life::Gone,
            // The same host after a restart.
            false if self.host == me.host && !other_machine => Life::Gone,
            false => Life::Unknown,
        }
    }
}

/// Returns the first 64 bits of the SHA-256 of the machine id, salted as systemd recommends. Empty without a machine
/// id.
fn machine() -> String {
    let Ok(id) = fs::read_to_string("/etc/machine-id") else { return String::new() };
    let sum = Sha256::digest(format!("homing {}", id.trim()));
    sum[..8].iter().map(|b| format!("{b:02x}")).collect()
}

fn host_name() -> String {
    homing_os::names::own_name()
}

/// Returns the time of a process's start, in ticks; `None` if it has ended: a zombie holds no lock any more.
pub(crate) fn start_of(pid: u32) -> Option<u64> {
    ProcessStat::of_living(pid)?.started()
}
