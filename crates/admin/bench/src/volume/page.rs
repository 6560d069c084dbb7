//! Shows results as a page that loads nothing from elsewhere: bars, and the numbers below them.

use super::fio::FioOperation;
use super::words::{copies, files, op, p99, share, value};
use super::{BenchResults, CaseResult};
use homing_report::chart::{self, Bar};

fn about(results: &BenchResults) -> Vec<String> {
    vec![format!("{}, from {}: {}", results.path, results.hosts.join(", "), files(results)), results.caches.clone()]
}

fn name(results: &BenchResults) -> &str {
    if results.label.is_empty() { &results.path } else { &results.label }
}

/// Charts, each with its own scale: beside reads of attributes from a cache, the bar of created files would be
/// invisible.
const SCALES: [(&str, &[FioOperation]); 5] = [
    ("Sequential, MB/s", &[FioOperation::Write, FioOperation::Read]),
    ("Random, MB/s", &[FioOperation::Randwrite, FioOperation::Randread]),
    ("Small files created, files/s", &[FioOperation::Create]),
    ("Small files listed with their attributes, files/s", &[FioOperation::Stat]),
    ("Small files removed, files/s", &[FioOperation::Unlink]),
];

fn title(what: &str, rows: &[&CaseResult]) -> String {
    let note =
        if rows.iter().any(|r| r.share.is_some()) { "; grey: limit of the links with files spread evenly" } else { "" };
    format!("{what}, all hosts together{note}")
}

/// Returns a page with a bar for each case, and behind it the limit of the links, where that is known.
pub fn html(results: &BenchResults) -> String {
    let mut body = String::new();
    for (what, ops) in SCALES {
        let rows: Vec<&CaseResult> = results.rows.iter().filter(|r| ops.contains(&r.case.op)).collect();
        let bars: Vec<Bar> =
            rows.iter().enumerate().map(|(i, row)| bar(row, i > 0 && another(rows[i - 1], row))).collect();
        body += &chart::bars(&title(what, &rows), &bars);
    }
    body += &delays(&[("", results)]);
    body += &numbers(results);
    chart::page(name(results), &about(results), &body)
}

fn another(before: &CaseResult, row: &CaseResult) -> bool {
    before.case.op != row.case.op
}

/// Computes the limit of the links from the share that was reached.
fn limit(row: &CaseResult) -> Option<f64> {
    row.share.filter(|s| *s > 0.0).map(|s| value(row).0 / s)
}

fn bar(row: &CaseResult, apart: bool) -> Bar {
    let (rate, _) = value(row);
    let text = match (limit(row), row.share) {
        (Some(limit), Some(share)) => format!("{rate:.1} ({:.0} % of {limit:.1})", share * 100.0),
        _ => format!("{rate:.1}"),
    };
    Bar { name: row.case.to_string(), value: rate, text, limit: limit(row), colour: chart::DARK, apart }
}

/// Lists how soon other hosts see a change.
fn delays(all: &[(&str, &BenchResults)]) -> String {
    let lines: Vec<String> = (all.iter())
        .flat_map(|(of, r)| r.visible.iter().map(move |delay| format!("{of}{}", delay.sentence())))
        .collect();
    if lines.is_empty() { String::new() } else { chart::list("How soon another host sees a change", &lines) }
}

fn numbers(results: &BenchResults) -> String {
    let head = ["operation", "block", "clients", "copies", "rate", "", "ops/s", "p99, ms", "of the limit"];
    let rows = results.rows.iter().map(|row| {
        let (rate, unit) = value(row);
        let clients = row.case.clients.to_string();
        let (rate, ops) = (format!("{rate:.1}"), format!("{:.0}", row.per_s));
        vec![op(row), row.case.bs.clone(), clients, copies(row), rate, unit.into(), ops, p99(row), share(row)]
    });
    chart::table("In numbers", &head, &rows.collect::<Vec<_>>())
}

