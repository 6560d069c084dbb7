//! Converts host counters to amounts: the growth between two samples.

use homing_model::{HostSample, ServerTraffic};
use std::collections::BTreeMap;

/// The activity of a host between two of its samples. `None`: a counter was missing or restarted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct HostInterval {
    /// Time between the samples, microseconds.
    pub us: u64,
    /// Bytes received by physical interfaces.
    pub received: Option<u64>,
    /// Bytes sent by physical interfaces.
    pub sent: Option<u64>,
    /// Bytes read and written by disks.
    pub disk: Option<u64>,
    /// Time in which some task waited for I/O, microseconds.
    pub stalled_us: Option<u64>,
    /// The bytes of the interface that received most, and of the interface that sent most.
    pub busiest: Option<(u64, u64)>,
    /// Processor time: used, and of all processors.
    pub processors: Option<(u64, u64)>,
}

/// Returns the step between two samples of one host.
pub(crate) fn step(before: &HostSample, after: &HostSample) -> HostInterval {
    let (mut received, mut sent, mut busiest) = (None, None, None);
    for (name, (rx, tx)) in after.net.iter().filter(|(name, _)| is_physical(name)) {
        let Some((rx0, tx0)) = before.net.get(name) else { continue };
        // Both or none: a restart resets both.
        if let (Some(r), Some(t)) = (rx.checked_sub(*rx0), tx.checked_sub(*tx0)) {
            *received.get_or_insert(0) += r;
            *sent.get_or_insert(0) += t;
            let most: &mut (u64, u64) = busiest.get_or_insert((0, 0));
            *most = (most.0.max(r), most.1.max(t));
        }
    }
    let us = u64::try_from(after.at_ns - before.at_ns).unwrap_or(0) / 1000;
    let blocks = grown(before.disk_blocks, after.disk_blocks);
    let stalled_us = grown(before.io_some_us, after.io_some_us);
    let all = grown(before.cpu_total_us, after.cpu_total_us);
    let idle = grown(before.cpu_idle_us, after.cpu_idle_us);
    let processors = all.zip(idle).map(|(all, idle)| (all.saturating_sub(idle), all));
    HostInterval { us, received, sent, disk: blocks.map(|b| b * 512), stalled_us, busiest, processors }
}

fn grown(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    after?.checked_sub(before?)
}

/// Whether an interface counts. Interfaces whose bytes another interface also carries do not, so no byte counts
/// twice.
fn is_physical(name: &str) -> bool {
    const CARRIED: [&str; 13] =
        ["veth", "vb-", "ve-", "docker", "br", "virbr", "vnet", "tap", "tun", "cni", "flannel", "bond", "team"];
    !name.contains('.') && !CARRIED.iter().any(|p| name.starts_with(p))
}

/// Adds a known part. The sum is unknown only if every part is unknown.
pub(crate) fn add_known(sum: &mut Option<u64>, part: Option<u64>) {
    if let Some(part) = part {
        *sum = Some(sum.unwrap_or(0).saturating_add(part));
    }
}

/// The sums of steps. A sum is unknown only if it is unknown in every step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    last: Option<HostSample>,
    /// The sums.
    pub total: HostInterval,
    /// The bytes and requests that file servers served to the host.
    pub served: BTreeMap<String, ServerTraffic>,
}

impl Sums {
    /// Adds the next sample, and returns the step since the last one.
    pub(crate) fn add(&mut self, sample: &HostSample) -> Option<HostInterval> {
        let before = self.last.replace(sample.clone())?;
        let step = step(&before, sample);
        for (server, now) in &sample.served {
            // A volume that was mounted meanwhile counts from its mount on.
            let before = before.served.get(server).copied().unwrap_or_default();
            *self.served.entry(server.clone()).or_default() += now.since(&before);
        }
        let into = &mut self.total;
        into.us += step.us;
        for (sum, part) in [
            (&mut into.received, step.received),
            (&mut into.sent, step.sent),
            (&mut into.disk, step.disk),
            (&mut into.stalled_us, step.stalled_us),
        ] {
            add_known(sum, part);
        }
        Some(step)
    }

    /// Skips the step until the next sample, which does not belong to this run.
    pub(crate) fn pause(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_a_bridge_and_a_missing_counter_add_nothing() {
        let at = |s: i64, rx: u64| HostSample {
            at_ns: s * 1_000_000_000,
            net: BTreeMap::from([("eth0".to_string(), (rx, rx)), ("br0".to_string(), (rx * 9, 0))]),
            ..HostSample::default()
        };
        let mut sums = Sums::default();
        for sample in [at(1, 100), at(2, 150), at(3, 10), at(4, 30)] {
            sums.add(&sample);
        }
        assert_eq!(sums.total.received, Some(70));
        assert_eq!(sums.total.disk, None);
        assert_eq!(sums.total.us, 3_000_000);
    }

    #[test]
    fn what_a_server_served_adds_up_also_over_a_remount() {
        let at = |requests: Option<u64>| HostSample {
            served: requests
                .map(|n| ("nas".into(), ServerTraffic { requests: n, bytes: n * 10, ..ServerTraffic::default() }))
                .into_iter()
                .collect(),
            ..HostSample::default()
        };
        let mut sums = Sums::default();
        [None, Some(7), Some(9), Some(2)].iter().for_each(|n| _ = sums.add(&at(*n)));
        assert_eq!(sums.served["nas"], ServerTraffic { requests: 11, bytes: 110, ..ServerTraffic::default() });
    }
}
