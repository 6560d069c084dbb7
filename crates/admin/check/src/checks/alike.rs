//! Compares values that should be the same on all hosts: a row of a table for each.

use crate::compare::split;
use crate::{Answers, Code, HostFinding};

/// A value that hosts report.
pub(crate) struct ValueRow {
    /// The name of its row.
    pub name: &'static str,
    /// The code of a difference.
    pub code: &'static Code,
    /// Its name in a sentence.
    pub noun: &'static str,
    /// Returns the command that sets the others to the value of most hosts.
    pub mend: Option<fn(&str) -> String>,
    /// The command that shows more, if there is none that sets the value.
    pub look: &'static str,
}

/// Returns a finding for each host that differs. Hosts without a value are left out: a program that is not installed
/// has no other version.
pub(crate) fn differing(answers: &Answers, key: &str, rows: &[ValueRow]) -> Vec<HostFinding> {
    let of_row = |row: &ValueRow| {
        let split = split(answers.value(key, row.name))?;
        let (right, like) = (split.most, split.most_of());
        let finding = |(host, own): (&crate::HostAnswers, &str)| {
            let found = row.code.on(
                host,
                format!("{}: {own}, but {right} on {like}", row.noun),
                row.code.seen.replace('`', ""),
            );
            match row.mend {
                Some(mend) => found.mend(mend(right)),
                None => found.look(row.look),
            }
        };
        Some(split.others.into_iter().map(finding).collect::<Vec<_>>())
    };
    rows.iter().filter_map(of_row).flatten().collect()
}
