//! Results as a table, and beside others.

use super::fio::Case;
use super::page;
use super::words::{copies, files, op, p99, share, value};
use super::{Results, Row};
use crate::failure::Failure;
use std::path::Path;

/// Prints them.
pub fn table(results: &Results) {
    println!(
        "{:<10} {:>6} {:>7} {:>6} {:>10} {:<8} {:>9} {:>9} {:>8}",
        "OP", "BLOCK", "CLIENTS", "COPIES", "RATE", "", "OPS/S", "P99 MS", "OF LIMIT"
    );
    for row in &results.rows {
        let (rate, unit) = value(row);
        println!(
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
    results.visible.iter().for_each(|delay| println!("{}", delay.sentence()));
    println!("files: {}", files(results));
    if results.rows.iter().any(|r| r.share.is_some()) {
        println!(
            "limit: what the links allow when files lie evenly on all hosts; where they do not, a single client may pass it"
        );
    }
    println!("caches: {}", results.caches);
}

/// Writes results or a page.
pub fn write(file: &Path, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    std::fs::write(file, text).map_err(|e| Failure::system(format!("writing {}: {e}", file.display())))
}

fn load(file: &Path) -> Result<Results, Failure> {
    let wrong = |e: String| Failure::usage(format!("{} holds no results: {e}", file.display()));
    let text = std::fs::read(file).map_err(|e| wrong(e.to_string()))?;
    serde_json::from_slice(&text).map_err(|e| wrong(e.to_string()))
}

/// Two results, case by case.
pub fn compare(old: &Path, new: &Path, page: Option<&Path>) -> Result<i32, Failure> {
    let (old, new) = (load(old)?, load(new)?);
    println!(
        "{:<10} {:>6} {:>7} {:>6} {:>10} {:>10} {:>7}  UNIT",
        "OP", "BLOCK", "CLIENTS", "COPIES", "OLD", "NEW", "RATIO"
    );
    // Volumes with different copies may be compared; several numbers of copies in one result may not be mixed.
    let several = |r: &Results| r.rows.iter().any(|a| a.case.copies != r.rows[0].case.copies);
    let exact = several(&old) || several(&new);
    let same = |a: &Row, b: &Row| {
        let copies = if exact { a.case.copies } else { b.case.copies };
        Case { copies, ..a.case.clone() } == b.case
    };
    let pairs: Vec<(&Row, &Row)> =
        new.rows.iter().filter_map(|row| Some((old.rows.iter().find(|r| same(r, row))?, row))).collect();
    for (before, row) in &pairs {
        let ((a, unit), (b, _)) = (value(before), value(row));
        println!(
            "{:<10} {:>6} {:>7} {:>6} {a:>10.1} {b:>10.1} {:>7.2}  {unit}",
            op(row),
            row.case.bs,
            row.case.clients,
            if before.case.copies == row.case.copies {
                copies(row)
            } else {
                format!("{}, {}", copies(before), copies(row))
            },
            b / a
        );
    }
    let alone = old.rows.len() + new.rows.len() - 2 * pairs.len();
    if alone > 0 {
        println!("{alone} measurements stand in one of the two only");
    }
    for (name, results) in [("old", &old), ("new", &new)] {
        println!("{name}: {}", files(results));
        results.visible.iter().for_each(|delay| println!("{name}: {}", delay.sentence()));
    }
    if old.caches != new.caches {
        println!("the caches were not treated alike:\n  old: {}\n  new: {}", old.caches, new.caches);
    }
    if let Some(file) = page {
        write(file, page::compared(&old, &new, &pairs))?;
    }
    Ok(0)
}
