//! The time of jobs in each state: bhist.

use crate::jobs::{self, JobReport as Row};
use jiff::tz::TimeZone;

/// Returns a table of the seconds of jobs in each state.
pub fn table(rows: &[Row], now: i64) -> String {
    let mut out = String::from("Summary of time in seconds spent in various states:\n");
    out += &format!(
        "{:<7} {:<7} {:<9} {:<7} {:<7} {:<7} {:<7} {:<7} {:<7} TOTAL\n",
        "JOBID", "USER", "JOB_NAME", "PEND", "PSUSP", "RUN", "USUSP", "SSUSP", "UNKWN"
    );
    for row in rows {
        let [pend, run] = spent(row, now);
        let name = jobs::cut_left(&row.shown_name(), 9);
        out += &format!(
            "{:<7} {:<7} {name:<9} {pend:<7} {:<7} {run:<7} {:<7} {:<7} {:<7} {}\n",
            row.shown_id(),
            jobs::cut_left(&row.user, 7),
            0,
            0,
            0,
            0,
            pend + run
        );
    }
    out
}

/// Returns the seconds pending and running. Suspensions are not recorded: they count as the state that they
/// interrupted.
fn spent(row: &Row, now: i64) -> [i64; 2] {
    let end = row.end_ns.unwrap_or(now);
    let start = row.start_ns.unwrap_or(end);
    [(start - row.submit_ns).max(0) / 1_000_000_000, (end - start).max(0) / 1_000_000_000]
}

/// Returns the same for one job, as a summary until its end.
pub fn summary(row: &Row, now: i64, zone: &TimeZone) -> String {
    let [pend, run] = spent(row, now);
    format!(
        "Summary of time in seconds spent in various states by  {}\n  PEND     PSUSP    RUN      USUSP    SSUSP    UNKWN    TOTAL\n  \
         {pend:<8} {:<8} {run:<8} {:<8} {:<8} {:<8} {}\n",
        crate::time::long(row.end_ns.unwrap_or(now), zone),
        0,
        0,
        0,
        0,
        pend + run
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_not_begun_is_pending_until_now_and_what_has_ended_stands_still() {
        let second = 1_000_000_000;
        let row = |start: Option<i64>, end: Option<i64>| Row {
            submit_ns: 0,
            start_ns: start.map(|s| s * second),
            end_ns: end.map(|s| s * second),
            ..Row::default()
        };
        assert_eq!(spent(&row(None, None), 7 * second), [7, 0]);
        assert_eq!(spent(&row(Some(2), None), 7 * second), [2, 5]);
        assert_eq!(spent(&row(Some(2), Some(3)), 7 * second), [2, 1]);
        let until = |row: &Row| summary(row, 7 * second, &TimeZone::UTC).lines().next().unwrap().to_string();
        assert!(until(&row(Some(2), None)).ends_with(" by  Thu Jan  1 00:00:07"));
        assert!(until(&row(Some(2), Some(3))).ends_with(" by  Thu Jan  1 00:00:03"));
    }
}
