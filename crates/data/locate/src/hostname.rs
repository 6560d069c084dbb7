//! Finds names for hosts that a file system knows by address only.

use homing_os::threads::lock;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Mutex;

/// The most simultaneous look-ups of names.
const AT_ONCE: usize = 16;

/// Turns addresses into names. Each address is looked up once.
#[derive(Default)]
pub struct HostNames {
    known: Mutex<HashMap<String, String>>,
}

impl HostNames {
    /// Looks up the names of all these hosts at the same time, for later calls of [`Self::of`].
    pub fn learn(&self, hosts: &BTreeSet<String>) {
        let hosts: Vec<&String> = hosts.iter().filter(|h| h.parse::<IpAddr>().is_ok()).collect();
        let asked = homing_os::threads::each_of(&hosts, AT_ONCE, |host| name(host));
        let mut known = lock(&self.known);
        for (host, name) in hosts.into_iter().zip(asked) {
            known.entry(host.clone()).or_insert_with(|| name.unwrap_or_else(|| host.clone()));
        }
    }

    /// Returns a storage host's name for people. An address is replaced by its first name only if that name resolves
    /// to this address. Everything else is returned unchanged.
    pub fn of(&self, host: &str) -> String {
        if host.parse::<IpAddr>().is_err() {
            return host.to_string();
        }
        let mut known = lock(&self.known);
        known.entry(host.to_string()).or_insert_with(|| name(host).unwrap_or_else(|| host.to_string())).clone()
    }
}

/// The longest name in the domain name system, bytes (RFC 1035).
const LONGEST_NAME: usize = 253;

/// Whether a text of unknown origin has the form of a name or an address, and cannot be an option of a program.
pub(crate) fn is_host(text: &str) -> bool {
    let sound = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
    !text.is_empty() && text.len() <= LONGEST_NAME && !text.starts_with('-') && text.chars().all(sound)
}

fn name(address: &str) -> Option<String> {
    let name = homing_os::names::first_name(address)?;
    homing_os::names::addresses(&name).iter().any(|a| a == address).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_option_and_stays_what_it_is() {
        assert_eq!(HostNames::default().of("n1"), "n1");
        assert_eq!(HostNames::default().of("192.0.2.77"), "192.0.2.77");
    }
}
