//! Are users and groups the same on all hosts?

use crate::compare::split;
use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};
use std::collections::{BTreeMap, BTreeSet};

static UID: Code = Code {
    name: "HC-USER-01",
    severity: Severity::Error,
    what: "a user has a different number on some hosts",
    means: "on shared file systems the user's files belong to another user there",
    seen: "`getent passwd`",
    mend: "usermod -u NUMBER USER, then chown the files of the old number, if no other user has it on any host",
};
static GID: Code = Code {
    name: "HC-USER-02",
    severity: Severity::Error,
    what: "a group has a different number on some hosts",
    means: "on shared file systems the group's files belong to another group there",
    seen: "`getent group`",
    mend: "groupmod -g NUMBER GROUP, then chgrp the files of the old number",
};
static MISSING: Code = Code {
    name: "HC-USER-03",
    severity: Severity::Warning,
    what: "a user is missing on some hosts",
    means: "the user's jobs fail there, and files show a number instead of a name",
    seen: "`getent passwd`",
    mend: "useradd -m with the numbers of the other hosts",
};
static TWICE: Code = Code {
    name: "HC-USER-04",
    severity: Severity::Error,
    what: "two users have the same number",
    means: "each may read and change the other's files and kill the other's processes",
    seen: "`getent passwd`",
    mend: "usermod -u with a number that is free on all hosts",
};
static MEMBERS: Code = Code {
    name: "HC-USER-05",
    severity: Severity::Warning,
    what: "a group has different members on some hosts",
    means: "a user has rights on one host and not on the next",
    seen: "`getent group`",
    mend: "gpasswd -a USER GROUP for each missing member",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "accounts",
    script: r#"getent passwd | awk -F: '$3 >= 1000 && $3 < 60000 {print "user\t" $1 "\t" $3 "\t" $4 "\t" $6 "\t" $7}'
getent group | awk -F: '$3 >= 1000 && $3 < 60000 {print "group\t" $1 "\t" $3 "\t" $4}'"#,
    waits: true,
    slow: false,
    root: None,
    codes: &[&UID, &GID, &TWICE, &MISSING, &MEMBERS],
    judge,
};

/// The folders with a user's local files. A whole disk of data would take hours, and other file systems are mounted
/// elsewhere, too.
const PLACES: &str = "/home /etc /opt /srv /var";

/// Rows of a kind by their second field.
type Table<'a> = BTreeMap<&'a str, &'a [String]>;

fn table<'a>(rows: &'a [Vec<String>], kind: &str) -> Table<'a> {
    rows.iter().filter(|r| r[0] == kind && r.len() > 3).map(|r| (r[1].as_str(), &r[1..])).collect()
}

/// Users, or groups, of each host.
type Tables<'a> = Vec<(&'a HostAnswers, Table<'a>)>;

/// Users and groups of all hosts that answered.
struct Accounts<'a> {
    users: Tables<'a>,
    groups: Tables<'a>,
}

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let tables = |kind| -> Tables { answers.of(CHECK.key).map(|(h, rows)| (h, table(rows, kind))).collect() };
    let accounts = Accounts { users: tables("user"), groups: tables("group") };
    let names = |all: &Tables| all.iter().flat_map(|(_, t)| t.keys().map(|k| k.to_string())).collect::<BTreeSet<_>>();
    let mut found = doubles(&accounts);
    names(&accounts.users).iter().for_each(|name| found.extend(of_user(name, &accounts)));
    names(&accounts.groups).iter().for_each(|name| found.extend(of_group(name, &accounts.groups)));
    found
}

/// Returns other names that have this number on any host. A file on a shared file system may belong to any of them.
fn sharers<'a>(all: &Tables<'a>, name: &str, number: &str) -> BTreeSet<&'a str> {
    let of = |(_, table): &(&HostAnswers, Table<'a>)| -> Vec<&'a str> {
        table.iter().filter(|(other, row)| **other != name && row[1] == number).map(|(other, _)| *other).collect()
    };
    all.iter().flat_map(of).collect()
}

