//! Plans users and groups with the same numbers on all hosts. No existing number is changed.

use super::AreaResult;
use crate::site::{AllSeen, ClusterSite, UserSection};
use homing_model::NodeSet;
use homing_model::text::always_quoted;
use homing_steps::{Account, FactQuery, HostRequirement, Observed};
use std::collections::{BTreeMap, BTreeSet};

/// The numbers that Debian and Red Hat use for people.
const FREE: std::ops::Range<u32> = 1000..60000;

/// Returns a command that prints three kinds of lines. `own USER HOME OWNER` is an existing home, `at HOME OWNER` a
/// wanted one, `shell PATH` a program that exists. OWNER is a number, `absent` or `unknown`.
fn command(site: &ClusterSite) -> String {
    let names: Vec<&str> = site.up.user.keys().map(String::as_str).collect();
    let homes: Vec<String> = site.up.user.iter().map(|(name, user)| always_quoted(&home(name, user))).collect();
    let shells: Vec<String> = site.up.user.values().map(|user| always_quoted(shell(user))).collect();
    format!(
        "o() {{ v=$(timeout -s KILL 10 stat -Lc %u -- \"$1\" 2>&1) || case $v in *'No such file'*) v=absent;; *) v=unknown;; esac; printf '\\t%s\\t%s\\n' \"$1\" \"$v\"; }}\n\
         for n in {}; do d=$(getent passwd \"$n\" | cut -d: -f6); [ -z \"$d\" ] || {{ printf 'own\\t%s' \"$n\"; o \"$d\"; }}; done\n\
         for d in {}; do printf at; o \"$d\"; done\nfor s in {}; do [ ! -x \"$s\" ] || printf 'shell\\t%s\\n' \"$s\"; done",
        names.join(" "),
        homes.join(" "),
        shells.join(" ")
    )
}

pub(super) fn request_facts(site: &ClusterSite, question: &mut FactQuery) {
    question.outputs.insert(command(site));
}

fn home(name: &str, user: &UserSection) -> String {
    user.home.clone().unwrap_or_else(|| format!("/home/{name}"))
}

fn shell(user: &UserSection) -> &str {
    user.shell.as_deref().unwrap_or("/bin/bash")
}

/// Returns the lines of the output with this first field.
fn lines<'s>(said: &'s str, key: &'s str) -> impl Iterator<Item = Vec<&'s str>> {
    said.lines().map(|line| line.split('\t').collect::<Vec<_>>()).filter(move |fields| fields.first() == Some(&key))
}

/// Returns the reason why a user cannot be made there: the shell is missing, or the home belongs to another user.
fn unfit(name: &str, account: &Account, said: &str) -> Option<String> {
    let shells: Vec<&str> = lines(said, "shell").filter_map(|fields| fields.get(1).copied()).collect();
    if !shells.contains(&account.shell.as_str()) {
        return Some(format!(
            "{}, the shell of {name}, is missing: add its package to [up] packages, or set [up.user.{name}] shell",
            account.shell
        ));
    }
    let home = lines(said, "at").find(|fields| fields.get(1) == Some(&account.home.as_str()))?;
    let owner: u32 = home.get(2)?.parse().ok()?;
    (owner != account.uid).then(|| {
        format!(
            "{} exists and belongs to number {owner}, not to {name} ({}): change its owner, move it, or set another home in \
             [up.user.{name}]",
            account.home, account.uid
        )
    })
}

/// Returns the homes that do not belong to their user.
pub(super) fn untaken(site: &ClusterSite, host: &str, seen: &AllSeen) -> Vec<String> {
    let Some(Ok(there)) = seen.get(host) else { return Vec::new() };
    let Some(said) = there.outputs.get(&command(site)) else { return Vec::new() };
    let one = |fields: Vec<&str>| {
        let (name, home) = (*fields.get(1)?, *fields.get(2)?);
        let (owner, account) = (fields.get(3)?.parse::<u32>().ok()?, there.users.get(name)?);
        (owner != account.uid).then(|| {
            format!(
                "the home {home} of {name} belongs to number {owner}, not to {name} ({}): see ls -ld {home}/.",
                account.uid
            )
        })
    };
    lines(said, "own").filter_map(one).collect()
}

