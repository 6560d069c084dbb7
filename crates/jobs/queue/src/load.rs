//! Load indices under LSF's names, and the thresholds of queues.

use crate::index::{Answers, Index};
use crate::require::{Requirement, Value};
use homing_model::HostSample;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The shortest time over which rates are taken.
const BETWEEN: Duration = Duration::from_secs(2);

/// Values by index name. Unknown values are absent.
///
/// `r1m` run queue, `ut` processor use in percent, `pg` pages/s, `mem` MiB available. `io` KB/s and `bio` requests/s
/// of whole disks (`tps` of `sar -b`), `rpc` NFS server calls/s. The others are those of [`homing_probe::indices`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadIndices {
    values: BTreeMap<String, f64>,
    /// Text attributes of this machine: `type`, `hname`, `status`.
    names: BTreeMap<String, String>,
}

/// The indices that are measured on every host.
pub const INDICES: [&str; 13] =
    ["r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it", "tmp", "swp", "mem", "bio", "rpc"];

/// Indices of which a smaller value is worse.
const DECREASING: [&str; 4] = ["mem", "swp", "tmp", "it"];

impl LoadIndices {
    /// Makes a load of given values.
    pub fn of(values: &[(&str, f64)]) -> LoadIndices {
        LoadIndices { values: values.iter().map(|(n, v)| (n.to_string(), *v)).collect(), ..LoadIndices::default() }
    }
    /// Returns one value.
    pub fn get(&self, index: &str) -> Option<f64> {
        self.values.get(index).copied()
    }
    fn set(&mut self, index: &str, value: Option<f64>) {
        match value {
            Some(value) => drop(self.values.insert(index.into(), value)),
            None => drop(self.values.remove(index)),
        }
    }
    fn beyond(&self, index: &str, threshold: f64) -> bool {
        self.get(index).is_some_and(|v| if DECREASING.contains(&index) { v < threshold } else { v > threshold })
    }
    /// Returns the first index of a queue's thresholds that is beyond its threshold for starting.
    pub fn above_first(&self, of_queue: &BTreeMap<String, String>) -> Option<String> {
        self.first_beyond(of_queue, |(sched, _)| sched)
    }
    /// Returns the first index that is beyond its threshold for suspending.
    pub fn above_second(&self, of_queue: &BTreeMap<String, String>) -> Option<String> {
        self.first_beyond(of_queue, |(_, stop)| stop)
    }
    fn first_beyond(
        &self,
        of_queue: &BTreeMap<String, String>,
        side: impl Fn((Option<f64>, Option<f64>)) -> Option<f64>,
    ) -> Option<String> {
        let found = of_queue.iter().find(|(index, text)| {
            side(thresholds(text).unwrap_or_default()).is_some_and(|threshold| self.beyond(index, threshold))
        });
        found.map(|(index, _)| index.clone())
    }
    /// Whether a resource requirement wants more than this machine can ever have.
    pub fn never(&self, text: &str) -> bool {
        let most = |name: &str| match name {
            "mem" | "maxmem" => self.get("maxmem"),
            name if PROCESSORS.contains(&name) => self.get(name),
            _ => None,
        };
        Requirement::all(&[text]).is_ok_and(|r| r.never(&most).is_some())
    }
    /// Whether a resource requirement (`select[mem>500] rusage[mem=500]`) holds here. An unreadable one was refused
    /// at submission.
    pub fn holds(&self, text: &str) -> bool {
        let word = |name: &str| self.names.get(name).cloned().map(Value::Text);
        let here = |name: &str| self.get(name).map(Value::Number).or_else(|| word(name));
        Requirement::all(&[text]).is_ok_and(|r| r.lacks(&here).is_none())
    }
}

/// LSF's names for the number of processors of a host; homing counts one number.
const PROCESSORS: [&str; 4] = ["ncpus", "ncores", "nprocs", "nthreads"];

/// Returns the attributes of this machine that do not change while it runs, as `lshosts` shows them.
fn attributes() -> LoadIndices {
    let mut load = LoadIndices::default();
    let facts = homing_probe::facts();
    let mib = facts.memory_bytes as f64 / f64::from(1 << 20);
    load.set("maxmem", Some(mib));
    load.set("server", Some(1.0));
    PROCESSORS.iter().for_each(|name| load.set(name, Some(f64::from(facts.cores))));
    let names = [("type", facts.arch.to_uppercase()), ("hname", crate::host_name()), ("status", "ok".into())];
    load.names = names.map(|(name, value)| (name.to_string(), value)).into();
    load
}

/// Parses `1500/4000`, `1500` or `/4000`: the thresholds for starting and for suspending.
pub fn thresholds(text: &str) -> Option<(Option<f64>, Option<f64>)> {
    let (first, second) = text.split_once('/').unwrap_or((text, ""));
    let number = |t: &str| if t.trim().is_empty() { Some(None) } else { t.trim().parse().ok().map(Some) };
    Some((number(first)?, number(second)?))
}

