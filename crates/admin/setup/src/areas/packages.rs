//! Plans packages that all hosts have, and those that their volumes need.

use super::volumes;
use crate::site::{AllSeen, ClusterSite};
use homing_steps::{FactQuery, HostRequirement};
use std::collections::BTreeSet;

pub(super) fn request_facts(site: &ClusterSite, question: &mut FactQuery) {
    question.packages.extend(site.up.packages.iter().cloned());
    // The family of each host is not known yet.
    let things: BTreeSet<&str> = site.hosts.iter().flat_map(|host| volumes::things(site, host)).collect();
    question.packages.extend(things.into_iter().flat_map(|thing| site.callings(thing)));
}

pub(super) fn wanted(site: &ClusterSite, host: &str, seen: &AllSeen) -> Vec<HostRequirement> {
    let Some(Ok(there)) = seen.get(host) else { return Vec::new() };
    let things = volumes::things(site, host).into_iter();
    let of_volumes: BTreeSet<String> = things.filter_map(|thing| site.called(there, thing)).flatten().collect();
    let own = site.up.packages.iter().filter(|name| !of_volumes.contains(*name));
    let one = |name: &String| HostRequirement::Package { name: name.clone(), replaces: Vec::new() };
    own.chain(&of_volumes).map(one).collect()
}
