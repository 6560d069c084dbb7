//! What should be the same on all hosts: a row of a table each.

use crate::compare::split;
use crate::{Answers, Code, Finding};

/// Something that hosts say in one value.
pub(crate) struct Row {
    /// The name before its value.
    pub name: &'static str,
    /// What it is when hosts differ.
    pub code: &'static Code,
    /// For a sentence.
    pub noun: &'static str,
    /// From the value that most have to the command that gives it to the others.
    pub mend: Option<fn(&str) -> String>,
    /// The command that tells more, where there is no such.
    pub look: &'static str,
}

/// A finding for each host that differs. Hosts that have no value are left out: what is not installed is not another version.
pub(crate) fn differing(answers: &Answers, key: &str, rows: &[Row]) -> Vec<Finding> {
    let of_row = |row: &Row| {
        let split = split(answers.value(key, row.name))?;
        let (right, like) = (split.most, split.most_of());
        let tell = |(host, own): (&crate::Host, &str)| {
            let found = row.code.on(
                host,
                format!("{}: {own}, and {right} on {like}", row.noun),
                row.code.seen.replace('`', ""),
            );
            match row.mend {
                Some(mend) => found.mend(mend(right)),
                None => found.look(row.look),
            }
        };
        Some(split.others.into_iter().map(tell).collect::<Vec<_>>())
    };
    rows.iter().filter_map(of_row).flatten().collect()
}
