//! Facts and load samples of a host. "Unknown" is a value: `None`.

use crate::{Energy, RawText};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// One line of a host's mount table that matters for placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Its mount point.
    pub point: RawText,
    /// File system type as the kernel names it, e.g. `fuse.glusterfs`, `nfs4`.
    pub fstype: String,
    /// The source column, e.g. `n1:/data`.
    pub source: RawText,
}

/// How far another clock is ahead of ours (below 0: behind), as an interval. The other clock is read after our
/// question was sent and before its answer came, which gives the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ahead {
    /// At least, nanoseconds.
    pub least_ns: i64,
    /// At most, nanoseconds.
    pub most_ns: i64,
}

impl Ahead {
    /// Calculates the offset from one exchange. The question left at `asked_ns`, the other clock read `said_ns`, and
    /// the answer came at `heard_ns`. All are nanoseconds since 1970. Returns `None` if our own clock was set back
    /// meanwhile.
    pub fn of(asked_ns: i64, said_ns: i64, heard_ns: i64) -> Option<Ahead> {
        let (least_ns, most_ns) = (said_ns.saturating_sub(heard_ns), said_ns.saturating_sub(asked_ns));
        (least_ns <= most_ns).then_some(Ahead { least_ns, most_ns })
    }

    /// Returns how far a third clock is ahead of ours, if it is `beyond` ahead of this one.
    pub fn and(self, beyond: Ahead) -> Ahead {
        let least_ns = self.least_ns.saturating_add(beyond.least_ns);
        Ahead { least_ns, most_ns: self.most_ns.saturating_add(beyond.most_ns) }
    }

    /// Returns by how many nanoseconds it is ahead for certain (below 0: behind); 0 if both clocks may agree.
    pub fn certain_ns(self) -> i64 {
        self.least_ns.max(0) + self.most_ns.min(0)
    }

    /// Formats the offset for people, as `30.0 s behind`. Returns `None` if the clocks agree, or may agree, within
    /// `within_ns`.
    pub fn offset_text(self, within_ns: i64) -> Option<String> {
        let certain = self.certain_ns();
        let way = if certain < 0 { "behind" } else { "ahead of" };
        (certain.abs() > within_ns).then(|| format!("{:.1} s {way}", certain.unsigned_abs() as f64 / 1e9))
    }
}

/// The facts that a worker reports about its host when it starts.
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
    /// `/proc/sys/kernel/random/boot_id`: differs after a restart.
    pub boot_id: String,
    /// Network file systems mounted there.
    pub mounts: Vec<Mount>,
    /// Line rate of the fastest physical interface in bytes per second.
    pub nic_bytes_per_s: Option<u64>,
    /// Wall clock there, ns since the epoch.
    pub now_ns: i64,
    /// The offset of its clock to the receiver's. The receiver of these facts fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<Ahead>,
    /// Number of simultaneous tasks that the hard limit on descriptors allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_tasks: Option<u32>,
    /// Programs there that run containers, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<String>,
    /// Number of graphics processors that a process there may use.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gpus: u32,
    /// Load indices by LSF's names that are no rates, at that moment. They are not in the record of a run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub indices: BTreeMap<String, f64>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
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
    /// Reads and writes that whole disks have done since boot.
    #[serde(default)]
    pub disk_requests: Option<u64>,
    /// NFS server calls since boot.
    pub nfsd_calls: Option<u64>,
    /// Received and sent bytes per interface, loopback left out.
    pub net: BTreeMap<String, (u64, u64)>,
    /// The traffic with each NFS server, by the server's name in the host's mounts.
    #[serde(default)]
    pub served: BTreeMap<String, ServerTraffic>,
    /// Energy used since the worker began; only workers know it.
    #[serde(default)]
    pub energy: Option<Energy>,
}

/// The traffic of a client with a file server since its volumes were mounted there, as the client counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerTraffic {
    /// Bytes received from it and sent to it.
    pub bytes: u64,
    /// Requests that it answered.
    pub requests: u64,
    /// Requests that were sent again because no answer came.
    pub again: u64,
    /// Time that requests waited at the client before they were sent, milliseconds in all.
    pub queued_ms: u64,
    /// Time from their transmission to the answer, milliseconds in all.
    pub answered_ms: u64,
}

impl AddAssign for ServerTraffic {
    fn add_assign(&mut self, more: ServerTraffic) {
        self.bytes += more.bytes;
        self.requests += more.requests;
        self.again += more.again;
        self.queued_ms += more.queued_ms;
        self.answered_ms += more.answered_ms;
    }
}

impl ServerTraffic {
    /// Returns the traffic since `before`. Counters of a volume that was mounted anew begin at 0.
    pub fn since(&self, before: &ServerTraffic) -> ServerTraffic {
        if self.requests < before.requests {
            return *self;
        }
        let grown = u64::saturating_sub;
        ServerTraffic {
            bytes: grown(self.bytes, before.bytes),
            requests: grown(self.requests, before.requests),
            again: grown(self.again, before.again),
            queued_ms: grown(self.queued_ms, before.queued_ms),
            answered_ms: grown(self.answered_ms, before.answered_ms),
        }
    }
}

