//! Writes the state of a cluster for Prometheus: hosts, the queue, file servers, volumes, and the sums of runs.
//!
//! Unknown values are left out, and `homing_hosts_told` is 0 for their part. An alert can therefore distinguish zero
//! from unknown.

use super::Args;
use crate::cluster::{Cluster, ClusterArgs};
use crate::cmd::asked::HostReading;
use crate::cmd::public_file::write_whole;
use crate::cmd::queue::EngineArgs;

use homing_account::usage::{InForce, prometheus_of_servers};
use homing_model::Failure;
use homing_model::metrics::{MetricKind, Metrics};
use std::path::Path;

/// All that is known of the cluster.
pub struct HostsMetrics<'a> {
    pub args: &'a Args,
    pub cluster: &'a Cluster,
    pub hosts: &'a [String],
    pub answers: &'a [HostReading],
    pub in_force: &'a InForce,
}

/// Writes the whole file.
pub fn write(file: &Path, all: &HostsMetrics) -> Result<(), Failure> {
    let silent: Vec<&str> =
        all.hosts.iter().zip(all.answers).filter(|(_, a)| a.is_err()).map(|(host, _)| host.as_str()).collect();
    let slots = |host: &str| all.cluster.slots_of(host);
    let mut text = homing_probe::prometheus(all.hosts, all.answers, slots) + &prometheus_of_servers(all.in_force);
    let runs = homing_account::usage::prometheus(&all.args.runs, all.cluster.cost()).map_err(Failure::system).map(
        |(runs, uncounted)| {
            uncounted.iter().for_each(|why| eprintln!("homing: not counted: {why}"));
            runs
        },
    );
    let parts = [("queue", queue(&all.args.engine)), ("volumes", volumes(&all.args.cluster, &silent)), ("runs", runs)];
    let mut known = Vec::new();
    for (part, told) in parts {
        known.push((part, told.is_ok()));
        match told {
            Ok(more) => text += &more,
            Err(failure) => eprintln!("homing: {}: no metrics of {part}: {failure}", file.display()),
        }
    }
    write_whole(file, &(text + &ending(&known)))
}

fn queue(engine: &EngineArgs) -> Result<String, Failure> {
    Ok(homing_queue::prometheus(engine.open()?.as_ref())?)
}

/// Returns the metrics of volumes with a record here, and queries their hosts for that.
#[cfg(feature = "admin")]
fn volumes(cluster: &ClusterArgs, silent: &[&str]) -> Result<String, Failure> {
    let names = homing_volume::VolumeRecord::names(&homing_volume::folder());
    let all = names.iter().map(|name| crate::cmd::volume::figures(cluster, name, silent));
    Ok(homing_volume::prometheus(&all.collect::<Result<Vec<_>, _>>()?))
}

/// Fails: `homing` becomes `homing-admin` before it writes metrics.
#[cfg(not(feature = "admin"))]
fn volumes(_: &ClusterArgs, _: &[&str]) -> Result<String, Failure> {
    Err(Failure::usage("this program has no volumes; homing-admin writes their metrics"))
}

fn ending(known: &[(&str, bool)]) -> String {
    let mut metrics = Metrics::default();
    let name = "homing_hosts_told";
    metrics.family(name, MetricKind::Gauge, "1 if this file has the metrics of a part, 0 if they could not be read.");
    known.iter().for_each(|(part, told)| metrics.sample(name, &[("part", part)], u8::from(*told)));
    let seconds = homing_os::clock::system_ns() / 1_000_000_000;
    metrics.only(
        "homing_hosts_last_run_timestamp_seconds",
        MetricKind::Gauge,
        "Time at which this file was written.",
        seconds,
    );
    metrics.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_asked_is_told_apart_from_nothing() {
        let text = ending(&[("queue", false), ("runs", true)]);
        assert!(text.contains("told{part=\"queue\"} 0\n") && text.contains("told{part=\"runs\"} 1\n"), "{text}");
    }
}
