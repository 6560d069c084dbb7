//! Mutes findings that a user knows and does not want to see for a while.

use crate::HostFinding;
use homing_model::NodeSet;
use serde::{Deserialize, Serialize};

/// A muted code. It applies to the hosts that it names: the same fault on another host is reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mute {
    /// The code.
    pub code: String,
    /// The hosts, as a node set; empty: all.
    pub hosts: String,
    /// The end of the mute, seconds since the epoch.
    pub until: u64,
    /// The reason.
    pub because: String,
}

impl Mute {
    fn covers(&self, finding: &HostFinding) -> NodeSet {
        if self.hosts.is_empty() {
            return finding.hosts.clone();
        }
        // homing wrote it; a text that cannot be parsed mutes nothing.
        let hosts = NodeSet::parse(&self.hosts).unwrap_or_default();
        finding.hosts.intersection(&hosts)
    }
}

/// Adds a mute of a code on these hosts, and removes mutes that have ended by `now`.
pub fn add(all: &mut Vec<Mute>, code: &str, hosts: Vec<String>, because: String, now: u64, span: u64) {
    let hosts: NodeSet = hosts.into_iter().collect();
    let fresh = Mute { code: code.to_ascii_uppercase(), hosts: hosts.to_string(), until: now + span, because };
    all.retain(|mute| mute.until > now && (&mute.code, &mute.hosts) != (&fresh.code, &fresh.hosts));
    all.push(fresh);
}

/// Splits findings into reported ones and muted ones, with the mute of each. `now` is in seconds since the epoch.
pub fn sifted(found: Vec<HostFinding>, mutes: &[Mute], now: u64) -> (Vec<HostFinding>, Vec<(HostFinding, Mute)>) {
    let (mut told, mut quiet) = (Vec::new(), Vec::new());
    for mut finding in found {
        for mute in mutes.iter().filter(|m| m.until > now && m.code == finding.code.name) {
            let covered = mute.covers(&finding);
            if !covered.is_empty() {
                finding.hosts = finding.hosts.difference(&covered);
                quiet.push((HostFinding { hosts: covered, ..finding.clone() }, mute.clone()));
            }
        }
        if !finding.hosts.is_empty() {
            told.push(finding);
        }
    }
    (told, quiet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::all_codes;

    #[test]
    fn a_code_is_muted_once_for_the_same_hosts_and_what_has_ended_goes() {
        let mut all = Vec::new();
        let mut mute = |hosts: &[&str], why: &str, now| {
            add(&mut all, "h1", hosts.iter().map(|host| host.to_string()).collect(), why.into(), now, 10);
            all.iter().map(|mute| format!("{} {} {} {}", mute.code, mute.hosts, mute.until, mute.because)).collect()
        };
        let told: Vec<String> = mute(&["n2", "n1"], "old", 0);
        assert_eq!(told, ["H1 n[1-2] 10 old"]);
        let told: Vec<String> = mute(&["n1", "n2"], "new", 5);
        assert_eq!(told, ["H1 n[1-2] 15 new"]);
        let told: Vec<String> = mute(&["n3"], "other", 15);
        assert_eq!(told, ["H1 n3 25 other"]);
    }

    #[test]
    fn a_mute_ends_by_time_and_where_it_gets_worse() {
        let code = all_codes().next().unwrap();
        let finding = HostFinding { hosts: NodeSet::parse("n[1-3]").unwrap(), ..code.at("n1", "", "") };
        let mute =
            |hosts: &str, until| Mute { code: code.name.into(), hosts: hosts.into(), until, because: "known".into() };
        let told = |mute, now| {
            let (told, quiet) = sifted(vec![finding.clone()], &[mute], now);
            (told.iter().map(|f| f.hosts.to_string()).collect::<String>(), quiet.len())
        };
        assert_eq!(told(mute("", 100), 50), (String::new(), 1));
        assert_eq!(told(mute("n[1-2]", 100), 50), ("n3".into(), 1));
        assert_eq!(told(mute("", 100), 100), ("n[1-3]".into(), 0));
        assert_eq!(told(mute("no[", 100), 50), ("n[1-3]".into(), 0));
    }
}
