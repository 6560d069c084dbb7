//! Does every host resolve every name alike?

use super::own_name::without;
use crate::compare::split;
use crate::finding::word;
use crate::{Answers, Check, Code, Finding, Host, Severity};
use std::collections::{BTreeMap, BTreeSet};

static DIFFERS: Code = Code {
    name: "HC-NAME-02",
    severity: Severity::Error,
    what: "a name is another address on some hosts",
    means: "hosts that should talk to one server talk to two, or to none; bricks and exports look lost from there",
    seen: "`getent ahostsv4 NAME` on every host",
    mend: "give the name the same address in /etc/hosts everywhere",
};
static MISSING: Code = Code {
    name: "HC-NAME-03",
    severity: Severity::Error,
    what: "some hosts cannot resolve a name that others can",
    means: "whatever connects by that name fails there",
    seen: "`getent ahostsv4 NAME` on every host",
    mend: "add the name to /etc/hosts there",
};

pub(crate) static CHECK: Check = Check {
    key: "resolve",
    // Each host asks for each name: of a large cluster the first names stand for all.
    ask: r#"for h; do [ $((n += 1)) -le 128 ] || break; echo "= $h"; getent ahostsv4 -- "$h"; done |
awk '$1 == "=" {h = $2; n = 0; next} $2 == "STREAM" && !n++ {print h "\t" $1}'"#,
    waits: true,
    slow: true,
    root: None,
    codes: &[&DIFFERS, &MISSING],
    judge,
};

/// A host, and the addresses of names as it sees them.
type Book<'a> = (&'a Host, BTreeMap<&'a str, &'a str>);

fn judge(answers: &Answers) -> Vec<Finding> {
    let books: Vec<Book> =
        answers.of(CHECK.key).map(|(host, rows)| (host, rows.iter().filter_map(|row| pair(row)).collect())).collect();
    let names: BTreeSet<&str> = books.iter().flat_map(|(_, book)| book.keys().copied()).collect();
    names.into_iter().flat_map(|name| of_name(&books, name)).collect()
}

fn pair(row: &[String]) -> Option<(&str, &str)> {
    Some((row.first()?.as_str(), row.get(1)?.as_str()))
}

fn of_name(books: &[Book], name: &str) -> Vec<Finding> {
    let asked = books.iter().map(|(host, book)| (*host, book.get(name).copied()));
    // Its own loopback address on the host itself is a finding of its own.
    let counts = |(host, at): &(&Host, Option<&str>)| host.name != name || at.is_none_or(|a| !a.starts_with("127."));
    let Some(split) = split(asked.filter(counts)) else { return Vec::new() };
    let (Some(right), like) = (split.most, split.most_of()) else { return Vec::new() };
    let add = format!("printf '%s %s\\n' {} {} >> /etc/hosts", word(right), word(name));
    let finding = |(host, at): (&Host, Option<&str>)| match at {
        Some(at) => DIFFERS
            .on(host, format!("{name} is {at}, and {right} on {like}"), format!("getent ahostsv4 {name}: {at}"))
            .mend(format!("{} && {add}", without(name, "[^#]"))),
        None => MISSING
            .on(
                host,
                format!("{name} has no address, and {right} on {like}"),
                format!("getent ahostsv4 {name}: nothing"),
            )
            .mend(add.clone()),
    };
    split.others.into_iter().map(finding).collect()
}
