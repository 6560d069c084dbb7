//! Metrics of hosts: their properties, and their counters since boot. Prometheus derives rates from the counters.

use homing_model::metrics::{MetricKind, Metrics};
use homing_model::{HostFacts, HostSample};

/// The facts of a host and two samples, or why they are unknown.
pub type HostReading = Result<(HostFacts, HostSample, HostSample), String>;

/// The metric's name without the common prefix, its kind, its help, and its value for a host, if known.
type HostMetric = (&'static str, MetricKind, &'static str, fn(&HostFacts, &HostSample) -> Option<f64>);

/// Microseconds in a second.
const SECOND_US: f64 = 1e6;
/// Bytes of a disk's block in the kernel's counters.
const BLOCK: u64 = 512;

const FAMILIES: [HostMetric; 12] = [
    ("cores", MetricKind::Gauge, "Processors.", |f, _| Some(f64::from(f.cores))),
    ("memory_bytes", MetricKind::Gauge, "Main memory.", |f, _| Some(f.memory_bytes as f64)),
    ("memory_available_bytes", MetricKind::Gauge, "Main memory that new programs could use.", |_, s| {
        Some(s.mem_available? as f64)
    }),
    ("load1", MetricKind::Gauge, "Tasks that run or wait for disks, over a minute.", |_, s| s.r1m),
    ("cpu_seconds_total", MetricKind::Counter, "Processor time of all processors.", |_, s| seconds(s.cpu_total_us)),
    (
        "cpu_idle_seconds_total",
        MetricKind::Counter,
        "Time in which processors were idle or waited for disks.",
        |_, s| seconds(s.cpu_idle_us),
    ),
    ("io_stalled_seconds_total", MetricKind::Counter, "Time in which some task waited for disks.", |_, s| {
        seconds(s.io_some_us)
    }),
    ("disk_bytes_total", MetricKind::Counter, "Bytes read and written by whole disks.", |_, s| {
        Some((s.disk_blocks?.saturating_mul(BLOCK)) as f64)
    }),
    ("disk_requests_total", MetricKind::Counter, "Reads and writes of whole disks.", |_, s| {
        Some(s.disk_requests? as f64)
    }),
    ("nfsd_calls_total", MetricKind::Counter, "Calls that the NFS server of the host has served.", |_, s| {
        Some(s.nfsd_calls? as f64)
    }),
    ("received_bytes_total", MetricKind::Counter, "Bytes that the interfaces of the host received.", |_, s| {
        net(s, |(rx, _)| rx)
    }),
    ("sent_bytes_total", MetricKind::Counter, "Bytes that the interfaces of the host sent.", |_, s| {
        net(s, |(_, tx)| tx)
    }),
];

fn seconds(us: Option<u64>) -> Option<f64> {
    us.map(|us| us as f64 / SECOND_US)
}

fn net(sample: &HostSample, way: fn((u64, u64)) -> u64) -> Option<f64> {
    let bytes = || sample.net.values().map(|both| way(*both)).sum::<u64>();
    (!sample.net.is_empty()).then(|| bytes() as f64)
}

/// Writes one row per host. A silent host only has `up` 0. Unknown values have no sample.
pub fn prometheus(hosts: &[String], answers: &[HostReading], slots: impl Fn(&str) -> Option<u32>) -> String {
    let mut metrics = Metrics::default();
    let up = "homing_host_up";
    metrics.family(up, MetricKind::Gauge, "1 if the host answered, else 0.");
    hosts.iter().zip(answers).for_each(|(host, a)| metrics.sample(up, &[("host", host)], u8::from(a.is_ok())));
    let known = || hosts.iter().zip(answers).filter_map(|(host, answer)| Some((host, answer.as_ref().ok()?)));
    let name = "homing_host_slots";
    metrics.family(name, MetricKind::Gauge, "Slots of the host: tasks that a run gives it at the same time.");
    known().for_each(|(host, (facts, ..))| {
        metrics.sample(name, &[("host", host)], slots(host).unwrap_or(facts.cores));
    });
    for (name, kind, help, value) in FAMILIES {
        let name = format!("homing_host_{name}");
        metrics.family(&name, kind, help);
        for (host, value) in known().filter_map(|(host, (facts, _, last))| Some((host, value(facts, last)?))) {
            metrics.sample(&name, &[("host", host)], value);
        }
    }
    metrics.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_in_base_units_and_a_silent_host_is_only_not_up() {
        let facts = HostFacts { cores: 4, memory_bytes: 100, ..HostFacts::default() };
        let last = HostSample {
            cpu_total_us: Some(2_500_000),
            disk_blocks: Some(3),
            net: [("a".to_string(), (5, 7)), ("b".to_string(), (1, 2))].into(),
            ..HostSample::default()
        };
        let hosts = ["n\"1\\\n".to_string(), "n2".to_string()];
        let answers = [Ok((facts, HostSample::default(), last)), Err("no route".into())];
        let text = prometheus(&hosts, &answers, |host| (host == "n2").then_some(9));
        let of = |name: &str, value: &str| format!("homing_host_{name}{{host=\"n\\\"1\\\\\\n\"}} {value}\n");
        for (name, value) in [
            ("up", "1"),
            ("slots", "4"),
            ("cpu_seconds_total", "2.5"),
            ("disk_bytes_total", "1536"),
            ("received_bytes_total", "6"),
            ("sent_bytes_total", "9"),
        ] {
            assert!(text.contains(&of(name, value)), "{name}: {text}");
        }
        assert!(text.contains("homing_host_up{host=\"n2\"} 0\n") && text.matches("host=\"n2\"").count() == 1, "{text}");
        assert!(!text.contains("nfsd_calls_total{") && !text.contains("memory_available_bytes{"), "{text}");
    }
}
