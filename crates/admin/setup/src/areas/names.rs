//! Plans names: each host knows all others by the same names, from a block in /etc/hosts. No host resolves its own
//! name to 127.0.1.1.

use super::{AreaResult, lines_of_all};
use crate::site::{AllSeen, ClusterSite, is_loopback};
use homing_steps::{FactQuery, HostRequirement, Observed, block_of, retired};

pub(crate) const HOSTS: &str = "/etc/hosts";
const HOSTNAME: &str = "/etc/hostname";
const BLOCK: &str = "names";

pub(super) fn request_facts(site: &ClusterSite, question: &mut FactQuery) {
    question.files.insert(HOSTS.into());
    question.files.extend(site.up.hostname.then(|| HOSTNAME.into()));
}

/// Whether the names of homing up are on a host.
pub(crate) fn is_left(there: &Observed) -> bool {
    there.text(HOSTS).is_some_and(|text| block_of(text, BLOCK).is_some())
}

pub(super) fn wanted(site: &ClusterSite, host: &str, seen: &AllSeen) -> AreaResult {
    let Some(Ok(there)) = seen.get(host) else { return Ok(Vec::new()) };
    let mut against = elsewhere(site, host, there);
    let text = there.text(HOSTS).unwrap_or("");
    let mut retire = Vec::new();
    for line in lines(text) {
        match judge(site, seen, line) {
            Judged::Fine => {}
            Judged::Loopback => retire.push(line.to_string()),
            Judged::Wrong(why) => against.push(why),
        }
    }
    if !against.is_empty() {
        return Err(against);
    }
    let fresh = |of: &str| entries(site, of, seen);
    let is_of = |of: &str, line: &str| line.split_whitespace().skip(1).any(|n| is_name_of(of, n));
    let block = lines_of_all(site, block_of(text, BLOCK).unwrap_or(""), fresh, is_of);
    let mut wanted = vec![HostRequirement::Block { path: HOSTS.into(), name: BLOCK.into(), lines: block, retire }];
    if site.up.hostname {
        wanted.push(HostRequirement::file(HOSTNAME, format!("{host}\n")));
        wanted.push(HostRequirement::Hostname(host.into()));
    }
    Ok(wanted)
}

/// Returns the lines for one host in the /etc/hosts of all.
fn entries(site: &ClusterSite, host: &str, seen: &AllSeen) -> Vec<String> {
    let names = site.names(host, seen);
    let line = |(i, (name, address)): (usize, &(String, String))| {
        let names = if i == 0 { own_names(host, seen).join(" ") } else { name.clone() };
        format!("{address} {names}")
    };
    names.iter().enumerate().map(line).collect()
}

/// Returns the names that a host has on its own loopback line, as Debian's installer writes it, the full one first.
/// The name in the cluster file is among them.
pub(super) fn own_names(host: &str, seen: &AllSeen) -> Vec<String> {
    let text = seen.get(host).and_then(|s| s.as_ref().ok()?.text(HOSTS)).unwrap_or("");
    let found = lines(text).chain(retired(text)).find_map(|line| {
        let mut fields = line.split('#').next()?.split_whitespace();
        is_loopback(fields.next()?).then_some(())?;
        let names: Vec<String> = fields.map(String::from).collect();
        (names.iter().any(|n| n == host) && !names.iter().any(|n| n == "localhost")).then_some(names)
    });
    found.unwrap_or_else(|| vec![host.into()])
}

fn is_name_of(host: &str, name: &str) -> bool {
    name == host || name.strip_prefix(host).is_some_and(|rest| rest.starts_with('-'))
}

/// Returns the lines in force outside of the block.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let block = block_of(text, BLOCK);
    let range = block.map(|b| b.as_ptr() as usize..b.as_ptr() as usize + b.len()).unwrap_or_default();
    text.lines().filter(move |line| !range.contains(&(line.as_ptr() as usize)) && !line.trim_start().starts_with('#'))
}

enum Judged {
    Fine,
    /// The line gives a host an address at which no other host can reach it.
    Loopback,
    Wrong(String),
}

fn judge(site: &ClusterSite, seen: &AllSeen, line: &str) -> Judged {
    let mut fields = line.split('#').next().unwrap_or("").split_whitespace();
    let Some(address) = fields.next() else { return Judged::Fine };
    let names: Vec<&str> = fields.collect();
    let known = site.hosts.iter().flat_map(|host| site.names(host, seen));
    for (name, right) in known.filter(|(name, _)| names.contains(&name.as_str())) {
        if is_loopback(address) && names.contains(&"localhost") {
            return Judged::Wrong(format!("{HOSTS} has the line {line:?}: remove {name} from it"));
        }
        if is_loopback(address) {
            return Judged::Loopback;
        }
        // A name may have an IPv4 and an IPv6 address.
        if address != right && address.contains(':') == right.contains(':') {
            return Judged::Wrong(format!(
                "{HOSTS} has the line {line:?}, but the address of {name} is {right}: remove that line"
            ));
        }
    }
    Judged::Fine
}

/// Returns addresses of the file that the host does not have, and a complaint if no address is known.
fn elsewhere(site: &ClusterSite, host: &str, there: &Observed) -> Vec<String> {
    let told: Vec<_> = site.networks(host).collect();
    let has = there.addresses.join(", ");
    if told.is_empty() && there.reached_at.as_deref().is_none_or(is_loopback) {
        return vec![format!(
            "its address is unknown (it has {has}): set [host.{host}] addresses = {{ NETWORK = \"...\" }}"
        )];
    }
    let missing = told.into_iter().filter(|(_, a)| !there.addresses.contains(&a.to_string()));
    missing.map(|(network, a)| format!("it has no address {a} for network {network}; it has {has}")).collect()
}
