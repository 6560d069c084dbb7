//! Load indices as columns, for users and for programs.

use homing_model::Indices;
use serde_json::{Map, Value, json};

/// A load index: a column of tables, and a member of JSON documents.
pub struct IndexColumn {
    /// The name above the column.
    name: &'static str,
    /// The width of the column where rows are printed one by one.
    width: usize,
    /// The name of the member.
    key: &'static str,
    value: fn(&Indices) -> Option<f64>,
    /// Digits after the point, and the unit of a cell. The key names the unit of the member.
    digits: usize,
    unit: &'static str,
}

const fn column(
    name: &'static str,
    width: usize,
    key: &'static str,
    value: fn(&Indices) -> Option<f64>,
    digits: usize,
    unit: &'static str,
) -> IndexColumn {
    IndexColumn { name, width, key, value, digits, unit }
}

/// All columns, in their order. docs/formats.md explains each member.
const COLUMNS: &[IndexColumn] = &[
    column("r1m", 5, "r1m", |i| i.r1m, 1, ""),
    column("ut", 5, "ut_percent", |i| i.ut, 0, "%"),
    column("pg", 6, "pg_per_s", |i| i.pg, 1, ""),
    column("mem", 7, "mem_mib", |i| i.mem, 0, "M"),
    column("stalled", 7, "io_percent", |i| i.stalled, 0, "%"),
    column("io", 7, "io_kb_per_s", |i| i.io, 0, "k"),
    column("bio", 7, "bio_per_s", |i| i.bio, 1, ""),
    column("rpc", 7, "rpc_per_s", |i| i.rpc, 1, ""),
    column("net", 7, "net_mb_per_s", |i| i.net, 1, "M"),
];

/// The number of columns.
pub const COUNT: usize = COLUMNS.len();

/// Returns the names above the columns.
pub fn names() -> [String; COUNT] {
    std::array::from_fn(|at| COLUMNS[at].name.to_string())
}

/// Returns the row of a host. `-` means unknown.
pub fn cells(i: &Indices) -> [String; COUNT] {
    std::array::from_fn(|at| {
        let IndexColumn { value, digits, unit, .. } = &COLUMNS[at];
        value(i).map_or("-".to_string(), |number| format!("{number:.digits$}{unit}"))
    })
}

/// Joins cells to a line, each in its column.
pub fn line(cells: &[String; COUNT]) -> String {
    cells.iter().zip(COLUMNS).map(|(cell, column)| format!(" {cell:>0$}", column.width)).collect()
}

/// Returns the same values as JSON. Unknown is null. The fields of `more` are added.
pub fn object(i: &Indices, more: Value) -> Value {
    let mut all: Map<String, Value> =
        COLUMNS.iter().map(|column| (column.key.to_string(), json!((column.value)(i)))).collect();
    if let Value::Object(more) = more {
        all.extend(more);
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_above_their_columns() {
        let i = Indices { r1m: Some(0.25), mem: Some(1234.4), net: Some(10.0), ..Indices::default() };
        let (head, row) = (line(&names()), line(&cells(&i)));
        assert_eq!(head, "   r1m    ut     pg     mem stalled      io     bio     rpc     net");
        assert_eq!(row, "   0.2     -      -   1234M       -       -       -       -   10.0M");
        assert_eq!(object(&i, json!({"host": "n1"}))["host"], "n1");
    }
}
