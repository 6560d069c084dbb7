//! Shows results as a table, alone or beside others.

use super::fio::Case;
use super::words::{copies, files, op, p99, share, value};
use super::{BenchResults, CaseResult, page};
use homing_model::Failure;
use std::fmt::Write;
use std::path::Path;

/// Returns results as a table for a terminal.
pub fn table(results: &BenchResults) -> String {
    let mut text = format!(
        "{:<10} {:>6} {:>7} {:>6} {:>10} {:<8} {:>9} {:>9} {:>8}\n",
        "OP", "BLOCK", "CLIENTS", "COPIES", "RATE", "", "OPS/S", "P99 MS", "OF LIMIT"
    );
    for row in &results.rows {
        let (rate, unit) = value(row);
        let _ = writeln!(
            text,
            "{:<10} {:>6} {:>7} {:>6} {rate:>10.1} {unit:<8} {:>9.0} {:>9} {:>8}",
            op(row),
            row.case.bs,
            row.case.clients,
            copies(row),
            row.per_s,
            p99(row),
            share(row),
        );
    }
    text.extend(results.visible.iter().map(|delay| format!("{}\n", delay.sentence())));
    let _ = writeln!(text, "files: {}", files(results));
    if results.rows.iter().any(|r| r.share.is_some()) {
        text += "limit: rate of the links if files are spread evenly over all hosts; if they are not, a single client may \
                 exceed it\n";
    }
    let _ = writeln!(text, "caches: {}", results.caches);
    text
}

/// Loads results from a file.
pub fn load(file: &Path) -> Result<BenchResults, Failure> {
    let wrong = |e: String| Failure::usage(format!("{} is not a file of results: {e}", file.display()));
    let text = std::fs::read(file).map_err(|e| wrong(e.to_string()))?;
    serde_json::from_slice(&text).map_err(|e| wrong(e.to_string()))
}

/// Returns the cases that are in both results, as the old row and the new one.
fn pairs<'a>(old: &'a BenchResults, new: &'a BenchResults) -> Vec<(&'a CaseResult, &'a CaseResult)> {
    // Volumes with different numbers of copies may be compared. If one result has several numbers of copies, rows
    // must agree in it.
    let several = |r: &BenchResults| r.rows.iter().any(|a| a.case.copies != r.rows[0].case.copies);
    let exact = several(old) || several(new);
    let same = |a: &CaseResult, b: &CaseResult| {
        let copies = if exact { a.case.copies } else { b.case.copies };
        Case { copies, ..a.case.clone() } == b.case
    };
    new.rows.iter().filter_map(|row| Some((old.rows.iter().find(|r| same(r, row))?, row))).collect()
}

/// Compares two results, case by case, for a terminal.
pub fn compared(old: &BenchResults, new: &BenchResults) -> String {
    let pairs = pairs(old, new);
    let mut text = format!(
        "{:<10} {:>6} {:>7} {:>6} {:>10} {:>10} {:>7}  UNIT\n",
        "OP", "BLOCK", "CLIENTS", "COPIES", "OLD", "NEW", "RATIO"
    );
    for (before, row) in &pairs {
        let ((a, unit), (b, _)) = (value(before), value(row));
        let alike = before.case.copies == row.case.copies;
        let copies = if alike { copies(row) } else { format!("{}, {}", copies(before), copies(row)) };
        let _ = writeln!(
            text,
            "{:<10} {:>6} {:>7} {copies:>6} {a:>10.1} {b:>10.1} {:>7.2}  {unit}",
            op(row),
            row.case.bs,
            row.case.clients,
            b / a
        );
    }
    let alone = old.rows.len() + new.rows.len() - 2 * pairs.len();
    if alone > 0 {
        let _ = writeln!(text, "{alone} measurements are in only one of the two");
    }
    for (name, results) in [("old", old), ("new", new)] {
        let _ = writeln!(text, "{name}: {}", files(results));
        text.extend(results.visible.iter().map(|delay| format!("{name}: {}\n", delay.sentence())));
    }
    if old.caches != new.caches {
        let _ = writeln!(text, "the two handled caches differently:\n  old: {}\n  new: {}", old.caches, new.caches);
    }
    text
}

/// Compares two results on one page.
pub fn compared_html(old: &BenchResults, new: &BenchResults) -> String {
    page::compared(old, new, &pairs(old, new))
}
