//! Load indices as columns, for users and for programs.

use homing_model::Indices;
use serde_json::{Value, json};

/// The names of the columns.
pub const NAMES: [&str; 9] = ["r1m", "ut", "pg", "mem", "stalled", "io", "bio", "rpc", "net"];
/// The widths of the columns where rows are printed one by one.
const WIDTHS: [usize; 9] = [5, 5, 6, 7, 7, 7, 7, 7, 7];

/// Returns the row of a host. `-` means unknown.
pub fn cells(i: &Indices) -> [String; 9] {
    let some = |value: Option<f64>, unit: &str| value.map_or("-".to_string(), |v| format!("{v:.1}{unit}"));
    let whole = |value: Option<f64>, unit: &str| value.map_or("-".to_string(), |v| format!("{v:.0}{unit}"));
    [
        some(i.r1m, ""),
        whole(i.ut, "%"),
        some(i.pg, ""),
        whole(i.mem, "M"),
        whole(i.stalled, "%"),
        whole(i.io, "k"),
        some(i.bio, ""),
        some(i.rpc, ""),
        some(i.net, "M"),
    ]
}

/// Joins cells to a line, each in its column.
pub fn line(cells: [impl AsRef<str>; 9]) -> String {
    cells.iter().zip(WIDTHS).map(|(cell, width)| format!(" {:>width$}", cell.as_ref())).collect()
}

/// Returns the same values as JSON. Unknown is null. The fields of `more` are added.
pub fn object(i: &Indices, more: Value) -> Value {
    let mut all = json!({
        "r1m": i.r1m, "ut_percent": i.ut, "pg_per_s": i.pg, "mem_mib": i.mem, "io_percent": i.stalled,
        "io_kb_per_s": i.io, "bio_per_s": i.bio, "rpc_per_s": i.rpc, "net_mb_per_s": i.net,
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
        all.extend(more);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_over_what_they_name() {
        let i = Indices { r1m: Some(0.25), mem: Some(1234.4), net: Some(10.0), ..Indices::default() };
        let (head, row) = (line(NAMES), line(cells(&i)));
        assert_eq!(head, "   r1m    ut     pg     mem stalled      io     bio     rpc     net");
        assert_eq!(row, "   0.2     -      -   1234M       -       -       -       -   10.0M");
        assert_eq!(object(&i, json!({"host": "n1"}))["host"], "n1");
    }
}
