//! Hosts by name and by address.

use std::net::{IpAddr, ToSocketAddrs};
use std::time::Duration;

/// The addresses of a host, loopback left out, which every host has; none when nobody knows it.
/// Blocks for as long as the resolver does.
pub fn addresses(name: &str) -> Vec<String> {
    addresses_by(crate::names::GETENT, name)
}

/// How long a resolver may take where work goes on without an answer. Most answer in milliseconds; one that does not
/// answer at all gives up after 5 s or more.
const SOON: Duration = Duration::from_secs(1);

/// The addresses of a host, as [`addresses`] gives them; none when the resolver does not answer within a second.
pub fn addresses_soon(name: &str) -> Vec<String> {
    let name = name.to_string();
    crate::threads::within(SOON, move || addresses(&name)).unwrap_or_default()
}

fn addresses_by(getent: &str, name: &str) -> Vec<String> {
    // A name from the network never becomes an option.
    if name.starts_with('-') {
        return Vec::new();
    }
    let found: Vec<IpAddr> = match crate::names::printed(getent, &["ahosts", name]) {
        Some(text) => text.lines().filter_map(|line| line.split_ascii_whitespace().next()?.parse().ok()).collect(),
        None => (name, 0).to_socket_addrs().into_iter().flatten().map(|address| address.ip()).collect(),
    };
    // 127.0.1.1 is every Debian machine's name for itself.
    let found = found.into_iter().map(|ip| ip.to_canonical()).filter(|ip| !ip.is_loopback());
    let mut all: Vec<String> = found.map(|ip| ip.to_string()).collect();
    all.dedup();
    all
}

/// The first name of an address; none where there is no `getent`.
pub fn first_name(address: &str) -> Option<String> {
    let text = crate::names::printed(crate::names::GETENT, &["hosts", address])?;
    text.lines().next()?.split_ascii_whitespace().nth(1).map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_its_own_with_getent_and_without() {
        for getent in [crate::names::GETENT, "/nonexistent/getent"] {
            let of = |name: &str| addresses_by(getent, name);
            assert_eq!(of("10.1.2.3"), ["10.1.2.3"], "{getent}");
            assert_eq!(of("::ffff:10.1.2.3"), ["10.1.2.3"], "{getent}");
            assert!(of("no-such-host.invalid").is_empty(), "{getent}");
            assert!(of("localhost").is_empty(), "{getent}");
            assert!(of("--help").is_empty(), "{getent}");
        }
    }
}
