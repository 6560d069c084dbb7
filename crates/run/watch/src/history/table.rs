//! Histories as rows: the rate of each counter between two records, and the values at the end.

use crate::history::{SampleRecord, columns};
use homing_model::fit::aligned;
use homing_model::text::shown;
use homing_model::{Indices, document};
use serde_json::{Value, json};

/// A row: its host, the time of its end (ns since 1970), and the seconds that its rates cover, if it has any.
struct HistoryRow<'r> {
    host: &'r str,
    at_ns: i64,
    over: Option<f64>,
    indices: Indices,
}

/// Returns the rows of a host. Its first record only begins the first step, unless it is the only record.
fn rows<'r>(host: &'r str, records: &'r [SampleRecord]) -> Vec<HistoryRow<'r>> {
    let row = |before: Option<&SampleRecord>, record: &SampleRecord| {
        let since = before.and_then(|before| record.since(before));
        let (indices, over) = since.map_or_else(|| (at_once(record), None), |(indices, over)| (indices, Some(over)));
        HistoryRow { host, at_ns: record.sample.at_ns, over, indices }
    };
    match records {
        [only] => vec![row(None, only)],
        _ => records.windows(2).map(|two| row(Some(&two[0]), &two[1])).collect(),
    }
}

/// Returns the values of a record that are no rates.
fn at_once(record: &SampleRecord) -> Indices {
    let indices = record.sample.since(&record.sample);
    Indices { r1m: indices.r1m, mem: indices.mem, ..Indices::default() }
}

/// Cells of a row: time, host and the load indices.
const CELLS: usize = 2 + columns::COUNT;

/// Returns a table of all hosts, sorted by time.
pub fn text(hosts: &[(&String, &Vec<SampleRecord>)], columns: Option<usize>) -> String {
    let mut all: Vec<HistoryRow> = hosts.iter().flat_map(|(host, records)| rows(host, records)).collect();
    all.sort_by_key(|row| row.at_ns);
    let head = row_of(["TIME", "HOST"].map(String::from), columns::names());
    let row = |row: &HistoryRow| row_of([minute(row.at_ns), shown(row.host)], columns::cells(&row.indices));
    let cells: Vec<[String; CELLS]> = std::iter::once(head).chain(all.iter().map(row)).collect();
    if all.is_empty() { String::new() } else { aligned(&cells, 2..CELLS, columns) }
}

fn row_of(first: [String; 2], rest: [String; columns::COUNT]) -> [String; CELLS] {
    let mut all = first.into_iter().chain(rest);
    std::array::from_fn(|_| all.next().unwrap_or_default())
}

fn minute(ns: i64) -> String {
    let Ok(time) = jiff::Timestamp::from_nanosecond(i128::from(ns)) else { return "unknown".into() };
    time.to_zoned(jiff::tz::TimeZone::system()).strftime("%m-%d %H:%M").to_string()
}

/// Returns the same rows as JSON. An unknown value is null.
pub fn json(hosts: &[(&String, &Vec<SampleRecord>)]) -> String {
    let row = |row: HistoryRow| columns::object(&row.indices, json!({"at_ns": row.at_ns, "over_s": row.over}));
    let of = |(host, records): &(&String, &Vec<SampleRecord>)| {
        let steps: Vec<Value> = rows(host, records).into_iter().map(row).collect();
        json!({"host": host, "steps": steps})
    };
    document::line(json!({"hosts": hosts.iter().map(of).collect::<Vec<_>>()}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_model::HostSample;

    fn record(boot: u64, minute: i64, calls: u64) -> SampleRecord {
        let sample = HostSample {
            at_ns: minute * 60_000_000_000,
            r1m: Some(1.5),
            nfsd_calls: Some(calls),
            ..HostSample::default()
        };
        SampleRecord { boot, sample, ..SampleRecord::default() }
    }

    #[test]
    fn a_step_has_the_rate_over_its_time_and_none_over_a_start_of_the_host() {
        let (host, records) = ("n1".to_string(), vec![record(1, 0, 0), record(1, 2, 240), record(2, 3, 5)]);
        let told: Value = serde_json::from_str(&json(&[(&host, &records)])).unwrap();
        let steps = told["hosts"][0]["steps"].as_array().unwrap();
        assert_eq!((steps.len(), &steps[0]["rpc_per_s"], &steps[0]["over_s"]), (2, &json!(2.0), &json!(120.0)));
        assert_eq!(
            (&steps[1]["rpc_per_s"], &steps[1]["r1m"], &steps[1]["over_s"]),
            (&json!(null), &json!(1.5), &json!(null))
        );
    }

    #[test]
    fn rows_of_hosts_stand_by_time_and_one_record_alone_has_no_rates() {
        let (a, b) = ("a".to_string(), "b".to_string());
        let (of_a, of_b) = (vec![record(1, 0, 0), record(1, 1, 6), record(1, 3, 6)], vec![record(1, 2, 0)]);
        let text = text(&[(&a, &of_a), (&b, &of_b)], None);
        let hosts: Vec<&str> = text.lines().skip(1).filter_map(|line| line.split_whitespace().nth(2)).collect();
        assert_eq!(hosts, ["a", "b", "a"], "{text}");
        let of_b: Vec<&str> = text.lines().nth(2).unwrap().split_whitespace().skip(2).collect();
        assert_eq!(of_b, ["b", "1.5", "-", "-", "-", "-", "-", "-", "-", "-"], "{text}");
        assert_eq!(super::text(&[], None), "");
    }
}
