//! Words for measurements that both the table and the page use.

use super::{BenchResults, CaseResult};
use homing_model::units::count;

/// Returns the measured rate with its unit.
pub fn value(row: &CaseResult) -> (f64, &'static str) {
    if row.case.op.is_small_files() { (row.per_s, "files/s") } else { (row.mb_per_s, "MB/s") }
}

pub fn copies(row: &CaseResult) -> String {
    row.case.copies.map_or("-".into(), |c| c.to_string())
}

pub fn op(row: &CaseResult) -> String {
    row.case.op.name().into()
}

/// Returns the 99th percentile of the latency, milliseconds.
pub fn p99(row: &CaseResult) -> String {
    if row.p99_ms > 0.0 { format!("{:.1}", row.p99_ms) } else { "-".into() }
}

/// Returns the share of the theoretical limit.
pub fn share(row: &CaseResult) -> String {
    row.share.map_or("-".into(), |s| format!("{:.0}%", s * 100.0))
}

/// Describes the files that the bytes of a host were cut into.
pub fn files(results: &BenchResults) -> String {
    let megabytes = results.size / 1_000_000;
    let cut = match results.stripe {
        Some(bytes) => format!(", cut by the volume into pieces of {} MiB", bytes >> 20),
        None => String::new(),
    };
    match results.in_files {
        0 => format!("{megabytes} MB of each host{cut}"),
        n => format!("{megabytes} MB of each host in {}{cut}", count(u64::from(n), "file")),
    }
}
