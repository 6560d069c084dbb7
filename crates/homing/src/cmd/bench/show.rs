//! Results as a table, beside others, and as a page.

use super::fio::Case;
use super::plot::{self, Bar};
use super::{Results, Row};
use crate::failure::Failure;
use homing_report::escape;
use std::fmt::Write as _;
use std::path::Path;

fn value(row: &Row) -> (f64, &'static str) {
    if row.case.op.is_small_files() { (row.per_s, "files/s") } else { (row.mb_per_s, "MB/s") }
}

fn copies(row: &Row) -> String {
    row.case.copies.map_or("-".into(), |c| c.to_string())
}

fn op(row: &Row) -> String {
    format!("{:?}", row.case.op).to_lowercase()
}

/// Prints them.
pub fn table(results: &Results) {
    println!(
        "{:<10} {:>6} {:>7} {:>6} {:>10} {:<8} {:>9} {:>9} {:>8}",
        "OP", "BLOCK", "CLIENTS", "COPIES", "RATE", "", "OPS/S", "P99 MS", "OF LIMIT"
    );
    for row in &results.rows {
        let (rate, unit) = value(row);
        let share = row.share.map_or("-".into(), |s| format!("{:.0}%", s * 100.0));
        let p99 = if row.p99_ms > 0.0 { format!("{:.1}", row.p99_ms) } else { "-".into() };
        println!(
            "{:<10} {:>6} {:>7} {:>6} {rate:>10.1} {unit:<8} {:>9.0} {p99:>9} {share:>8}",
            op(row),
            row.case.bs,
            row.case.clients,
            copies(row),
            row.per_s,
        );
    }
    for delay in &results.visible {
        println!(
            "{} is seen by another host after {:.1} ms (median; longest {:.1} ms; {} lost)",
            delay.change, delay.median_ms, delay.max_ms, delay.lost
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
            copies(row),
            b / a
        );
    }
    for now in &new.visible {
        if let Some(before) = old.visible.iter().find(|d| d.change == now.change) {
            println!("{} seen after {:.1} ms, then {:.1} ms", now.change, before.median_ms, now.median_ms);
        }
    }
    if old.caches != new.caches {
        println!("the caches were not treated alike:\n  old: {}\n  new: {}", old.caches, new.caches);
    }
    if let Some(file) = page {
        write(file, compared(&old, &new, &pairs))?;
    }
    Ok(0)
}

fn about(results: &Results) -> Vec<String> {
    vec![
        format!("{}: {} MB each, {}", results.hosts.join(", "), results.size / 1_000_000, results.path),
        results.caches.clone(),
    ]
}

fn name(results: &Results) -> &str {
    if results.label.is_empty() { &results.path } else { &results.label }
}

/// Rates, then files, each on its own scale.
const SCALES: [(&str, bool); 2] = [("MB/s", false), ("files/s", true)];

/// One page with a bar a case, and behind it what the links allow, where that is known.
pub fn html(results: &Results) -> String {
    let mut body = String::new();
    for (unit, small) in SCALES {
        let rows: Vec<&Row> = results.rows.iter().filter(|r| r.case.op.is_small_files() == small).collect();
        let note = if rows.iter().any(|r| r.share.is_some()) { ", and in grey what the links allow" } else { "" };
        let bars: Vec<Bar> =
            rows.iter().enumerate().map(|(i, row)| bar(row, i > 0 && another(rows[i - 1], row))).collect();
        body += &plot::bars(&format!("{unit}{note}"), &bars);
    }
    for delay in &results.visible {
        let _ = write!(
            body,
            "<p>{}: seen by another host after {:.1} ms (median), {:.1} ms at most</p>",
            escape(&delay.change),
            delay.median_ms,
            delay.max_ms
        );
    }
    plot::page(name(results), &about(results), &body)
}

fn another(before: &Row, row: &Row) -> bool {
    before.case.op != row.case.op
}

fn bar(row: &Row, apart: bool) -> Bar {
    let (rate, _) = value(row);
    let limit = row.share.filter(|s| *s > 0.0).map(|s| rate / s);
    let text = match (limit, row.share) {
        (Some(limit), Some(share)) => format!("{rate:.1} ({:.0} % of {limit:.1})", share * 100.0),
        _ => format!("{rate:.1}"),
    };
    Bar { name: row.case.to_string(), value: rate, text, limit, colour: plot::DARK, apart }
}

/// One page with two bars a case.
fn compared(old: &Results, new: &Results, pairs: &[(&Row, &Row)]) -> String {
    let mut body = plot::legend(&[(plot::LIGHT, name(old)), (plot::DARK, name(new))]);
    for (unit, small) in SCALES {
        let rows: Vec<&(&Row, &Row)> = pairs.iter().filter(|(_, now)| now.case.op.is_small_files() == small).collect();
        let mut bars = Vec::new();
        for (i, (before, now)) in rows.iter().enumerate() {
            let apart = i > 0 && another(rows[i - 1].1, now);
            let (a, b) = (value(before).0, value(now).0);
            let one = |value, text, colour, apart| Bar {
                name: now.case.to_string(),
                value,
                text,
                limit: None,
                colour,
                apart,
            };
            bars.push(one(a, format!("{a:.1}"), plot::LIGHT, apart));
            bars.push(one(b, format!("{b:.1} ({:.2} times)", b / a), plot::DARK, false));
        }
        body += &plot::bars(unit, &bars);
    }
    let (mut lines, title) = (Vec::new(), format!("{} and {}", name(old), name(new)));
    for results in [old, new] {
        lines.push(format!("{}: {}", name(results), about(results)[0]));
    }
    lines.extend((old.caches == new.caches).then(|| new.caches.clone()));
    plot::page(&title, &lines, &body)
}

#[cfg(test)]
mod tests {
    use super::super::fio::Op;
    use super::*;

    #[test]
    fn the_page_shows_rates_and_limits() {
        let row = |op, clients, mb_per_s, share| Row {
            case: Case { op, bs: "1M".into(), clients, copies: Some(2) },
            mb_per_s,
            per_s: 812.0,
            p99_ms: 1.0,
            share,
        };
        let rows = vec![
            row(Op::Write, 1, 15.0, Some(0.9)),
            row(Op::Write, 4, 30.9, Some(0.46)),
            row(Op::Read, 1, 44.0, None),
            row(Op::Create, 1, 0.0, None),
        ];
        let results = Results { path: "/a<b".into(), rows, ..Results::default() };
        let page = html(&results);
        assert!(page.contains("a&lt;b") && !page.contains("a<b"), "{page}");
        assert!(page.contains("write 1M by 4 clients, 2 copies") && page.contains("30.9 (46 % of 67.2)"), "{page}");
        assert!(page.contains(">44.0<") && page.contains("<h2>files/s</h2>") && page.contains(">812.0<"), "{page}");
    }
}
