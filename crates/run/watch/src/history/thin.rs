//! Reduces records to fewer ones with longer steps.

use crate::history::record::SampleRecord;

/// Returns the last record of each step of time from `begin_ns` on, and the last record before that, with which the
/// first step begins. Steps are counted from 1970, so the steps of all hosts end at the same time.
pub fn thin(records: Vec<SampleRecord>, begin_ns: i64, step_ns: i64) -> Vec<SampleRecord> {
    let step = |record: &SampleRecord| record.sample.at_ns.div_euclid(step_ns.max(1));
    let before = records.iter().rposition(|record| record.sample.at_ns < begin_ns);
    let mut kept: Vec<SampleRecord> = Vec::new();
    for (at, record) in records.into_iter().enumerate() {
        let is_later = record.sample.at_ns >= begin_ns;
        if !is_later && Some(at) != before {
            continue;
        }
        // Two records of one step, unless the first is before all steps, or the host was started in between.
        let follows = kept.last().is_some_and(|last| {
            last.sample.at_ns >= begin_ns && step(last) == step(&record) && last.boot == record.boot
        });
        if follows {
            kept.pop();
        }
        kept.push(record);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_model::HostSample;

    #[test]
    fn the_last_of_each_step_stays_and_one_before_all() {
        let record = |boot, at_ns| SampleRecord {
            boot,
            sample: HostSample { at_ns, ..HostSample::default() },
            ..SampleRecord::default()
        };
        let all = [(1, 5), (1, 12), (1, 21), (1, 25), (1, 29), (1, 30), (2, 33), (2, 34), (2, 51)];
        let all: Vec<SampleRecord> = all.map(|(boot, at)| record(boot, at)).into();
        let kept = |begin, step| -> Vec<i64> {
            thin(all.clone(), begin, step).iter().map(|record| record.sample.at_ns).collect()
        };
        assert_eq!(kept(20, 10), [12, 29, 30, 34, 51], "a start of the host begins anew");
        assert_eq!(kept(20, 1), [12, 21, 25, 29, 30, 33, 34, 51]);
        assert_eq!(kept(0, 1000), [30, 51]);
        assert_eq!(kept(100, 10), [51], "what was last known");
        assert_eq!(kept(20, 0), kept(20, 1));
    }
}
