//! Compares host names: decides which two names mean the same host.
//!
//! A full name has a domain (`n1.cluster`), a short name has none (`n1`). Case, a dot at the end and the brackets of
//! an IPv6 address do not count. `n1` and `n1.cluster` are the same host; `n1.here` and `n1.there` are two. A short
//! name that means several hosts means none. An address equals only itself.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

/// Returns the name up to its first dot; an address as it is.
pub fn short(name: &str) -> &str {
    if address(name).is_some() { name } else { name.split('.').next().unwrap_or(name) }
}

/// Whether the name is a loopback address or a name for one. These mean another host on each host.
pub fn is_loopback(name: &str) -> bool {
    let names = ["localhost", "localhost.localdomain", "ip6-localhost"];
    address(name).is_some_and(|address| address.is_loopback()) || names.contains(&spelled(name).as_str())
}

/// Whether `name` means the host that has these names.
pub fn is_called<'a>(names: impl IntoIterator<Item = &'a str>, name: &str) -> bool {
    let mut one = HostIndex::default();
    one.add(0, names);
    one.find(name).is_some()
}

/// Returns a name in the spelling in which names are compared.
pub fn spelled(name: &str) -> String {
    address(name).map_or_else(|| name.trim_end_matches('.').to_ascii_lowercase(), |address| address.to_string())
}

fn address(name: &str) -> Option<IpAddr> {
    Some(name.trim_matches(|c| c == '[' || c == ']').parse::<IpAddr>().ok()?.to_canonical())
}

/// Hosts with all their names and addresses. The caller numbers the hosts.
#[derive(Clone, Debug, Default)]
pub struct HostIndex {
    holder: HashMap<String, usize>,
    /// Full names of each host.
    full: BTreeMap<usize, HashSet<String>>,
    /// Hosts with a full name that begins with this short name.
    by_short: HashMap<String, Vec<usize>>,
    /// Short names of several hosts.
    unsure: HashSet<String>,
}

impl HostIndex {
    /// Adds names of a host. If two hosts have a name, it belongs to the first one.
    pub fn add<'a>(&mut self, host: usize, names: impl IntoIterator<Item = &'a str>) {
        self.add_over(host, names, |_| false);
    }

    /// Adds names of a host, which takes its names from hosts that are `gone`.
    pub fn add_over<'a>(
        &mut self,
        host: usize,
        names: impl IntoIterator<Item = &'a str>,
        gone: impl Fn(usize) -> bool,
    ) {
        let names: Vec<String> = names.into_iter().map(spelled).filter(|name| !name.is_empty()).collect();
        for name in names.iter().filter(|name| is_full(name)) {
            self.full.entry(host).or_default().insert(name.clone());
            let hosts = self.by_short.entry(short(name).into()).or_default();
            hosts.retain(|known| *known != host && !gone(*known));
            hosts.push(host);
        }
        for name in names {
            let before = *self.holder.entry(name.clone()).or_insert(host);
            if gone(before) {
                self.unsure.remove(&name);
                self.holder.insert(name, host);
            } else if before != host && !is_full(&name) && address(&name).is_none() && self.are_two(before, host) {
                self.unsure.insert(name);
            }
        }
    }

    /// Whether two hosts differ: both have full names and share none.
    fn are_two(&self, a: usize, b: usize) -> bool {
        let both = (self.full.get(&a), self.full.get(&b));
        matches!(both, (Some(a), Some(b)) if a.is_disjoint(b))
    }

    /// Returns the only host that a name means.
    pub fn find(&self, name: &str) -> Option<usize> {
        let name = spelled(name);
        if let Some(host) = self.holder.get(&name) {
            return Some(*host).filter(|_| !self.unsure.contains(&name));
        }
        let first = short(&name);
        if is_full(&name) {
            // It may be a host whose domain is unknown.
            return self.holder.get(first).copied().filter(|host| !self.full.contains_key(host));
        }
        match self.by_short.get(first).map(Vec::as_slice) {
            Some([host]) => Some(*host),
            _ => None,
        }
    }
}

fn is_full(name: &str) -> bool {
    name.contains('.') && address(name).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_host_and_of_two() {
        for (a, b, same) in [
            ("n1", "n1", true),
            ("n1", "N1", true),
            ("n1", "n1.cluster", true),
            ("n1.cluster", "n1", true),
            ("n1.cluster", "N1.Cluster.", true),
            ("n1.here", "n1.there", false),
            ("n1", "n10", false),
            ("n1", "n2.cluster", false),
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false),
            ("10.0.0.1", "10", false),
            ("10", "10.0.0.1", false),
            ("::ffff:10.0.0.1", "10.0.0.1", true),
            ("[fd00::9]", "fd00::9", true),
            ("fd00:0::9", "fd00::9", true),
            ("", "", false),
        ] {
            assert_eq!(is_called([a], b), same, "{a} {b}");
        }
        assert!(is_called(["n1", "n1.cluster", "10.0.0.1"], "10.0.0.1"));
        assert!(!is_called(["n1", "n1.cluster"], "n1.elsewhere"), "its domain is known");
    }

    #[test]
    fn a_short_name_of_several_hosts_means_none() {
        let mut hosts = HostIndex::default();
        hosts.add(0, ["n1.here"]);
        assert_eq!(hosts.find("n1"), Some(0));
        hosts.add(1, ["n1.there"]);
        assert_eq!((hosts.find("n1"), hosts.find("n1.here"), hosts.find("n1.there")), (None, Some(0), Some(1)));
        // The hosts' own names have no domain.
        let mut hosts = HostIndex::default();
        hosts.add(0, ["n1.here", "n1"]);
        hosts.add(1, ["n1.there", "n1"]);
        assert_eq!((hosts.find("n1"), hosts.find("n1.there")), (None, Some(1)));
        // One machine by two of its names.
        let mut hosts = HostIndex::default();
        hosts.add(0, ["n1", "n1.here"]);
        hosts.add(1, ["alias", "n1", "n1.here"]);
        assert_eq!((hosts.find("n1"), hosts.find("alias")), (Some(0), Some(1)));
    }

    #[test]
    fn a_host_that_came_back_takes_its_names() {
        let mut hosts = HostIndex::default();
        hosts.add(0, ["n1", "n1.here"]);
        hosts.add_over(1, ["n1", "n1.here"], |old| old == 0);
        assert_eq!(["n1", "n1.here"].map(|name| hosts.find(name)), [Some(1); 2]);
        let mut hosts = HostIndex::default();
        hosts.add(0, ["n1.here"]);
        hosts.add_over(1, ["n1.here"], |old| old == 0);
        assert_eq!(hosts.find("n1"), Some(1));
    }

    #[test]
    fn loopback_is_no_host_of_others() {
        assert!(
            ["localhost", "LOCALHOST", "127.0.0.1", "127.0.1.1", "::1", "[::1]"].iter().all(|name| is_loopback(name))
        );
        assert!(!["n1", "10.0.0.1", "localhost1"].iter().any(|name| is_loopback(name)));
    }
}
