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
    // Each host asks for each name: of a large cluster the first names stand for all. All addresses of a name are told,
    // since a name server may give them in another order each time.
    ask: r#"for h; do [ $((n += 1)) -le 128 ] || break; echo "= $h"; getent ahostsv4 -- "$h"; done |
awk '$1 == "=" {h = $2; next} $2 == "STREAM" {print h "\t" $1}' | sort -u"#,
    waits: true,
    slow: true,
    root: None,
    codes: &[&DIFFERS, &MISSING],
    judge,
};

/// Addresses of a name.
type Addresses<'a> = BTreeSet<&'a str>;
/// A host, and names as it sees them.
type Book<'a> = (&'a Host, BTreeMap<&'a str, Addresses<'a>>);

fn judge(answers: &Answers) -> Vec<Finding> {
    let books: Vec<Book> = answers.of(CHECK.key).map(|(host, rows)| (host, book(rows))).collect();
    let names: BTreeSet<&str> = books.iter().flat_map(|(_, book)| book.keys().copied()).collect();
    names.into_iter().flat_map(|name| of_name(&books, name)).collect()
}

fn book(rows: &[Vec<String>]) -> BTreeMap<&str, Addresses<'_>> {
    let mut book: BTreeMap<&str, Addresses> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.len() == 2) {
        book.entry(&row[0]).or_default().insert(&row[1]);
    }
    book
}

fn of_name(books: &[Book], name: &str) -> Vec<Finding> {
    let asked = books.iter().map(|(host, book)| (*host, book.get(name).cloned().unwrap_or_default()));
    // Its own loopback address on the host itself is a finding of its own.
    let counts = |(host, at): &(&Host, Addresses)| host.name != name || !at.iter().any(|a| a.starts_with("127."));
    let Some(split) = split(asked.filter(counts)).filter(|split| !split.most.is_empty()) else { return Vec::new() };
    let (right, like) = (joined(&split.most), split.most_of());
    let add = format!("printf '%s %s\\n' {} {} >> /etc/hosts", word(split.most.first().unwrap_or(&"")), word(name));
    let finding = |(host, at): &(&Host, Addresses)| {
        let seen = format!("getent ahostsv4 {name}: {}", if at.is_empty() { "nothing".into() } else { joined(at) });
        let (found, line) = match at.is_empty() {
            true => (MISSING.on(host, format!("{name} has no address, and {right} on {like}"), seen), add.clone()),
            false => {
                let what = format!("{name} is {}, and {right} on {like}", joined(at));
                (DIFFERS.on(host, what, seen), format!("{} && {add}", without(name, "[^#]")))
            }
        };
        // Several addresses come from a name server: /etc/hosts is not where to mend that.
        if split.most.len() == 1 {
            found.mend(line)
        } else {
            found.look(format!("getent ahosts {}; cat /etc/hosts", word(name)))
        }
    };
    split.others.iter().map(finding).collect()
}

fn joined(addresses: &Addresses) -> String {
    addresses.iter().copied().collect::<Vec<_>>().join(" ")
}
