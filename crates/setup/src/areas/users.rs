//! Users and groups have the same numbers on all hosts. Nobody is renumbered.

use super::Asked;
use crate::site::{AllSeen, Site};
use homing_model::NodeSet;
use homing_steps::{Account, Observed, Wanted};
use std::collections::{BTreeMap, BTreeSet};

/// Debian's and Red Hat's numbers for people.
const FREE: std::ops::Range<u32> = 1000..60000;

/// The same for each host: what stands against it there is for the steps to find.
pub(super) fn wanted(site: &Site, seen: &AllSeen) -> Asked {
    let mut numbers = Numbers::of(seen);
    let mut against = Vec::new();
    let mut keep = |found: Result<Wanted, String>| found.map_err(|why| against.push(why)).ok();
    let mut wanted: Vec<Wanted> = Vec::new();
    let mut gids: BTreeMap<String, u32> = BTreeMap::new();
    for (name, group) in &site.up.group {
        let found = numbers.group(name, group.gid, None);
        gids.extend(found.as_ref().ok().map(|gid| (name.clone(), *gid)));
        wanted.extend(keep(found.map(|gid| Wanted::Group { name: name.clone(), gid })));
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
            wanted.push(Wanted::Group { name: group, gid });
        }
        let account = |uid, gid| Account {
            uid,
            gid,
            home: user.home.clone().unwrap_or_else(|| format!("/home/{name}")),
            shell: user.shell.clone().unwrap_or_else(|| "/bin/bash".into()),
        };
        let made = uid.and_then(|uid| Ok(Wanted::User { name: name.clone(), account: account(uid, gid?) }));
        users.extend(keep(made));
        members.extend(user.groups.iter().map(|group| Wanted::Member { user: name.clone(), group: group.clone() }));
    }
    wanted.extend(users);
    wanted.extend(members);
    if against.is_empty() { Ok(wanted) } else { Err(against) }
}

/// Which numbers are whose, on all hosts that answered.
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

    /// `like`: the number that its only member has, when it is to be made.
    fn group(&mut self, name: &str, told: Option<u32>, like: Option<u32>) -> Result<u32, String> {
        let there = self.hosts.iter().filter_map(|(h, s)| Some((*h, s.groups.get(name)?.0))).collect();
        let is_group = |gid: &u32| self.hosts.iter().any(|(_, s)| s.groups.values().any(|(g, _)| g == gid));
        let like = like.filter(|gid| !is_group(gid));
        self.number(&format!("group {name}"), &format!("[up.group.{name}] gid"), told, there, like)
    }

    /// The group that is a user's own where the user is.
    fn group_of(&self, user: &str) -> Option<String> {
        self.hosts.iter().find_map(|(_, s)| {
            let gid = s.users.get(user)?.gid;
            s.groups.iter().find(|(_, (g, _))| *g == gid).map(|(name, _)| name.clone())
        })
    }

    /// The number that was told; the one that there is on all hosts that have it; one that is free on all.
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
                return Err(format!("{what} has number {}: {key} = ... says which is meant", each.join(", ")));
            }
            (None, None, _) => {
                like.or_else(|| FREE.into_iter().find(|n| !self.taken.contains(n))).ok_or("no number is free")?
            }
        };
        self.taken.insert(number);
        Ok(number)
    }
}