/// Returns notes on users with another home or shell than the file has, and on users without a home.
pub(super) fn notes(site: &ClusterSite, seen: &AllSeen) -> Vec<String> {
    let mut notes: BTreeMap<String, NodeSet> = BTreeMap::new();
    for (host, there) in seen.iter().filter_map(|(host, there)| Some((host, there.as_ref().ok()?))) {
        for (name, user) in &site.up.user {
            let Some(account) = there.users.get(name) else { continue };
            let mut note = |text: String| {
                let hosts = notes.entry(text).or_default();
                *hosts = hosts.union(&[host.clone()].into_iter().collect());
            };
            if user.home.as_ref().is_some_and(|home| *home != account.home) {
                note(format!("the home of {name} stays {}; usermod -d changes it, and moves no files", account.home));
            }
            if user.shell.as_ref().is_some_and(|shell| *shell != account.shell) {
                note(format!("the shell of {name} stays {}; chsh -s changes it", account.shell));
            }
            let said = there.outputs.get(&command(site)).map(String::as_str).unwrap_or("");
            if lines(said, "own")
                .any(|fields| fields.get(1) == Some(&name.as_str()) && fields.get(3) == Some(&"absent"))
            {
                note(format!("{name} has no home: {} is missing", account.home));
            }
        }
    }
    notes.into_iter().map(|(text, hosts)| format!("users: on {hosts} {text}")).collect()
}

/// Plans the same users for each host, except for shells and homes. The steps find further objections.
pub(super) fn wanted(site: &ClusterSite, host: &str, seen: &AllSeen) -> AreaResult {
    let mut numbers = Numbers::of(seen);
    let mut against = Vec::new();
    let there = seen.get(host).and_then(|there| there.as_ref().ok());
    let said = there.and_then(|there| there.outputs.get(&command(site)));
    let mut keep = |found: Result<HostRequirement, String>| found.map_err(|why| against.push(why)).ok();
    let mut wanted: Vec<HostRequirement> = Vec::new();
    let mut gids: BTreeMap<String, u32> = BTreeMap::new();
    for (name, group) in &site.up.group {
        let found = numbers.group(name, group.gid, None);
        gids.extend(found.as_ref().ok().map(|gid| (name.clone(), *gid)));
        wanted.extend(keep(found.map(|gid| HostRequirement::Group { name: name.clone(), gid })));
    }
    let (mut users, mut members) = (Vec::new(), Vec::new());
    for (name, user) in &site.up.user {
        let uid = numbers.user(name, user.uid);
        let group = user.group.clone().or_else(|| numbers.group_of(name)).unwrap_or_else(|| name.clone());
        let gid =
            gids.get(&group).map_or_else(|| numbers.group(&group, None, uid.as_ref().ok().copied()), |gid| Ok(*gid));
        if let Ok(gid) = gid
            && !gids.contains_key(&group)
        {
            gids.insert(group.clone(), gid);
            wanted.push(HostRequirement::Group { name: group, gid });
        }
        let account = |uid, gid| Account { uid, gid, home: home(name, user), shell: shell(user).into() };
        let is_new = there.is_some_and(|there| !there.users.contains_key(name));
        let made = uid.and_then(|uid| {
            let account = account(uid, gid?);
            match said.filter(|_| is_new).and_then(|said| unfit(name, &account, said)) {
                Some(why) => Err(why),
                None => Ok(HostRequirement::User { name: name.clone(), account }),
            }
        });
        users.extend(keep(made));
        members.extend(
            user.groups.iter().map(|group| HostRequirement::Member { user: name.clone(), group: group.clone() }),
        );
    }
    wanted.extend(users);
    wanted.extend(members);
    if against.is_empty() { Ok(wanted) } else { Err(against) }
}

/// The owners of numbers, on all hosts that answered.
struct Numbers<'s> {
    hosts: Vec<(&'s String, &'s Observed)>,
    taken: BTreeSet<u32>,
}