/// Finds two users with one number on a host. If one has another number elsewhere, the remedy gives that user this
/// number. Otherwise the second one gets a number that no user or group has on any host.
fn doubles(accounts: &Accounts) -> Vec<HostFinding> {
    let all = || accounts.users.iter().chain(&accounts.groups).flat_map(|(_, table)| table.values());
    let most = all().filter_map(|row| row[1].parse::<u32>().ok()).max().unwrap_or(999);
    let mut fresh: BTreeMap<&str, u32> = BTreeMap::new();
    let mut found = Vec::new();
    for (host, users) in &accounts.users {
        let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
        for (name, user) in users {
            let number = user[1].as_str();
            let Some(first) = owners.insert(number, name) else { continue };
            let (who, to) = match elsewhere(accounts, first, number).map(|to| (first, to)) {
                Some(first) => first,
                None => (
                    *name,
                    elsewhere(accounts, name, number).unwrap_or_else(|| {
                        let next = most + 1 + fresh.len() as u32;
                        fresh.entry(name).or_insert(next).to_string()
                    }),
                ),
            };
            let finding = TWICE.on(host, format!("{first} and {name} both have the number {number}"), "getent passwd");
            // A number that is free now may be taken when the line is pasted: the host looks again.
            let line = format!("! getent passwd {to} >/dev/null && usermod -u {to} {}", word(who));
            found.push(finding.mend(line));
        }
    }
    found
}

/// Returns the number that a user has on other hosts, if it differs and no other user has it on any host.
fn elsewhere(accounts: &Accounts, name: &str, number: &str) -> Option<String> {
    let numbers: BTreeSet<&str> =
        accounts.users.iter().filter_map(|(_, table)| table.get(name)).map(|row| row[1].as_str()).collect();
    let others: Vec<&str> = numbers.into_iter().filter(|own| *own != number).collect();
    let [one] = others.as_slice() else { return None };
    (one.parse::<u32>().is_ok() && sharers(&accounts.users, name, one).is_empty()).then(|| one.to_string())
}

/// A kind of entry with a number, user or group: its code, the prefix of its name, and the words of its commands.
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

type AccountRows<'a> = Vec<(&'a HostAnswers, &'a [String])>;

fn known<'a>(name: &str, all: &Tables<'a>) -> AccountRows<'a> {
    all.iter().filter_map(|(h, t)| Some((*h, *t.get(name)?))).collect()
}

/// Returns findings of hosts where the name has another number; `None`: it is the same everywhere. Files change their
/// owner by number only if no other name has the old or the new number on any host. The command uses no path that
/// another user can replace meanwhile.
fn numbers(kind: &Numbered, name: &str, all: &Tables) -> Option<Vec<HostFinding>> {
    let split = split(known(name, all).iter().map(|(h, row)| (*h, row[1].clone())))?;
    let (right, like) = (&split.most, split.most_of());
    let Numbered { code, called, base, change, find, give } = kind;
    let finding = |(host, own): &(&HostAnswers, String)| {
        let what = format!("{called}{name} has number {own}, but {right} on {like}");
        let (old, new, who) = (word(own), word(right), word(name));
        let files = format!("find {PLACES} -xdev {find} {old}");
        let found = code.on(host, what, format!("getent {base} {name}: {own}"));
        let shared = [own, right].map(|number| sharers(all, name, number));
        let is_number = |text: &str| text.parse::<u32>().is_ok();
        if shared.iter().any(|others| !others.is_empty()) || !is_number(own) || !is_number(right) {
            return found.look(format!("getent {base} {old} {new} {who}; {files} -ls | head -50"));
        }
        let alone =
            format!("getent {base} | awk -F: '$3 == {old} && $1 != ENVIRON[\"n\"] {{ f = 1 }} END {{ exit f }}'");
        found.mend(format!(
            "n={who} && export n && {alone} && {change} {new} {who} && {files} -execdir {give} -h {new} {{}} +"
        ))
    };
    Some(split.others.iter().map(finding).collect())
}

