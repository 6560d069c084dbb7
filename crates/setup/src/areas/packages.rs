//! Packages that all hosts have, and those that their volumes need.

use super::volumes;
use crate::site::{AllSeen, Site};
use homing_steps::{Observed, Question, Wanted};

pub(super) fn ask(site: &Site, question: &mut Question) {
    question.packages.extend(site.up.packages.iter().cloned());
    // Which family a host is of is not known yet.
    for family in ["debian", "other"] {
        let like = Observed { family: vec![family.into()], ..Observed::default() };
        question.packages.extend(site.hosts.iter().flat_map(|host| volumes::packages(site, host, &like)));
    }
}

pub(super) fn wanted(site: &Site, host: &str, seen: &AllSeen) -> Vec<Wanted> {
    let Some(Ok(there)) = seen.get(host) else { return Vec::new() };
    let of_volumes = volumes::packages(site, host, there);
    let own = site.up.packages.iter().filter(|name| !of_volumes.contains(*name));
    let one = |name: &String| Wanted::Package { name: name.clone(), replaces: Vec::new() };
    own.chain(&of_volumes).map(one).collect()
}
