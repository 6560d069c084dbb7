//! The history that a host sends: one line per record. Also the length of its steps.

use crate::history::SampleRecord;
use homing_model::{HostFacts, HostSample};
use serde::{Deserialize, Serialize};
use std::time::Duration;

const MINUTE_S: u64 = 60;

/// A record, as hosts send it.
#[derive(Serialize, Deserialize)]
struct HistoryLine {
    boot: u64,
    sample: HostSample,
    /// The present facts of the host, in the first line alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    facts: Option<HostFacts>,
}

/// The history of a host.
#[derive(Default)]
pub struct HostRecords {
    /// The records, the oldest first.
    pub records: Vec<SampleRecord>,
    /// The present facts of the host.
    pub facts: Option<HostFacts>,
}

/// The history that a host sent, or why it sent none.
pub type HostHistory = Result<HostRecords, String>;

/// Returns the lines of these records. The first line contains the present facts of the host.
pub fn lines(records: Vec<SampleRecord>, facts: HostFacts) -> String {
    let mut facts = Some(facts);
    let line = |SampleRecord { boot, sample, .. }: SampleRecord| {
        serde_json::to_string(&HistoryLine { boot, sample, facts: facts.take() }).unwrap_or_default() + "\n"
    };
    records.into_iter().map(line).collect()
}

/// Reads the lines of a host.
pub fn read(text: &[u8]) -> HostHistory {
    let mut all = HostRecords::default();
    for line in text.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        let line: HistoryLine = serde_json::from_slice(line)
            .map_err(|e| format!("this homing cannot read the answer of its homing: {e}"))?;
        all.facts = line.facts.or(all.facts);
        all.records.push(SampleRecord { number: 0, boot: line.boot, sample: line.sample });
    }
    Ok(all)
}

/// Returns the length of each of `steps` steps, in whole minutes.
pub fn step(age: Duration, steps: u64) -> Duration {
    Duration::from_secs(age.as_secs().div_ceil(steps).div_ceil(MINUTE_S).max(1) * MINUTE_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_whole_minutes_and_at_most_sixty() {
        let minutes = |hours: u64| step(Duration::from_secs(hours * 3600), 60).as_secs() / MINUTE_S;
        assert_eq!([0, 1, 2, 24, 168].map(minutes), [1, 1, 2, 24, 168]);
        assert_eq!(step(Duration::from_secs(3601), 60).as_secs(), 120);
    }

    #[test]
    fn what_is_told_is_read_again_and_what_a_host_is_stands_with_it_once() {
        let record =
            |boot| SampleRecord { number: 0, boot, sample: HostSample { r1m: Some(0.5), ..HostSample::default() } };
        let text = lines(vec![record(1), record(2)], HostFacts { cores: 4, ..HostFacts::default() });
        assert_eq!(text.matches("cores").count(), 1, "{text}");
        let kept = read(text.as_bytes()).unwrap();
        assert_eq!(kept.records.iter().map(|record| record.boot).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(kept.facts.map(|facts| facts.cores), Some(4));
        assert!(read(b"{}\n").is_err_and(|why| why.starts_with("this homing cannot read")));
    }
}
