//! The hosts at an earlier moment, from the samples that each host kept.

use crate::history::{HostRecords, Moment, at};
use crate::{About, Scene};
use homing_model::units::short_span;
use homing_model::{NodeSet, document};
use homing_report::HostState;
use serde_json::{Value, json};
use std::time::Duration;

/// The histories of hosts.
pub struct Past {
    /// By name, the samples that each host kept, or why it sends none.
    pub hosts: Vec<(String, Result<HostRecords, String>)>,
    /// The first moment, ns since 1970.
    pub begin_ns: i64,
    /// The last moment, ns since 1970.
    pub end_ns: i64,
    /// The time between two records of a host.
    pub step_ns: i64,
    /// Formats a moment for users.
    pub time: fn(i64) -> String,
}

impl Past {
    /// Returns the longest step that is no gap: one late or missing sample makes none.
    fn longest_ns(&self) -> i64 {
        self.step_ns.saturating_mul(5) / 2
    }

    /// Returns the moment of each step.
    pub fn moments(&self) -> impl Iterator<Item = i64> {
        let count = (self.end_ns - self.begin_ns) / self.step_ns.max(1);
        (0..=count).map(|n| self.begin_ns + n * self.step_ns)
    }

    /// Returns the scene of a moment.
    pub fn scene(&self, ns: i64) -> Scene {
        let age = Duration::from_nanos(self.end_ns.saturating_sub(ns).max(0) as u64);
        Scene {
            about: About::Past,
            title: self.hosts.iter().map(|(name, _)| name.clone()).collect::<NodeSet>().to_string(),
            progress: format!("{}, {} ago", (self.time)(ns), short_span(age)),
            hosts: self.hosts.iter().map(|(name, told)| self.state(name, told, ns)).collect(),
            ..Scene::default()
        }
    }

    /// Returns a moment as JSON, with the names and units of the other objects of `homing top`.
    pub fn line(&self, ns: i64) -> String {
        let host = |(name, told): &(String, Result<HostRecords, String>)| {
            let state = self.state(name, told, ns);
            let facts = told.as_ref().ok().and_then(|kept| kept.facts.as_ref());
            json!({
                "host": name, "cores": Some(state.slots).filter(|cores| *cores > 0), "unknown": state.trouble, "ut": state.cpu,
                "stalled": state.stalled, "mem_mib": state.memory, "io": state.disk.map(|mb| mb * 1000.0), "net": state.net,
                "link_bytes_per_s": facts.and_then(|facts| facts.nic_bytes_per_s),
            })
        };
        let hosts: Vec<Value> = self.hosts.iter().map(host).collect();
        document::line(json!({"at_ns": ns, "hosts": hosts}))
    }

    /// Returns the state of a host at a moment, or why it is unknown.
    fn state(&self, name: &str, told: &Result<HostRecords, String>, ns: i64) -> HostState {
        let unknown =
            |why: String, lost| HostState { name: name.into(), trouble: Some(why), lost, ..HostState::default() };
        let kept = match told {
            Ok(kept) => kept,
            Err(why) => return unknown(why.clone(), true),
        };
        let (seen, cores) = match at(&kept.records, ns, self.longest_ns()) {
            Moment::Seen { indices, cores } => (indices, cores),
            Moment::Dark { since_ns: Some(since_ns) } => {
                return unknown(format!("no samples since {}", (self.time)(since_ns)), false);
            }
            Moment::Dark { since_ns: None } => return unknown("no samples yet".into(), false),
        };
        let facts = kept.facts.as_ref();
        // Converts MB/s to percent of the link's bytes per second.
        let link = |mb: f64| facts?.nic_bytes_per_s.filter(|rate| *rate > 0).map(|rate| mb * 1e8 / rate as f64);
        HostState {
            name: name.into(),
            slots: cores.or(facts.map(|facts| facts.cores)).unwrap_or(0),
            cpu: seen.ut,
            memory: seen.mem,
            stalled: seen.stalled,
            disk: seen.io.map(|kb| kb / 1000.0),
            net: seen.net,
            link: seen.net.and_then(link),
            ..HostState::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::SampleRecord;
    use homing_model::HostSample;

    #[test]
    fn a_host_is_shown_where_it_kept_something_and_is_told_of_where_not() {
        let second = 1_000_000_000;
        let record = |at: i64, busy| SampleRecord {
            boot: 1,
            sample: HostSample {
                at_ns: at * second,
                cpu_total_us: Some(at as u64 * 1_000_000),
                cpu_idle_us: Some(at as u64 * 1_000_000 - busy),
                ..HostSample::default()
            },
            ..SampleRecord::default()
        };
        let kept = HostRecords { records: vec![record(60, 0), record(120, 30_000_000)], facts: None };
        let past = Past {
            hosts: vec![("n1".into(), Ok(kept)), ("n2".into(), Err("no route".into()))],
            begin_ns: 60 * second,
            end_ns: 600 * second,
            step_ns: 60 * second,
            time: |ns| format!("second {}", ns / 1_000_000_000),
        };
        let scene = past.scene(120 * second);
        assert_eq!((scene.title.as_str(), scene.progress.as_str()), ("n[1-2]", "second 120, 8:00 min ago"));
        assert_eq!((scene.hosts[0].cpu, scene.hosts[1].trouble.as_deref()), (Some(50.0), Some("no route")));
        assert!(past.line(600 * second).contains("no samples since second 120"), "{}", past.line(600 * second));
        assert_eq!(past.moments().count(), 10);
    }
}
