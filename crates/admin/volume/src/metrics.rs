//! Exports volumes to Prometheus: their hosts, their findings, and their space.

use crate::Figures;
use crate::observe::Store;
use homing_model::metrics::{MetricKind, Metrics};

/// Returns the metrics of volumes in Prometheus' text format.
pub fn prometheus(volumes: &[Figures]) -> String {
    let mut metrics = Metrics::default();
    let name = "homing_volume_info";
    metrics.family(name, MetricKind::Gauge, "Kind and settings of a volume.");
    for one in volumes {
        metrics.sample(name, &[("volume", &one.name), ("kind", &one.kind), ("mount", &one.mount)], 1);
    }
    let name = "homing_volume_host_well";
    metrics.family(
        name,
        MetricKind::Gauge,
        "1 if a host serves and mounts its part of the volume; 0 if it does not, or gives no answer.",
    );
    for one in volumes {
        one.hosts.iter().for_each(|(host, well)| {
            metrics.sample(name, &[("volume", &one.name), ("host", host)], u8::from(*well));
        });
    }
    let name = "homing_volume_findings";
    metrics.family(name, MetricKind::Gauge, "Findings of homing volume status.");
    for one in volumes {
        for (severity, n) in [("error", one.errors), ("warning", one.warnings)] {
            metrics.sample(name, &[("volume", &one.name), ("severity", severity)], n);
        }
    }
    for (name, help, value) in [
        ("homing_volume_store_size_bytes", "Size of the disk of a store.", (|s| s.size) as fn(&Store) -> u64),
        ("homing_volume_store_free_bytes", "Free bytes on the disk of a store.", |s| s.free),
    ] {
        metrics.family(name, MetricKind::Gauge, help);
        for (one, (host, store)) in volumes.iter().flat_map(|one| one.stores.iter().map(move |store| (one, store))) {
            metrics.sample(name, &[("volume", &one.name), ("host", host), ("path", &store.path)], value(store));
        }
    }
    metrics.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_tells_its_hosts_its_room_and_what_is_wrong() {
        let store = Store { path: "/b \"1\"".into(), size: 100, free: 40, ..Store::default() };
        let one = Figures {
            name: "data".into(),
            kind: "gluster".into(),
            mount: "/data".into(),
            hosts: vec![("n1".into(), true), ("n2".into(), false)],
            stores: vec![("n1".into(), store)],
            errors: 1,
            warnings: 0,
        };
        let text = prometheus(&[one]);
        for line in [
            "homing_volume_info{volume=\"data\",kind=\"gluster\",mount=\"/data\"} 1\n",
            "homing_volume_host_well{volume=\"data\",host=\"n2\"} 0\n",
            "homing_volume_findings{volume=\"data\",severity=\"error\"} 1\n",
            "homing_volume_store_free_bytes{volume=\"data\",host=\"n1\",path=\"/b \\\"1\\\"\"} 40\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }
}
