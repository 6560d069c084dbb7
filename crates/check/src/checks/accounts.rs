//! Are users and groups the same on all hosts?

use crate::compare::split;
use crate::finding::word;
use crate::{Answers, Check, Code, Finding, Host, Severity};
use std::collections::{BTreeMap, BTreeSet};

static UID: Code = Code {
    name: "HC-USER-01",
    severity: Severity::Error,
    what: "a user has another number on some hosts",
    means: "on shared file systems the user's files belong to somebody else there",
    seen: "`getent passwd`",
    mend: "usermod -u NUMBER USER, and chown what belonged to the old number",
};
static GID: Code = Code {
    name: "HC-USER-02",
    severity: Severity::Error,
    what: "a group has another number on some hosts",
    means: "on shared file systems the group's files belong to another group there",
    seen: "`getent group`",
    mend: "groupmod -g NUMBER GROUP, and chgrp what belonged to the old number",
};
static MISSING: Code = Code {
    name: "HC-USER-03",
    severity: Severity::Warning,
    what: "a user is missing on some hosts",
    means: "the user's jobs fail there, and files show a number instead of a name",
    seen: "`getent passwd`",
    mend: "useradd with the numbers of the other hosts",
};
static TWICE: Code = Code {
    name: "HC-USER-04",
    severity: Severity::Error,
    what: "two users have one number",
    means: "each may read, change and kill what is the other's",
    seen: "`getent passwd`",
    mend: "usermod -u with a number that is free",
};
static MEMBERS: Code = Code {
    name: "HC-USER-05",
    severity: Severity::Warning,
    what: "a group has other members on some hosts",
    means: "a user may do on one host what is refused on the next",
    seen: "`getent group`",
    mend: "gpasswd -M MEMBERS GROUP",
};

pub(crate) static CHECK: Check = Check {
    key: "accounts",
    ask: r#"getent passwd | awk -F: '$3 >= 1000 && $3 < 60000 {print "user\t" $1 "\t" $3 "\t" $4 "\t" $6 "\t" $7}'
getent group | awk -F: '$3 >= 1000 && $3 < 60000 {print "group\t" $1 "\t" $3 "\t" $4}'"#,
    waits: true,
    slow: false,
    root: None,
    codes: &[&UID, &GID, &TWICE, &MISSING, &MEMBERS],
    judge,
};

/// Where a user's local files are; a whole disk of data would take hours, and other file systems are mounted elsewhere too.
const PLACES: &str = "/home /etc /opt /srv /var";

/// Rows of a kind by their second field.
type Table<'a> = BTreeMap<&'a str, &'a [String]>;

fn table<'a>(rows: &'a [Vec<String>], kind: &str) -> Table<'a> {
    rows.iter().filter(|r| r[0] == kind && r.len() > 3).map(|r| (r[1].as_str(), &r[1..])).collect()
}

fn judge(answers: &Answers) -> Vec<Finding> {
    let tables =
        |kind| -> Vec<(&Host, Table)> { answers.of(CHECK.key).map(|(h, rows)| (h, table(rows, kind))).collect() };
    let (users, groups) = (tables("user"), tables("group"));
    let names =
        |all: &[(&Host, Table)]| all.iter().flat_map(|(_, t)| t.keys().map(|k| k.to_string())).collect::<BTreeSet<_>>();
    let mut found: Vec<Finding> = users.iter().flat_map(|(host, table)| doubles(host, table)).collect();
    names(&users).iter().for_each(|name| found.extend(of_user(name, &users)));
    names(&groups).iter().for_each(|name| found.extend(of_group(name, &groups)));
    found
}

fn doubles(host: &Host, users: &Table) -> Vec<Finding> {
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    let free = users.values().filter_map(|u| u[1].parse::<u32>().ok()).max().map_or(1000, |most| most + 1);
    let mut found = Vec::new();
    for (name, user) in users {
        if let Some(first) = owners.insert(&user[1], name) {
            let finding =
                TWICE.on(host, format!("{first} and {name} both have the number {}", user[1]), "getent passwd");
            found.push(finding.mend(format!("usermod -u {free} {}", word(name))));
        }
    }
    found
}