impl Numbers<'_> {
    fn of(seen: &AllSeen) -> Numbers<'_> {
        let hosts: Vec<_> = seen.iter().filter_map(|(host, s)| Some((host, s.as_ref().ok()?))).collect();
        let users = hosts.iter().flat_map(|(_, s)| s.users.values().map(|a| a.uid));
        let groups = hosts.iter().flat_map(|(_, s)| s.groups.values().map(|(gid, _)| *gid));
        Numbers { taken: users.chain(groups).collect(), hosts }
    }

    fn user(&mut self, name: &str, told: Option<u32>) -> Result<u32, String> {
        let there = self.hosts.iter().filter_map(|(h, s)| Some((*h, s.users.get(name)?.uid))).collect();
        self.number(&format!("user {name}"), &format!("[up.user.{name}] uid"), told, there, None)
    }

    /// `like` is the number of the group's only member, if the group is to be made.
    fn group(&mut self, name: &str, told: Option<u32>, like: Option<u32>) -> Result<u32, String> {
        let there = self.hosts.iter().filter_map(|(h, s)| Some((*h, s.groups.get(name)?.0))).collect();
        let is_group = |gid: &u32| self.hosts.iter().any(|(_, s)| s.groups.values().any(|(g, _)| g == gid));
        let like = like.filter(|gid| !is_group(gid));
        self.number(&format!("group {name}"), &format!("[up.group.{name}] gid"), told, there, like)
    }

    /// Returns the user's own group on a host that has the user.
    fn group_of(&self, user: &str) -> Option<String> {
        self.hosts.iter().find_map(|(_, s)| {
            let gid = s.users.get(user)?.gid;
            s.groups.iter().find(|(_, (g, _))| *g == gid).map(|(name, _)| name.clone())
        })
    }

    /// Returns the given number; else the one on all hosts that have it; else one that is free on all.
    fn number(
        &mut self,
        what: &str,
        key: &str,
        told: Option<u32>,
        there: Vec<(&String, u32)>,
        like: Option<u32>,
    ) -> Result<u32, String> {
        let mut found: BTreeMap<u32, NodeSet> = BTreeMap::new();
        for (host, number) in &there {
            let set: NodeSet = [(*host).clone()].into_iter().collect();
            let hosts = found.remove(number).map_or(set.clone(), |hosts| hosts.union(&set));
            found.insert(*number, hosts);
        }
        let number = match (told, found.keys().next(), found.len()) {
            (Some(told), ..) => told,
            (None, Some(one), 1) => *one,
            (None, Some(_), _) => {
                let each: Vec<String> = found.iter().map(|(n, hosts)| format!("{n} on {hosts}")).collect();
                return Err(format!("{what} has number {}: choose one with {key} = ...", each.join(", ")));
            }
            (None, None, _) => like
                .or_else(|| FREE.into_iter().find(|n| !self.taken.contains(n)))
                .ok_or("no number is free on all hosts")?,
        };
        self.taken.insert(number);
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_that_is_not_there_and_a_home_of_somebody_else_are_named() {
        let up = toml::from_str("[user.alice]\nuid = 2001\nshell = \"/bin/zsh\"\n").unwrap();
        let site = ClusterSite { hosts: vec!["n1".into()], up, ..ClusterSite::default() };
        let look = |said: &str, there: bool| {
            let alice = Account { uid: 2001, gid: 2001, home: "/home/alice".into(), shell: "/bin/sh".into() };
            let users = there.then(|| ("alice".to_string(), alice)).into_iter().collect();
            let outputs = [(command(&site), said.to_string())].into();
            [("n1".to_string(), Ok(Observed { users, outputs, ..Observed::default() }))].into()
        };
        let refused = |said: &str| wanted(&site, "n1", &look(said, false)).unwrap_err().remove(0);
        assert!(refused("at\t/home/alice\tabsent\n").starts_with("/bin/zsh, the shell of alice, is missing"));
        assert!(wanted(&site, "n1", &look("at\t/home/alice\tabsent\nshell\t/bin/zsh\n", false)).is_ok());
        assert!(wanted(&site, "n1", &look("at\t/home/alice\t2001\nshell\t/bin/zsh\n", false)).is_ok());
        let why = refused("at\t/home/alice\t0\nshell\t/bin/zsh\n");
        assert!(why.starts_with("/home/alice exists and belongs to number 0, not to alice (2001)"), "{why}");
        assert!(wanted(&site, "n1", &look("at\t/home/alice\t0\n", true)).is_ok(), "who is there stays");
        let why = untaken(&site, "n1", &look("own\talice\t/home/alice\t0\n", true)).remove(0);
        assert!(why.starts_with("the home /home/alice of alice belongs to number 0, not to alice (2001)"), "{why}");
        let notes = notes(&site, &look("own\talice\t/home/alice\tabsent\n", true));
        assert!(notes[0].contains("has no home") && notes[1].contains("the shell of alice stays /bin/sh"), "{notes:?}");
    }
}
