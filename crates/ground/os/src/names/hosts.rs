//! Hosts by name and by address.

use std::net::{IpAddr, ToSocketAddrs};
use std::time::Duration;

/// Time limit for a resolver. Most answer in milliseconds; one without any answer gives up after 5 s or more.
const PATIENCE: Duration = Duration::from_secs(1);

/// Returns the addresses of a host without loopback addresses, which every host has. Returns none if the name is
/// unknown, or the resolver does not answer within a second.
pub fn addresses(name: &str) -> Vec<String> {
    // Every Debian machine uses 127.0.1.1 for itself.
    let found = addresses_and_loopback(name).into_iter().filter(|address| !address.is_loopback());
    found.map(|address| address.to_string()).collect()
}

/// The most simultaneous look-ups: each is a process of `getent`.
const AT_ONCE: usize = 32;

/// Returns the [`addresses`] of each host, in their order.
pub fn addresses_of<N: AsRef<str> + Sync>(names: &[N]) -> Vec<Vec<String>> {
    crate::threads::each_of(names, AT_ONCE, |name| addresses(name.as_ref()))
}

/// Returns the addresses of a host; none if the resolver does not answer within a second.
pub fn addresses_and_loopback(name: &str) -> Vec<IpAddr> {
    bounded(crate::names::GETENT, name)
}

fn bounded(getent: &str, name: &str) -> Vec<IpAddr> {
    let (getent, name) = (getent.to_string(), name.to_string());
    crate::threads::within(PATIENCE, move || addresses_by(&getent, &name)).unwrap_or_default()
}

fn addresses_by(getent: &str, name: &str) -> Vec<IpAddr> {
    // A name from the network never becomes an option.
    if name.starts_with('-') {
        return Vec::new();
    }
    let found: Vec<IpAddr> = match crate::names::printed(getent, &["ahosts", name]) {
        Some(text) => text.lines().filter_map(|line| line.split_ascii_whitespace().next()?.parse().ok()).collect(),
        None => (name, 0).to_socket_addrs().into_iter().flatten().map(|address| address.ip()).collect(),
    };
    let mut all: Vec<IpAddr> = found.into_iter().map(|address| address.to_canonical()).collect();
    all.dedup();
    all
}

/// Returns the first name of an address; none if there is no `getent`, or no answer within a second.
pub fn first_name(address: &str) -> Option<String> {
    let address = address.to_string();
    let look = move || crate::names::printed(crate::names::GETENT, &["hosts", &address]);
    let text = crate::threads::within(PATIENCE, look)??;
    text.lines().next()?.split_ascii_whitespace().nth(1).map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::script;

    #[test]
    fn a_resolver_that_takes_long_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let getent = dir.path().join("getent");
        script(&getent, "sleep 6; echo 10.1.2.3 STREAM n1");
        assert_eq!(bounded(getent.to_str().unwrap(), "n1"), [] as [IpAddr; 0]);
        script(&getent, "echo 10.1.2.3 STREAM n1");
        assert_eq!(bounded(getent.to_str().unwrap(), "n1").len(), 1);
    }

    #[test]
    fn an_address_is_its_own_with_getent_and_without() {
        for getent in [crate::names::GETENT, "/nonexistent/getent"] {
            let of = |name: &str| addresses_by(getent, name);
            let own: [IpAddr; 1] = ["10.1.2.3".parse().unwrap()];
            assert_eq!(of("10.1.2.3"), own, "{getent}");
            assert_eq!(of("::ffff:10.1.2.3"), own, "{getent}");
            assert!(of("no-such-host.invalid").is_empty(), "{getent}");
            assert!(of("localhost").iter().all(IpAddr::is_loopback), "{getent}");
            assert!(of("--help").is_empty(), "{getent}");
        }
        assert!(addresses("localhost").is_empty());
    }
}