/// Returns the thresholds of a queue by index, for starting and for suspending. An unreadable one is none.
pub fn all_thresholds(of_queue: &BTreeMap<String, String>) -> BTreeMap<String, (Option<f64>, Option<f64>)> {
    of_queue.iter().map(|(index, text)| (index.clone(), thresholds(text).unwrap_or_default())).collect()
}

/// Returns the load between two samples, with the values of one moment.
pub fn measure(first: &HostSample, last: &HostSample, at_once: BTreeMap<String, f64>) -> LoadIndices {
    let i = last.since(first);
    let all =
        [("r1m", i.r1m), ("ut", i.ut), ("pg", i.pg), ("mem", i.mem), ("io", i.io), ("bio", i.bio), ("rpc", i.rpc)];
    let values = all.into_iter().filter_map(|(n, v)| Some((n.to_string(), v?))).chain(at_once).collect();
    LoadIndices { values, ..LoadIndices::default() }
}

/// The newest load of this machine, at most a few seconds old.
pub struct LoadMonitor {
    sample: HostSample,
    taken: Instant,
    load: LoadIndices,
    attributes: LoadIndices,
    answers: Answers,
}

/// Begins to watch, also the site's own indices; takes a first sample over 0.1 s.
pub fn watch(own: &BTreeMap<String, Index>) -> LoadMonitor {
    let answers = Answers::first(own);
    let first = homing_probe::sample();
    std::thread::sleep(Duration::from_millis(100));
    let sample = homing_probe::sample();
    let load = measure(&first, &sample, homing_probe::indices());
    LoadMonitor { load, attributes: attributes(), sample, taken: Instant::now(), answers }
}

impl LoadMonitor {
    /// Whether these are the site's own indices that it watches.
    pub fn watches(&self, own: &BTreeMap<String, Index>) -> bool {
        self.answers.are(own)
    }

    /// Returns the load now.
    pub fn now(&mut self) -> &LoadIndices {
        if self.taken.elapsed() >= BETWEEN {
            let sample = homing_probe::sample();
            self.load = measure(&self.sample, &sample, homing_probe::indices());
            (self.sample, self.taken) = (sample, Instant::now());
        }
        self.load.names.clone_from(&self.attributes.names);
        self.attributes.values.iter().for_each(|(name, value)| self.load.set(name, Some(*value)));
        self.answers.now().for_each(|(name, value)| self.load.set(name, value));
        &self.load
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements() {
        let load = LoadIndices::of(&[("mem", 1000.0), ("bio", 10.0)]);
        for (text, want) in [
            ("select[mem>=500] rusage[mem=500]", true),
            ("select[mem>=5000]", false),
            ("rusage[mem=5000]", false),
            ("rusage[mem=500:duration=10,bio=3]", true),
            ("span[hosts=1]", true),
            ("mem>500 && bio<5", false),
            ("mem>5000 || bio<50", true),
            ("type==any", true),
        ] {
            assert_eq!(load.holds(text), want, "{text}");
        }
    }

    #[test]
    fn what_a_selection_names_of_this_machine_is_looked_at() {
        let mut watch = watch(&BTreeMap::new());
        let (load, own) = (watch.now().clone(), crate::host_name());
        for name in crate::require::NAMES {
            let known = load.get(name).is_some() || load.names.contains_key(name);
            // A counter that this kernel does not have is unknown.
            assert!(known || INDICES.contains(&name), "{name} would be ignored");
        }
        let holds = |text: &str| load.holds(&format!("select[{text}]"));
        assert!(holds("type==any && ncpus>=1 && maxmem>1 && server"));
        assert_eq!((holds("type==VAX"), holds("ncpus>100000"), holds("hname==nosuch")), (false, false, false));
        assert!(own.contains('-') || holds(&format!("hname=={own}")));
    }

    #[test]
    fn both_thresholds_in_both_directions() {
        assert_eq!(thresholds("1500/4000"), Some((Some(1500.0), Some(4000.0))));
        assert_eq!(thresholds("/4"), Some((None, Some(4.0))));
        assert_eq!(thresholds("x"), None);
        let queue = BTreeMap::from([("mem".to_string(), "100/50".to_string())]);
        assert_eq!(LoadIndices::of(&[("mem", 75.0)]).above_first(&queue).as_deref(), Some("mem"));
        assert_eq!(LoadIndices::of(&[("mem", 75.0)]).above_second(&queue), None);
        assert_eq!(LoadIndices::of(&[("mem", 40.0)]).above_second(&queue).as_deref(), Some("mem"));
    }
}
