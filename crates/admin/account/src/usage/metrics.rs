//! The sums in the format of Prometheus. Pruned runs are still among them, so that they only grow.

use homing_cluster::Cost;
use homing_model::metrics::{MetricKind, Metrics};
use homing_report::Used;

/// A name without the common prefix, its help text, and its value of a row that has one.
type UsageMetric = (&'static str, &'static str, fn(&Used) -> Option<f64>);

/// Microseconds in a second.
const SECOND_US: f64 = 1e6;

const FAMILIES: [UsageMetric; 11] = [
    ("attempts_total", "Attempts of tasks that have ended.", |u| Some(u.attempts as f64)),
    ("failed_attempts_total", "Attempts that did not end with status 0.", |u| Some(u.failed as f64)),
    ("slot_seconds_total", "Time for which attempts held their slots.", |u| Some(u.slot_us as f64 / SECOND_US)),
    ("host_seconds_total", "Time of slots as a share of the slots of their hosts.", |u| {
        Some(u.host_us as f64 / SECOND_US)
    }),
    ("cpu_seconds_total", "Processor time of attempts.", |u| Some(u.cpu_us as f64 / SECOND_US)),
    ("memory_byte_seconds_total", "Largest resident set of each attempt, multiplied by its run time.", |u| {
        Some(u.memory_byte_s as f64)
    }),
    ("local_bytes_total", "Bytes of inputs whose copy is on the host that ran the attempt, by the layout.", |u| {
        placed(u, u.local_bytes)
    }),
    ("remote_bytes_total", "Bytes of inputs whose copies are on other hosts only, by the layout.", |u| {
        placed(u, u.remote_bytes)
    }),
    ("read_bytes_total", "Bytes requested by read calls.", |u| u.read_bytes.map(|bytes| bytes as f64)),
    ("disk_bytes_total", "Bytes that hosts read from disks.", |u| Some(u.disk_bytes as f64)),
    ("measured_joules_total", "Measured energy of hosts while runs held them.", |u| {
        (!u.held.measured.is_empty()).then(|| u.held.measured.values().map(|(uj, _)| *uj as f64 / 1e6).sum())
    }),
];

/// Returns bytes unless the layout of all attempts is unknown.
fn placed(used: &Used, bytes: u64) -> Option<f64> {
    (used.attempts > used.unplaced).then_some(bytes as f64)
}

/// Returns the whole file; `by` is the label of a row's name. An unknown value has no sample.
pub fn text(rows: Vec<(&String, &Used)>, by: &str, cost: Option<&Cost>, now_ns: i64) -> String {
    let mut metrics = Metrics::default();
    for (name, help, value) in FAMILIES {
        let name = format!("homing_usage_{name}");
        metrics.family(&name, MetricKind::Counter, help);
        for (row, value) in rows.iter().filter_map(|(row, used)| Some((row, value(used)?))) {
            metrics.sample(&name, &[(by, row)], value);
        }
    }
    if let Some((cost, price)) = cost.and_then(|cost| Some((cost, cost.host_hour()?))) {
        // Not a counter: the price may change tomorrow, for earlier use too.
        metrics.family("homing_usage_cost", MetricKind::Gauge, "Cost at today's price.");
        for (row, used) in &rows {
            let labels = [(by, row.as_str()), ("currency", &cost.currency)];
            metrics.sample("homing_usage_cost", &labels, used.cost(price));
        }
    }
    let written = "homing_usage_last_run_timestamp_seconds";
    metrics.only(written, MetricKind::Gauge, "Time at which this file was written.", now_ns / 1_000_000_000);
    metrics.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_has_no_sample_and_times_are_seconds() {
        let used = Used { attempts: 2, unplaced: 2, slot_us: 2_500_000, local_bytes: 7, ..Used::default() };
        let name = "a \"b\"".to_string();
        let text = text(vec![(&name, &used)], "command", None, 17_900_000_000);
        assert!(text.contains("homing_usage_slot_seconds_total{command=\"a \\\"b\\\"\"} 2.5\n"), "{text}");
        assert!(!text.contains("local_bytes_total{") && !text.contains("read_bytes_total{"), "{text}");
        assert!(!text.contains("joules_total{"), "{text}");
        assert!(!text.contains("homing_usage_cost") && text.ends_with("_seconds 17\n"), "{text}");
    }
}
