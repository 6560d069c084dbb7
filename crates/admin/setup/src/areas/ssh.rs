//! Plans logins from host to host without a password, and without a private key in any home. Hosts vouch for their
//! users with their own keys (`HostbasedAuthentication`). sshd itself excludes root. A root of one of the hosts can
//! be any user on all, as the manual warns.

use super::{AreaResult, lines_of_all, names, ssh_in_force};
use crate::site::{AllSeen, ClusterSite};
use homing_model::NodeSet;
use homing_steps::{FactQuery, HostRequirement, How, block_of};
use std::collections::BTreeMap;

const KNOWN: &str = "/etc/ssh/ssh_known_hosts";
const EQUIV: &str = "/etc/ssh/shosts.equiv";
const SERVER: &str = "/etc/ssh/sshd_config.d/60-homing.conf";
const SERVER_FOLDER: &str = "/etc/ssh/sshd_config.d";
const SERVER_MAIN: &str = "/etc/ssh/sshd_config";
const CLIENT: &str = "/etc/ssh/ssh_config.d/60-homing.conf";
const CLIENT_MAIN: &str = "/etc/ssh/ssh_config";
const BLOCK: &str = "ssh";
/// The names of the unit in Debian and in Red Hat.
const UNITS: [&str; 2] = ["ssh", "sshd"];
/// By default sshd looks up the client's address and compares the result with names; without DNS, the result is an
/// address.
const SERVES: &str = "HostbasedAuthentication yes\nHostbasedUsesNameFromPacketOnly yes\n";

pub(super) fn request_facts(site: &ClusterSite, question: &mut FactQuery) {
    question.outputs.insert(ssh_in_force::command(site));
    question.files.extend(
        [KNOWN, EQUIV, SERVER, SERVER_FOLDER, SERVER_MAIN, CLIENT, CLIENT_MAIN, "/etc/hosts"].map(String::from),
    );
    question.units.extend(UNITS.map(String::from));
}

/// Returns all names by which a host may be known.
fn names_of(site: &ClusterSite, host: &str, seen: &AllSeen) -> Vec<String> {
    let mut names = names::own_names(host, seen);
    names.retain(|name| name != host);
    names.insert(0, host.into());
    names.extend(site.names(host, seen).into_iter().map(|(name, _)| name).skip(1));
    names
}

pub(super) fn wanted(site: &ClusterSite, host: &str, seen: &AllSeen) -> AreaResult {
    let Some(Ok(there)) = seen.get(host) else { return Ok(Vec::new()) };
    let mut against = Vec::new();
    for (main, folder) in [(SERVER_MAIN, "sshd_config.d"), (CLIENT_MAIN, "ssh_config.d")] {
        let includes =
            |line: &str| line.trim_start().to_ascii_lowercase().starts_with("include") && line.contains(folder);
        if !there.text(main).unwrap_or("").lines().any(includes) {
            against.push(format!("{main} has no line \"Include /etc/ssh/{folder}/*.conf\""));
        }
    }
    let Some(unit) = UNITS.into_iter().find(|unit| there.units.contains_key(*unit)) else {
        return Err(vec!["it has neither a unit ssh nor a unit sshd".into()]);
    };
    if there.host_keys.is_empty() {
        against.push("it has no host keys: run ssh-keygen -A there".into());
    }
    if !against.is_empty() {
        return Err(against);
    }
    let block = |path: &str| there.text(path).and_then(|text| block_of(text, BLOCK)).unwrap_or("");
    let known = lines_of_all(site, block(KNOWN), |h| known_lines(site, h, seen), |h, line| first_name(line) == h);
    let is_known = |h: &str| matches!(seen.get(h), Some(Ok(_)));
    let fresh = |h: &str| if is_known(h) { names_of(site, h, seen) } else { Vec::new() };
    let is_of = |h: &str, line: &str| line == h || line.strip_prefix(h).is_some_and(|r| r.starts_with(['-', '.']));
    let equiv = lines_of_all(site, block(EQUIV), fresh, is_of);
    let client =
        format!("EnableSSHKeysign yes\nHost {}\n  HostbasedAuthentication yes\n", equiv.replace('\n', " ").trim_end());
    let lines = |path: &str, lines: String| HostRequirement::Block {
        path: path.into(),
        name: BLOCK.into(),
        lines,
        retire: vec![],
    };
    Ok(vec![
        lines(KNOWN, known),
        lines(EQUIV, equiv),
        HostRequirement::file(CLIENT, client),
        HostRequirement::file(SERVER, SERVES),
        HostRequirement::Reads {
            unit: unit.into(),
            // A line that another file had is in force until then, too.
            paths: [SERVER, SERVER_FOLDER, SERVER_MAIN].map(String::from).to_vec(),
            how: How::Reload,
            test: Some("sshd -t".into()),
        },
    ])
}

fn first_name(line: &str) -> &str {
    line.split([',', ' ']).next().unwrap_or("")
}

fn known_lines(site: &ClusterSite, host: &str, seen: &AllSeen) -> Vec<String> {
    let Some(Ok(there)) = seen.get(host) else { return Vec::new() };
    let mut all = names_of(site, host, seen);
    all.extend(site.names(host, seen).into_iter().map(|(_, address)| address));
    let names = all.join(",");
    there.host_keys.iter().map(|key| format!("{names} {key}")).collect()
}

/// Returns notes on hosts with the same key: hosts that were copied from one disk can impersonate each other.
pub(super) fn notes(site: &ClusterSite, seen: &AllSeen) -> Vec<String> {
    let mut holders: BTreeMap<&String, Vec<String>> = BTreeMap::new();
    for host in &site.hosts {
        let keys = seen.get(host).and_then(|s| s.as_ref().ok()).map(|s| s.host_keys.as_slice()).unwrap_or_default();
        keys.iter().for_each(|key| holders.entry(key).or_default().push(host.clone()));
    }
    let mut shared: Vec<NodeSet> =
        holders.into_values().filter(|hosts| hosts.len() > 1).map(|hosts| hosts.into_iter().collect()).collect();
    shared.dedup();
    let note = |hosts: NodeSet| {
        format!(
            "{hosts} have the same host key, so each can impersonate the others: rm /etc/ssh/ssh_host_*; ssh-keygen -A"
        )
    };
    shared.into_iter().map(note).collect()
}
