//! Does every host resolve every name to the same address?

use super::own_name::without;
use crate::compare::split;
use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};
use std::collections::{BTreeMap, BTreeSet};

static DIFFERS: Code = Code {
    name: "HC-NAME-02",
    severity: Severity::Error,
    what: "a name resolves to a different address on some hosts",
    means: "hosts connect to the wrong server, or to none; bricks and exports seem lost from there",
    seen: "`getent ahostsv4 NAME` on every host",
    mend: "give the name the same address in /etc/hosts everywhere",
};
static MISSING: Code = Code {
    name: "HC-NAME-03",
    severity: Severity::Error,
    what: "some hosts cannot resolve a name that others can",
    means: "each program that connects by that name fails there",
    seen: "`getent ahostsv4 NAME` on every host",
    mend: "add the name to /etc/hosts there",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "resolve",
    // Each host resolves each name; in a large cluster the first 128 names represent all. All addresses of a name are
    // printed, because a name server may return them in another order each time. Servers of network file systems are
    // apart: a host resolves only those that it uses.
    script: r#"for h; do [ $((n += 1)) -le 128 ] || break; echo "= $h"; getent ahostsv4 -- "$h"; done |
awk '$1 == "=" {h = $2; next} $2 == "STREAM" {print h "\t" $1}' | sort -u
{ awk '{t = ""; for (i = 7; i < NF; i++) if ($i == "-") {t = $(i + 1); s = $(i + 2)}
  if (t ~ ENVIRON["NETWORK"] && t !~ ENVIRON["OWN"] && sub(/:.*/, "", s)) {sub(/^mfs(#|\\043)/, "", s); print s}}' /proc/self/mountinfo
awk -F= '$1 == "hostname" {print $2}' /var/lib/glusterd/vols/*/bricks/*; } | grep -E '^[A-Za-z0-9][A-Za-z0-9._-]*$' |
grep -vxE '[0-9.]+|localhost' | sort -u | head -64 |
while read -r h; do echo "= $h"; getent ahostsv4 -- "$h"; done |
awk -v OFS='\t' '$1 == "=" {h = $2; print h, "", "server"; next} $2 == "STREAM" {print h, $1, "server"}' | sort -u"#,
    waits: true,
    slow: true,
    root: None,
    codes: &[&DIFFERS, &MISSING],
    judge,
};

/// Addresses of a name.
type Addresses<'a> = BTreeSet<&'a str>;
/// A host, and names as it resolves them: those of the hosts of the check, and those of the servers that it uses.
struct NameResolution<'a> {
    host: &'a HostAnswers,
    hosts: BTreeMap<&'a str, Addresses<'a>>,
    servers: BTreeMap<&'a str, Addresses<'a>>,
}

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let books: Vec<NameResolution> = answers.of(CHECK.key).map(|(host, rows)| NameResolution::of(host, rows)).collect();
    let names: BTreeSet<&str> = books.iter().flat_map(NameResolution::names).collect();
    names.into_iter().flat_map(|name| of_name(&books, name)).collect()
}

impl<'a> NameResolution<'a> {
    fn of(host: &'a HostAnswers, rows: &'a [Vec<String>]) -> NameResolution<'a> {
        let mut book = NameResolution { host, hosts: BTreeMap::new(), servers: BTreeMap::new() };
        for row in rows {
            match row.as_slice() {
                [name, at] => drop(book.hosts.entry(name).or_default().insert(at)),
                // A server without an address has a row of its own.
                [name, at, _] => book.servers.entry(name).or_default().extend((!at.is_empty()).then_some(at.as_str())),
                _ => {}
            }
        }
        book
    }

    fn names(&self) -> impl Iterator<Item = &'a str> {
        self.hosts.keys().chain(self.servers.keys()).copied()
    }
}

fn of_name(books: &[NameResolution], name: &str) -> Vec<HostFinding> {
    // All hosts resolve the names of hosts.
    let of_host = books.iter().any(|book| book.hosts.contains_key(name));
    let asked = books.iter().filter_map(|book| {
        let at = if of_host { book.hosts.get(name).cloned() } else { Some(book.servers.get(name)?.clone()) };
        Some((book.host, at.unwrap_or_default()))
    });
    // A host's own loopback address is a finding of its own.
    let counts =
        |(host, at): &(&HostAnswers, Addresses)| host.name != name || !at.iter().any(|a| a.starts_with("127."));
    let Some(split) = split(asked.filter(counts)).filter(|split| !split.most.is_empty()) else { return Vec::new() };
    let (right, like) = (joined(&split.most), split.most_of());
    let add = format!("printf '%s %s\\n' {} {} >> /etc/hosts", word(split.most.first().unwrap_or(&"")), word(name));
    let finding = |(host, at): &(&HostAnswers, Addresses)| {
        let seen = format!("getent ahostsv4 {name}: {}", if at.is_empty() { "nothing".into() } else { joined(at) });
        let (found, line) = match at.is_empty() {
            true => (MISSING.on(host, format!("{name} has no address, but {right} on {like}"), seen), add.clone()),
            false => {
                let what = format!("{name} resolves to {}, but to {right} on {like}", joined(at));
                (DIFFERS.on(host, what, seen), format!("{} && {add}", without(name, "[^#]")))
            }
        };
        // Several addresses come from a name server: /etc/hosts is the wrong place to mend that.
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
