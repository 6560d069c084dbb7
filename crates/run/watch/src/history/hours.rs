//! The history of this host by the hour, as counts. `homing check` requests it.

use crate::history::SampleRecord;

/// The longest step, in nanoseconds: an hour and a half. A longer step contains hours without data.
const LONGEST_NS: i64 = 90 * 60 * 1_000_000_000;
/// The bytes of a block of the kernel.
const BLOCK: u64 = 512;

/// Returns a row for each step between two records of the same boot. Its first fields are the second in which the
/// step ended, and the microseconds in which some task waited for I/O. Then follow the requests and bytes of whole
/// disks, and the received bytes. A row with an unknown field is left out.
pub fn text(records: &[SampleRecord]) -> String {
    records.windows(2).filter_map(|two| row(&two[0], &two[1])).collect()
}

fn row(from: &SampleRecord, to: &SampleRecord) -> Option<String> {
    let (a, b) = (&from.sample, &to.sample);
    let is_step = (1..=LONGEST_NS).contains(&b.at_ns.saturating_sub(a.at_ns)) && from.boot == to.boot;
    let grown = |of: fn(&homing_model::HostSample) -> Option<u64>| of(b)?.checked_sub(of(a)?);
    let numbers = [
        grown(|s| s.io_some_us)?,
        grown(|s| s.disk_requests)?,
        grown(|s| s.disk_blocks)?.saturating_mul(BLOCK),
        grown(|s| Some(s.net.values().map(|(received, _)| received).sum()))?,
    ];
    let numbers = numbers.map(|n| n.to_string()).join("\t");
    is_step.then(|| format!("{}\t{numbers}\n", b.at_ns / 1_000_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_model::HostSample;
    use std::collections::BTreeMap;

    #[test]
    fn an_hour_has_what_grew_in_it_and_a_gap_or_a_start_has_no_row() {
        let record = |boot, minute: i64, n: u64| SampleRecord {
            boot,
            sample: HostSample {
                at_ns: minute * 60_000_000_000,
                io_some_us: Some(n * 1000),
                disk_requests: Some(n),
                disk_blocks: Some(8 * n),
                net: BTreeMap::from([("all".into(), (n, 7 * n))]),
                ..HostSample::default()
            },
            ..SampleRecord::default()
        };
        let records = [record(1, 0, 5), record(1, 60, 9), record(1, 151, 10), record(2, 211, 1), record(2, 271, 3)];
        assert_eq!(text(&records), "3600\t4000\t4\t16384\t4\n16260\t2000\t2\t8192\t2\n");
    }
}