/// Returns a page with two bars for each case.
pub fn compared(old: &BenchResults, new: &BenchResults, pairs: &[(&CaseResult, &CaseResult)]) -> String {
    let alike = name(old) == name(new);
    let called = |which: &str, r| if alike { format!("{which} {}", name(r)) } else { name(r).into() };
    let (older, newer) = (called("old", old), called("new", new));
    let mut body = chart::legend(&[(chart::LIGHT, &older), (chart::DARK, &newer)]);
    for (what, ops) in SCALES {
        let rows: Vec<&(&CaseResult, &CaseResult)> =
            pairs.iter().filter(|(_, now)| ops.contains(&now.case.op)).collect();
        let mut bars = Vec::new();
        for (i, (before, now)) in rows.iter().enumerate() {
            let apart = i > 0 && another(rows[i - 1].1, now);
            let (a, b) = (value(before).0, value(now).0);
            // Compared volumes may have different numbers of copies: then only the colours of the bars name the
            // volume.
            let mut case = now.case.clone();
            case.copies = case.copies.filter(|_| before.case.copies == now.case.copies);
            let one = |row: &CaseResult, text, colour, apart| Bar {
                name: case.to_string(),
                value: value(row).0,
                text,
                limit: limit(row),
                colour,
                apart,
            };
            bars.push(one(before, format!("{a:.1}"), chart::LIGHT, apart));
            bars.push(one(now, format!("{b:.1} ({:.2} times)", b / a), chart::DARK, false));
        }
        let all: Vec<&CaseResult> = rows.iter().flat_map(|(before, now)| [*before, *now]).collect();
        body += &chart::bars(&title(what, &all), &bars);
    }
    body += &delays(&[(&format!("{older}: "), old), (&format!("{newer}: "), new)]);
    let mut lines = Vec::new();
    for (of, results) in [(&older, old), (&newer, new)] {
        let mut own = about(results);
        own.truncate(if old.caches == new.caches { 1 } else { 2 });
        lines.extend(own.iter().map(|line| format!("{of}: {line}")));
    }
    lines.extend((old.caches == new.caches).then(|| new.caches.clone()));
    chart::page(&format!("{older} and {newer}"), &lines, &body)
}

#[cfg(test)]
mod tests {
    use super::super::fio::Case;
    use super::super::visible::Delay;
    use super::*;

    fn row(op: FioOperation, clients: usize, mb_per_s: f64, share: Option<f64>) -> CaseResult {
        let case = Case { op, bs: "1M".into(), clients, copies: Some(2) };
        CaseResult { case, mb_per_s, per_s: 812.0, p99_ms: 1.0, share }
    }

    fn results(path: &str) -> BenchResults {
        let rows = vec![
            row(FioOperation::Write, 1, 15.0, Some(0.9)),
            row(FioOperation::Write, 4, 30.9, Some(0.46)),
            row(FioOperation::Read, 1, 44.0, None),
            row(FioOperation::Create, 1, 0.0, None),
        ];
        let seen = Delay { change: "new file".into(), median_ms: Some(1.5), max_ms: Some(3.0), lost: 0 };
        let (stripe, hosts) = (Some(16 << 20), vec!["n1".into(), "n2".into()]);
        let caches = "caches are dropped".into();
        let (size, in_files, visible) = (128_000_000, 1, vec![seen]);
        BenchResults { path: path.into(), hosts, caches, stripe, size, in_files, rows, visible, label: String::new() }
    }

    #[test]
    fn the_page_shows_rates_limits_caches_and_delays() {
        let page = html(&results("/a<b"));
        assert!(page.contains("a&lt;b") && !page.contains("a<b"), "{page}");
        assert!(page.contains("write 1M by 4 clients, 2 copies") && page.contains("30.9 (46 % of 67.2)"), "{page}");
        assert!(
            page.contains("Sequential, MB/s, all hosts together; grey: limit of the links with files spread evenly"),
            "{page}"
        );
        assert!(
            page.contains(">44.0<") && page.contains("<h2>Small files created, files/s, all hosts together</h2>"),
            "{page}"
        );
        assert!(page.contains("<td>create</td>") && page.contains("<td>812.0</td><td>files/s</td>"), "{page}");
        assert!(page.contains("new file is seen by another host after 1.5 ms (median; longest 3.0 ms)"), "{page}");
        assert!(page.contains("128 MB of each host in 1 file, cut by the volume into pieces of 16 MiB"), "{page}");
        assert!(!page.contains("<h2>Random"), "what was not measured has no title: {page}");
        assert!(page.contains("n1, n2") && page.contains("<p>caches are dropped</p>"), "{page}");
    }

    #[test]
    fn two_results_of_one_path_are_told_apart() {
        let (old, mut new) = (results("/data"), results("/data"));
        new.rows[0].mb_per_s = 30.0;
        new.rows.iter_mut().for_each(|r| r.case.copies = Some(1));
        let pairs: Vec<(&CaseResult, &CaseResult)> = old.rows.iter().zip(&new.rows).collect();
        let page = compared(&old, &new, &pairs);
        assert!(page.contains("old /data and new /data"), "{page}");
        assert!(page.contains("30.0 (2.00 times)") && page.contains(">write 1M by 1 client<"), "{page}");
        assert!(page.contains("old /data: new file is seen") && page.contains("new /data: new file is seen"), "{page}");
        assert_eq!(page.matches("caches are dropped").count(), 1, "{page}");
        new.caches = "nothing was dropped".into();
        let pairs: Vec<(&CaseResult, &CaseResult)> = old.rows.iter().zip(&new.rows).collect();
        let page = compared(&old, &new, &pairs);
        assert!(page.contains("old /data: caches are dropped") && page.contains("new /data: nothing was dropped"));
    }
}