fn of_user(name: &str, accounts: &Accounts) -> Vec<HostFinding> {
    let all = &accounts.users;
    let known = known(name, all);
    if let Some(found) = numbers(&USERS, name, all) {
        return found;
    }
    let (Some((like, [_, uid, gid, home, shell @ ..])), true) = (known.first(), known.len() * 2 > all.len()) else {
        return Vec::new();
    };
    // The group's name on the user's host; a system group has a number below those that were queried.
    let group = accounts.groups.iter().find(|(host, _)| host.name == like.name);
    let group = group.and_then(|(_, table)| table.iter().find(|(_, row)| row[1] == *gid)).map(|(name, _)| *name);
    let (uid_word, gid_word, home, name_word) = (word(uid), word(gid), word(home), word(name));
    let shell = word(shell.first().map_or("/bin/sh", String::as_str));
    let of_group = match group {
        Some(group) => {
            let group = word(group);
            format!(
                "{{ getent group {group} >/dev/null || groupadd -g {gid_word} {group}; }} && [ \"$(getent group {gid_word} | cut -d: -f1)\" = {group} ]"
            )
        }
        None => format!("getent group {gid_word} >/dev/null"),
    };
    let add = format!("{of_group} && useradd -m -u {uid_word} -g {gid_word} -d {home} -s {shell} {name_word}");
    let look = format!("getent passwd {uid_word} {name_word}; getent group {gid_word}; ls -ld {home}");
    let shared = sharers(all, name, uid);
    let lacking = all.iter().filter(|(_, table)| !table.contains_key(name));
    lacking
        .map(|(host, _)| {
            let found = MISSING.on(host, format!("user {name} is missing"), format!("getent passwd {name}: nothing"));
            if shared.is_empty() { found.mend(&add) } else { found.look(&look) }
        })
        .collect()
}