/// What has a number: its code, what stands before its name, and the words of the commands for it.
struct Numbered {
    code: &'static Code,
    called: &'static str,
    base: &'static str,
    change: &'static str,
    find: &'static str,
    give: &'static str,
}

const USERS: Numbered =
    Numbered { code: &UID, called: "", base: "passwd", change: "usermod -u", find: "-user", give: "chown" };
const GROUPS: Numbered =
    Numbered { code: &GID, called: "the group ", base: "group", change: "groupmod -g", find: "-group", give: "chgrp" };

type Known<'a> = Vec<(&'a Host, &'a [String])>;

fn known<'a>(name: &str, all: &[(&'a Host, Table<'a>)]) -> Known<'a> {
    all.iter().filter_map(|(h, t)| Some((*h, *t.get(name)?))).collect()
}

/// Hosts where the name has another number; `None` when it is the same everywhere.
fn numbers(kind: &Numbered, name: &str, known: &Known) -> Option<Vec<Finding>> {
    let split = split(known.iter().map(|(h, row)| (*h, row[1].clone())))?;
    let (right, like) = (&split.most, split.most_of());
    let Numbered { code, called, base, change, find, give } = kind;
    let finding = |(host, own): &(&Host, String)| {
        let what = format!("{called}{name} has the number {own}, and {right} on {like}");
        let (old, new) = (word(own), word(right));
        let files = format!("find {PLACES} -xdev {find} {old} -exec {give} -h {new} {{}} +");
        let seen = format!("getent {base} {name}: {own}");
        code.on(host, what, seen).mend(format!("{change} {new} {} && {files}", word(name)))
    };
    Some(split.others.iter().map(finding).collect())
}

fn of_user(name: &str, all: &[(&Host, Table)]) -> Vec<Finding> {
    let known = known(name, all);
    if let Some(found) = numbers(&USERS, name, &known) {
        return found;
    }
    let (Some((_, [_, uid, gid, home, shell @ ..])), true) = (known.first(), known.len() * 2 > all.len()) else {
        return Vec::new();
    };
    let (uid, gid, home) = (word(uid), word(gid), word(home));
    let shell = word(shell.first().map_or("/bin/sh", String::as_str));
    let name_word = word(name);
    let add = format!(
        "getent group {gid} >/dev/null || groupadd -g {gid} {name_word}; useradd -u {uid} -g {gid} -d {home} -s {shell} {name_word}"
    );
    let lacking = all.iter().filter(|(_, table)| !table.contains_key(name));
    lacking
        .map(|(host, _)| {
            MISSING.on(host, format!("there is no user {name}"), format!("getent passwd {name}: nothing")).mend(&add)
        })
        .collect()
}

fn of_group(name: &str, all: &[(&Host, Table)]) -> Vec<Finding> {
    let known = known(name, all);
    if let Some(found) = numbers(&GROUPS, name, &known) {
        return found;
    }
    let members = |g: &[String]| {
        g.get(2).map(|m| m.split(',').filter(|m| !m.is_empty()).map(String::from).collect::<BTreeSet<_>>())
    };
    let Some(split) = split(known.iter().filter_map(|(h, g)| Some((*h, members(g)?)))) else { return Vec::new() };
    let joined = |all: &BTreeSet<String>| all.iter().cloned().collect::<Vec<_>>().join(",");
    let (right, like) = (joined(&split.most), split.most_of());
    let finding = |(host, own): &(&Host, BTreeSet<String>)| {
        let what = format!("the group {name} has the members {:?}, and {right:?} on {like}", joined(own));
        MEMBERS.on(host, what, format!("getent group {name}")).mend(format!(
            "gpasswd -M {} {}",
            word(&right),
            word(name)
        ))
    };
    split.others.iter().map(finding).collect()
}
