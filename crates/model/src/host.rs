//! What a host is and what it is doing. "Unknown" is a value: `None`.

use crate::RawText;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One line of a host's mount table that matters for placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where it is mounted.
    pub point: RawText,
    /// File system type as the kernel names it, e.g. `fuse.glusterfs`, `nfs4`.
    pub fstype: String,
    /// The source column, e.g. `n1:/data`.
    pub source: RawText,
}

/// What a worker tells about its host when it starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// `gethostname()`.
    pub hostname: String,
    /// Fully qualified name and addresses by which others may know this host.
    pub aliases: Vec<String>,
    /// Processors usable by this process (affinity mask and cgroup quota, rounded up).
    pub cores: u32,
    /// Main memory in bytes.
    pub memory_bytes: u64,
    /// `uname -m`.
    pub arch: String,
    /// `/proc/sys/kernel/random/boot_id`: tells a restart apart.
    pub boot_id: String,
    /// Network file systems mounted there.
    pub mounts: Vec<Mount>,
    /// Line rate of the fastest physical interface in bytes per second.
    pub nic_bytes_per_s: Option<u64>,
    /// Wall clock there, ns since the epoch.
    pub now_ns: i64,
}

/// One sample of a host's load. Counters are totals since boot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSample {
    /// When it was taken, ns since the epoch, on that host's clock.
    pub at_ns: i64,
    /// One-minute run queue length (`/proc/loadavg`).
    pub r1m: Option<f64>,
    /// Processor time since boot: all, and idle plus I/O wait, in microseconds.
    pub cpu_total_us: Option<u64>,
    /// See `cpu_total_us`.
    pub cpu_idle_us: Option<u64>,
    /// Pages swapped in and out since boot.
    pub swap_pages: Option<u64>,
    /// `MemAvailable` in bytes.
    pub mem_available: Option<u64>,
    /// PSI io "some": total stall in microseconds.
    pub io_some_us: Option<u64>,
    /// PSI io "full": total stall in microseconds.
    pub io_full_us: Option<u64>,
    /// PSI io some avg10 in percent, as the kernel gives it.
    pub io_some_avg10: Option<f64>,
    /// 512-byte blocks read and written by whole disks since boot.
    pub disk_blocks: Option<u64>,
    /// NFS server calls since boot.
    pub nfsd_calls: Option<u64>,
    /// Received and sent bytes per interface, loopback left out.
    pub net: BTreeMap<String, (u64, u64)>,
}

/// A quick look at a host's storage, many times a second while tasks run, for
/// admission. Counters are totals since the worker started or since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pulse {
    /// When it was taken, microseconds on a clock of that host that does not go back.
    pub at_us: u64,
    /// PSI io "some": total stall in microseconds.
    pub io_some_us: Option<u64>,
    /// PSI cpu "some": total stall in microseconds.
    pub cpu_some_us: Option<u64>,
    /// How often one of the worker's tasks was looked at, and how often it then stood still for I/O.
    pub looked: u64,
    /// See `looked`.
    pub stood: u64,
    /// Bytes moved, in each interval those of the busiest disk or interface: a
    /// disk below a disk, or a network in front of one, moves the same bytes twice.
    pub moved: Option<u64>,
    /// Time in which a disk took long for each request beyond what the bytes
    /// of it take, microseconds of all disks: heads that seek.
    pub slow_us: Option<u64>,
    /// Bytes that the worker's tasks asked for by read calls.
    pub read: u64,
    /// Of these, bytes that came from no disk.
    pub cached: u64,
    /// Bytes of file pages that were read again soon after they had been evicted.
    pub reread: Option<u64>,
    /// Bytes that the task which has read most has asked for, less what it wrote.
    #[serde(default)]
    pub longest: u64,
    /// Bytes that the page cache could hold for tasks there; see `homing_probe`.
    #[serde(default)]
    pub room: Option<u64>,
}
