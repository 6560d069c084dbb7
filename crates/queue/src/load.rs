//! Load indices under LSF's names, and the thresholds of queues.

use crate::index::{Answers, Index};
use homing_lsf::require::{Requirement, Value};
use homing_model::HostSample;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Rates are taken over at least this time.
const BETWEEN: Duration = Duration::from_secs(2);

/// Values by index name. What is not known is absent.
///
/// `r1m` run queue, `ut` processor use in percent, `pg` pages/s, `mem` MiB
/// available, `io` KB/s and `bio` requests/s of whole disks (`tps` of `sar -b`), `rpc` NFS
/// server calls/s, and the rest of [`homing_probe::indices`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load(BTreeMap<String, f64>);

/// Those that are measured on every host.
pub const INDICES: [&str; 13] =
    ["r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it", "tmp", "swp", "mem", "bio", "rpc"];

/// Indices of which less is worse.
const DECREASING: [&str; 4] = ["mem", "swp", "tmp", "it"];

impl Load {
    /// Of given values.
    pub fn of(values: &[(&str, f64)]) -> Load {
        Load(values.iter().map(|(n, v)| (n.to_string(), *v)).collect())
    }
    /// One value.
    pub fn get(&self, index: &str) -> Option<f64> {
        self.0.get(index).copied()
    }
    fn set(&mut self, index: &str, value: Option<f64>) {
        match value {
            Some(value) => drop(self.0.insert(index.into(), value)),
            None => drop(self.0.remove(index)),
        }
    }
    fn beyond(&self, index: &str, threshold: f64) -> bool {
        self.get(index).is_some_and(|v| if DECREASING.contains(&index) { v < threshold } else { v > threshold })
    }
    /// The first index that is beyond the threshold for starting, of a queue's thresholds.
    pub fn above_first(&self, of_queue: &BTreeMap<String, String>) -> Option<String> {
        self.first_beyond(of_queue, |(sched, _)| sched)
    }
    /// The first index that is beyond the threshold for standing still.
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
    /// Whether a resource requirement asks for more than this machine can ever have.
    pub fn never(&self, text: &str) -> bool {
        let most = |name: &str| matches!(name, "mem" | "maxmem").then(|| self.get("maxmem")).flatten();
        Requirement::all(&[text]).is_ok_and(|r| r.never(&most).is_some())
    }
    /// Whether a resource requirement (`select[mem>500] rusage[mem=500]`) holds
    /// here. What cannot be read was refused when the job was submitted.
    pub fn holds(&self, text: &str) -> bool {
        let here = |name: &str| self.get(name).map(Value::Number);
        Requirement::all(&[text]).is_ok_and(|r| r.lacks(&here).is_none())
    }
}

/// `1500/4000`, `1500`, `/4000`: for starting, and for standing still.
pub fn thresholds(text: &str) -> Option<(Option<f64>, Option<f64>)> {
    let (first, second) = text.split_once('/').unwrap_or((text, ""));
    let number = |t: &str| if t.trim().is_empty() { Some(None) } else { t.trim().parse().ok().map(Some) };
    Some((number(first)?, number(second)?))
}

/// The load between two samples, and what was so at one moment.
pub fn measure(first: &HostSample, last: &HostSample, at_once: BTreeMap<String, f64>) -> Load {
    let i = last.since(first);
    let all =
        [("r1m", i.r1m), ("ut", i.ut), ("pg", i.pg), ("mem", i.mem), ("io", i.io), ("bio", i.bio), ("rpc", i.rpc)];
    Load(all.into_iter().filter_map(|(n, v)| Some((n.to_string(), v?))).chain(at_once).collect())
}

/// The newest load of this machine, never older than a few seconds.
pub struct Watch {
    sample: HostSample,
    taken: Instant,
    load: Load,
    answers: Answers,
}

/// Begins to watch, also the site's own indices; takes a first look over a tenth of a second.
pub fn watch(own: &BTreeMap<String, Index>) -> Watch {
    let answers = Answers::first(own);
    let first = homing_probe::sample();
    std::thread::sleep(Duration::from_millis(100));
    let sample = homing_probe::sample();
    let load = measure(&first, &sample, homing_probe::indices());
    Watch { load, sample, taken: Instant::now(), answers }
}

impl Watch {
    /// Whether these are the site's own indices that it watches.
    pub fn watches(&self, own: &BTreeMap<String, Index>) -> bool {
        self.answers.are(own)
    }

    /// The load now.
    pub fn now(&mut self) -> &Load {
        if self.taken.elapsed() >= BETWEEN {
            let sample = homing_probe::sample();
            self.load = measure(&self.sample, &sample, homing_probe::indices());
            (self.sample, self.taken) = (sample, Instant::now());
        }
        self.load.set("maxmem", Some(homing_probe::memory_bytes() as f64 / f64::from(1 << 20)));
        self.answers.now().for_each(|(name, value)| self.load.set(name, value));
        &self.load
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements() {
        let load = Load::of(&[("mem", 1000.0), ("bio", 10.0)]);
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
    fn both_thresholds_in_both_directions() {
        assert_eq!(thresholds("1500/4000"), Some((Some(1500.0), Some(4000.0))));
        assert_eq!(thresholds("/4"), Some((None, Some(4.0))));
        assert_eq!(thresholds("x"), None);
        let queue = BTreeMap::from([("mem".to_string(), "100/50".to_string())]);
        assert_eq!(Load::of(&[("mem", 75.0)]).above_first(&queue).as_deref(), Some("mem"));
        assert_eq!(Load::of(&[("mem", 75.0)]).above_second(&queue), None);
        assert_eq!(Load::of(&[("mem", 40.0)]).above_second(&queue).as_deref(), Some("mem"));
    }
}
