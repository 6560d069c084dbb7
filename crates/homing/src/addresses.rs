//! What a host's name resolves to.

use std::net::ToSocketAddrs;
use std::time::Duration;

/// How long a resolver may take that nobody can do much without: most answer in milliseconds, and one
/// that does not answer at all gives up after 5 s or more.
const SOON: Duration = Duration::from_secs(1);

/// The addresses of a host; none when nobody knows it.
pub fn of(name: &str) -> Vec<String> {
    let found = (name, 0).to_socket_addrs().into_iter().flatten().map(|a| a.ip().to_canonical());
    // 127.0.1.1 is every Debian machine's name for itself.
    let mut all: Vec<String> = found.filter(|ip| !ip.is_loopback()).map(|ip| ip.to_string()).collect();
    all.dedup();
    all
}

/// The same, or none when the resolver does not answer soon.
pub fn of_soon(name: &str) -> Vec<String> {
    let name = name.to_string();
    homing_mounts::within(SOON, move || of(&name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_its_own_and_nobody_is_none() {
        assert_eq!(of_soon("10.1.2.3"), ["10.1.2.3"]);
        assert_eq!(of("::ffff:10.1.2.3"), ["10.1.2.3"]);
        assert!(of("no-such-host.invalid").is_empty());
        assert!(of("localhost").is_empty());
    }
}
