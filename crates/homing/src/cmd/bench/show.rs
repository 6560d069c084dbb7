//! Results as a table, beside others, and as a page.

use super::fio::Case;
use super::{Results, Row};
use crate::failure::Failure;
use std::fmt::Write;
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

fn load(file: &Path) -> Result<Results, Failure> {
    let wrong = |e: String| Failure::usage(format!("{} holds no results: {e}", file.display()));
    let text = std::fs::read(file).map_err(|e| wrong(e.to_string()))?;
    serde_json::from_slice(&text).map_err(|e| wrong(e.to_string()))
}

/// Two results, case by case.
pub fn compare(old: &Path, new: &Path) -> Result<i32, Failure> {
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
    for row in &new.rows {
        let Some(before) = old.rows.iter().find(|r| same(r, row)) else { continue };
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
    Ok(0)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// One page with a bar a case; needs nothing from elsewhere.
pub fn html(results: &Results) -> String {
    let mut page = format!(
        "<!doctype html><meta charset=utf-8><title>{t}</title><style>body{{font:14px sans-serif;margin:2em;max-width:60em}}\
         text{{font:12px sans-serif}}</style><h1>{t}</h1><p>{}; {} MB a host; {}</p>",
        escaped(&results.hosts.join(", ")),
        results.size / 1_000_000,
        escaped(&results.caches),
        t = escaped(if results.label.is_empty() { &results.path } else { &results.label }),
    );
    for (title, small) in [("MB/s", false), ("files/s", true)] {
        let rows: Vec<&Row> = results.rows.iter().filter(|r| r.case.op.is_small_files() == small).collect();
        page += &bars(title, &rows);
    }
    for delay in &results.visible {
        let _ = write!(
            page,
            "<p>{}: seen by another host after {:.1} ms (median), {:.1} ms at most</p>",
            escaped(&delay.change),
            delay.median_ms,
            delay.max_ms
        );
    }
    page
}

/// A bar a case, the operations apart; behind it what the links allow, where that is known.
fn bars(title: &str, rows: &[&Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let limit = |row: &Row| row.share.filter(|s| *s > 0.0).map(|s| value(row).0 / s);
    let most = rows.iter().map(|r| limit(r).unwrap_or(0.0).max(value(r).0)).fold(1e-9, f64::max);
    let (mut svg, mut y) = (String::new(), 4);
    for (i, row) in rows.iter().enumerate() {
        if i > 0 && rows[i - 1].case.op != row.case.op {
            y += 12;
        }
        let wide = |rate: f64| 400.0 * rate / most;
        let rate = value(row).0;
        let mut end = wide(rate);
        let mut text = format!("{rate:.1}");
        if let (Some(limit), Some(share)) = (limit(row), row.share) {
            end = end.max(wide(limit));
            text += &format!(" ({:.0} % of {limit:.1})", share * 100.0);
            let _ = write!(svg, r##"<rect x="250" y="{y}" width="{:.1}" height="16" fill="#dddddd"/>"##, wide(limit));
        }
        let _ = write!(
            svg,
            r##"<text x="240" y="{0}" text-anchor="end">{1}</text><rect x="250" y="{y}" width="{2:.1}" height="16" fill="#4477aa"/><text x="{3:.0}" y="{0}">{text}</text>"##,
            y + 12,
            escaped(&row.case.to_string()),
            wide(rate),
            258.0 + end,
        );
        y += 20;
    }
    let note = if rows.iter().any(|r| r.share.is_some()) { ", and in grey what the links allow" } else { "" };
    format!(r#"<h2>{title}{note}</h2><svg width="820" height="{}" role="img">{svg}</svg>"#, y + 4)
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
