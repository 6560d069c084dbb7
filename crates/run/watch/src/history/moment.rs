//! Finds the state of a host at a moment in its history.

use crate::history::record::SampleRecord;
use homing_model::Indices;

/// The state of a host at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moment {
    /// The step that contains the moment: its rates, and the values at its end.
    Seen {
        /// The rates and values.
        indices: Indices,
        /// The processors of the host, calculated from their total time.
        cores: Option<u32>,
    },
    /// No data: the host was off, or no process sampled.
    Dark {
        /// The time of the last record before, ns since 1970, if there is one.
        since_ns: Option<i64>,
    },
}

/// Returns the state at a moment, `ns` since 1970, from records, the oldest first. A step longer than `longest_ns`
/// counts as no data: its rates are true of the whole step, and of no moment in it.
pub fn at(records: &[SampleRecord], ns: i64, longest_ns: i64) -> Moment {
    let next = records.partition_point(|record| record.sample.at_ns < ns);
    let before = next.checked_sub(1).map(|at| &records[at]);
    let dark = Moment::Dark { since_ns: before.map(|record| record.sample.at_ns) };
    // After the last record, the step that it ends remains valid until the next record is overdue.
    let (from, to) = match (before, records.get(next)) {
        (Some(from), Some(to)) => (from, to),
        (Some(last), None) if ns.saturating_sub(last.sample.at_ns) <= longest_ns && next > 1 => {
            (&records[next - 2], last)
        }
        _ => return dark,
    };
    let is_short = to.sample.at_ns.saturating_sub(from.sample.at_ns) <= longest_ns;
    match to.since(from).filter(|_| is_short) {
        Some((indices, seconds)) => Moment::Seen { indices, cores: cores(from, to, seconds) },
        None => dark,
    }
}

fn cores(from: &SampleRecord, to: &SampleRecord, seconds: f64) -> Option<u32> {
    let counted = to.sample.cpu_total_us?.saturating_sub(from.sample.cpu_total_us?);
    Some((counted as f64 / 1e6 / seconds).round() as u32).filter(|cores| *cores > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_model::HostSample;

    const S: i64 = 1_000_000_000;

    fn record(boot: u64, at_s: i64, busy_s: u64) -> SampleRecord {
        let counted = |seconds: u64| Some(seconds * 1_000_000);
        // Four processors.
        let (all, at) = (4 * at_s as u64, at_s as u64);
        let sample = HostSample {
            at_ns: at_s * S,
            cpu_total_us: counted(all),
            cpu_idle_us: counted(all - busy_s),
            mem_available: Some(at << 20),
            ..HostSample::default()
        };
        SampleRecord { boot, sample, ..SampleRecord::default() }
    }

    #[test]
    fn a_moment_is_in_the_step_that_ends_after_it() {
        let records = [record(1, 60, 0), record(1, 120, 60), record(1, 180, 60)];
        let seen = |at_s: i64| match at(&records, at_s * S, 130 * S) {
            Moment::Seen { indices, cores } => Some((indices.ut, indices.mem, cores)),
            Moment::Dark { .. } => None,
        };
        assert_eq!(seen(61), Some((Some(25.0), Some(120.0), Some(4))));
        assert_eq!((seen(120), seen(121)), (seen(61), Some((Some(0.0), Some(180.0), Some(4)))));
        // The last step remains valid until another two are overdue.
        assert_eq!((seen(310), seen(311)), (seen(121), None));
        assert_eq!(at(&records, 60 * S, 130 * S), Moment::Dark { since_ns: None });
    }

    #[test]
    fn nothing_is_known_between_samples_that_are_far_apart_and_over_a_start_of_the_host() {
        let records = [record(1, 60, 0), record(1, 120, 0), record(1, 900, 0), record(2, 960, 0), record(2, 1020, 0)];
        let dark = |at_s: i64| match at(&records, at_s * S, 130 * S) {
            Moment::Seen { .. } => None,
            Moment::Dark { since_ns } => since_ns.map(|ns| ns / S),
        };
        assert_eq!([100, 130, 500, 930, 1000].map(dark), [None, Some(120), Some(120), Some(900), None]);
    }
}