fn of_group(name: &str, all: &Tables) -> Vec<HostFinding> {
    let known = known(name, all);
    if let Some(found) = numbers(&GROUPS, name, all) {
        return found;
    }
    let members = |g: &[String]| {
        g.get(2).map(|m| m.split(',').filter(|m| !m.is_empty()).map(String::from).collect::<BTreeSet<_>>())
    };
    let Some(split) = split(known.iter().filter_map(|(h, g)| Some((*h, members(g)?)))) else { return Vec::new() };
    let joined = |all: &BTreeSet<String>| all.iter().cloned().collect::<Vec<_>>().join(",");
    let (right, like) = (joined(&split.most), split.most_of());
    let finding = |(host, own): &(&HostAnswers, BTreeSet<String>)| {
        let what = format!("the group {name} has the members {:?}, but {right:?} on {like}", joined(own));
        let found = MEMBERS.on(host, what, format!("getent group {name}"));
        let add = split.most.difference(own).map(|user| format!("gpasswd -a {} {}", word(user), word(name)));
        // A person decides whether a user is to lose rights.
        if own.difference(&split.most).next().is_some() {
            return found.look(format!("getent group {}", word(name)));
        }
        found.mend(add.collect::<Vec<_>>().join(" && "))
    };
    split.others.iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(hosts: &[(&str, &str)]) -> Vec<(String, String, bool)> {
        let host = |(name, rows): &(&str, &str)| {
            let rows: String = rows.lines().map(|row| format!("=accounts\t{row}\n")).collect();
            HostAnswers::read(name, &[(1.0, format!("=who\t0\n=end\twho\t0\n{rows}=end\taccounts\t0\n").into_bytes())])
        };
        let found = judge(&Answers { hosts: hosts.iter().map(host).collect() });
        let one = |f: &HostFinding| {
            let remedy = f.remedy.as_ref().unwrap();
            (format!("{} {}", f.code.name, f.hosts), remedy.line.clone(), remedy.mends)
        };
        found.iter().map(one).collect()
    }

    fn user(name: &str, number: u32) -> String {
        format!("user\t{name}\t{number}\t100\t/home/{name}\t/bin/sh\n")
    }

    #[test]
    fn no_file_is_given_away_by_a_number_that_two_users_share_on_any_host() {
        let right = user("alice", 2001) + &user("bob", 2002);
        let (other, twin) = (user("alice", 2005), user("alice", 2005) + &user("twin", 2005));
        let told = commands(&[("n1", &right), ("n2", &right), ("n3", &(other.clone() + &user("bob", 2002)))]);
        assert!(told[0].2 && told[0].1.contains("-user 2005 -execdir chown -h 2001 {} +"), "{told:?}");
        assert!(told[0].1.contains("$3 == 2005 && $1 != ENVIRON"), "somebody may have it when it is pasted: {told:?}");
        for hosts in [
            // On the same host, on another one, and the new number belongs to another user.
            [("n1", right.clone()), ("n2", right.clone()), ("n3", twin + &user("bob", 2002))],
            [
                ("n1", right.clone() + &user("twin", 2005)),
                ("n2", right.clone()),
                ("n3", other.clone() + &user("bob", 2002)),
            ],
            [("n1", right.clone()), ("n2", right.clone()), ("n3", other + &user("carol", 2001))],
        ] {
            let told = commands(&hosts.each_ref().map(|(name, rows)| (*name, rows.as_str())));
            let of_alice = told.iter().find(|(_, line, _)| line.contains("find") && line.contains("2005")).unwrap();
            assert!(!of_alice.2 && !of_alice.1.contains("chown"), "{told:?}");
        }
    }

    #[test]
    fn a_number_that_is_proposed_is_free_on_all_hosts() {
        let twins = user("alice", 2001) + &user("carol", 2001) + &user("dave", 2001);
        let told =
            commands(&[("n1", &twins), ("n2", &(user("alice", 2001) + &user("eve", 2102) + "group\tlab\t2103\t\n"))]);
        let twice: Vec<&str> = told.iter().filter(|t| t.0 == "HC-USER-04 n1").map(|t| t.1.as_str()).collect();
        assert_eq!(
            twice,
            [
                "! getent passwd 2104 >/dev/null && usermod -u 2104 carol",
                "! getent passwd 2105 >/dev/null && usermod -u 2105 dave"
            ]
        );
        let told = commands(&[("n1", &twins), ("n2", &(user("alice", 2007) + &user("carol", 2001)))]);
        assert_eq!(told[0].1, "! getent passwd 2007 >/dev/null && usermod -u 2007 alice", "as on the other host");
    }

    #[test]
    fn a_user_is_made_with_a_home_and_members_are_only_added() {
        let own = user("alice", 2001).replace("\t100\t", "\t3000\t") + "group\tlab\t3000\talice\n";
        let told = commands(&[("n1", &own), ("n2", &own), ("n3", "group\tlab\t3000\t\n")]);
        assert!(
            told[0].1.contains("= lab ] && useradd -m -u 2001 -g 3000 -d /home/alice -s /bin/sh alice"),
            "{told:?}"
        );
        assert_eq!((told[1].1.as_str(), told[1].2), ("gpasswd -a alice lab", true));
        let told = commands(&[("n1", &own), ("n2", &own), ("n3", &own.replace("3000\talice", "3000\talice,eve"))]);
        assert_eq!((told[0].1.as_str(), told[0].2), ("getent group lab", false));
        let taken = own.clone() + &user("eve", 2001);
        let told = commands(&[("n1", &taken), ("n2", &own), ("n3", "group\tlab\t3000\talice\n")]);
        assert!(told.iter().all(|(_, line, _)| !line.contains("useradd")), "{told:?}");
    }
}