/// Load indices of a host between two samples, as LSF's users know them. `None` is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Indices {
    /// One-minute run queue length.
    pub r1m: Option<f64>,
    /// Processors busy, percent of all.
    pub ut: Option<f64>,
    /// Pages swapped, 1/s.
    pub pg: Option<f64>,
    /// Memory available, MiB.
    pub mem: Option<f64>,
    /// Time in which some task waited for disks, percent.
    pub stalled: Option<f64>,
    /// Read and written by whole disks, KB/s, as LSF's `io`.
    pub io: Option<f64>,
    /// Reads and writes of whole disks, 1/s: `tps` of `sar -b`.
    pub bio: Option<f64>,
    /// NFS server calls, 1/s.
    pub rpc: Option<f64>,
    /// Received and sent by all interfaces, MB/s.
    pub net: Option<f64>,
}

impl HostSample {
    /// Returns the load since an earlier sample of the same host.
    pub fn since(&self, first: &HostSample) -> Indices {
        let seconds = ((self.at_ns - first.at_ns) as f64 / 1e9).max(0.001);
        let rate = |a: Option<u64>, b: Option<u64>| Some(b?.saturating_sub(a?) as f64 / seconds);
        let busy = || {
            let total = self.cpu_total_us?.saturating_sub(first.cpu_total_us?) as f64;
            let idle = self.cpu_idle_us?.saturating_sub(first.cpu_idle_us?) as f64;
            (total > 0.0).then(|| 100.0 * (1.0 - idle / total))
        };
        let sum = |s: &HostSample| (!s.net.is_empty()).then(|| s.net.values().map(|(rx, tx)| rx + tx).sum::<u64>());
        Indices {
            r1m: self.r1m,
            ut: busy(),
            pg: rate(first.swap_pages, self.swap_pages),
            mem: self.mem_available.map(|b| b as f64 / f64::from(1 << 20)),
            stalled: rate(first.io_some_us, self.io_some_us).map(|us| us / 1e4),
            io: rate(first.disk_blocks, self.disk_blocks).map(|blocks| blocks / 2.0),
            bio: rate(first.disk_requests, self.disk_requests),
            rpc: rate(first.nfsd_calls, self.nfsd_calls),
            net: rate(sum(first), sum(self)).map(|b| b / 1e6),
        }
    }
}

/// A quick sample of a host's storage load, taken many times a second while tasks run, for admission. Counters are
/// totals since the worker started or since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageSample {
    /// When it was taken, microseconds on a clock of that host that does not go back.
    pub at_us: u64,
    /// PSI io "some": total stall in microseconds.
    pub io_some_us: Option<u64>,
    /// Number of samples of the worker's tasks.
    pub looked: u64,
    /// Samples in which the task was blocked on I/O.
    pub blocked_on_io: u64,
    /// Bytes moved. In each interval only the busiest disk or interface counts. A disk below a disk, or a network in
    /// front of one, moves the same bytes twice.
    pub moved: Option<u64>,
    /// Bytes that the worker's tasks requested by read calls.
    pub read: u64,
    /// Of these, bytes that came from no disk.
    pub cached: u64,
    /// Bytes of file pages that were read again soon after they had been evicted.
    pub reread: Option<u64>,
    /// Bytes that the task with the most reads has requested, minus the bytes that it wrote.
    #[serde(default)]
    pub longest: u64,
    /// Bytes that the page cache could hold for tasks there; see `homing_probe`.
    #[serde(default)]
    pub room: Option<u64>,
    /// A sampled task that has moved twice as much as at its last report; the first report is at 256 KiB.
    #[serde(default)]
    pub mover: Option<Mover>,
}

/// The bytes that a running task has moved so far, with the children that it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mover {
    /// The attempt.
    pub ticket: u64,
    /// Bytes fetched from and sent to block devices.
    pub disk: u64,
    /// Bytes requested by read calls.
    pub read: u64,
    /// Bytes passed to write calls.
    pub written: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_rates_between_samples_and_unknown_stays_unknown() {
        let first =
            HostSample { cpu_total_us: Some(0), cpu_idle_us: Some(0), nfsd_calls: Some(5), ..Default::default() };
        let last = HostSample {
            at_ns: 2_000_000_000,
            cpu_total_us: Some(400),
            cpu_idle_us: Some(100),
            mem_available: Some(3 << 20),
            nfsd_calls: Some(25),
            net: BTreeMap::from([("eth0".into(), (1_500_000, 500_000))]),
            ..Default::default()
        };
        let want = Indices { ut: Some(75.0), mem: Some(3.0), rpc: Some(10.0), ..Default::default() };
        // An interface that was not there at first has no rate.
        assert_eq!(last.since(&first), want);
        let idle = HostSample { net: BTreeMap::from([("eth0".into(), (0, 0))]), ..first };
        assert_eq!(last.since(&idle).net, Some(1.0));
        // After a restart, counters begin at 0 again.
        assert_eq!(idle.since(&last).rpc, Some(0.0));
    }
}
