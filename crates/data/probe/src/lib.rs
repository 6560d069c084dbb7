//! Measures this host: its facts and its current load. Reads `/proc` and `/sys`; a value that cannot be read is
//! unknown, never zero.
//!
//! Main functions: [`facts`] for fixed properties, [`sample()`] for the load, [`indices()`] for LSF's load indices.
//! [`Sampler`] reads the pressure for admission; the worker decides how often. [`watts`] parses power.
//!
//! It does not: keep samples (`watch::history`), compare hosts (`check`), or connect to another host.

mod facts;
mod gpus;
mod indices;
mod metrics;
mod parse;
mod power;
mod pulse;
mod rapl;
mod room;
mod served;

pub use facts::{facts, memory_bytes};
pub use gpus::{GPU_INDEX, GPU_USE, gpu_use, gpus};
pub use indices::indices;
pub use metrics::{HostReading, prometheus};
pub use power::{HostEnergy, firmware_watts, watts};
pub use pulse::Sampler;
pub use rapl::Rapl;

use homing_model::HostSample;
use std::fs::read_to_string;

/// Returns the load of this host now; counters are totals since boot.
pub fn sample() -> HostSample {
    let read = |path: &str| read_to_string(path).ok();
    let cpu = read("/proc/stat").and_then(|t| parse::cpu_us(&t, rustix::param::clock_ticks_per_second()));
    let pressure = read("/proc/pressure/io").map(|t| parse::pressure(&t)).unwrap_or_default();
    let disks = read("/proc/diskstats").map(|t| parse::disks(&t, facts::is_whole_disk));
    HostSample {
        at_ns: homing_os::clock::wall_ns(),
        r1m: read("/proc/loadavg").and_then(|t| t.split(' ').next()?.parse().ok()),
        cpu_total_us: cpu.map(|(total, _)| total),
        cpu_idle_us: cpu.map(|(_, idle)| idle),
        swap_pages: read("/proc/vmstat").and_then(|t| Some(parse::row(&t, "pswpin")? + parse::row(&t, "pswpout")?)),
        mem_available: read("/proc/meminfo").and_then(|t| Some(parse::row(&t, "MemAvailable:")? * 1024)),
        io_some_us: pressure.some_us,
        io_full_us: pressure.full_us,
        io_some_avg10: pressure.some_avg10,
        disk_blocks: disks.map(|(blocks, _)| blocks),
        disk_requests: disks.map(|(_, requests)| requests),
        nfsd_calls: read("/proc/net/rpc/nfsd").and_then(|t| parse::row(&t, "rpc")),
        net: read("/proc/net/dev").map(|t| parse::net_dev(&t)).unwrap_or_default(),
        served: read(homing_mounts::STATS).map(|t| served::by_server(&t)).unwrap_or_default(),
        // The caller measures it over time.
        energy: None,
    }
}
