//! What a host's name resolves to, when there is little time to wait for it.

use std::time::Duration;

/// How long a resolver may take that nobody can do much without: most answer in milliseconds, and one
/// that does not answer at all gives up after 5 s or more.
const SOON: Duration = Duration::from_secs(1);

/// The addresses of a host, or none when the resolver does not answer soon.
pub fn of_soon(name: &str) -> Vec<String> {
    let name = name.to_string();
    homing_mounts::within(SOON, move || homing_os::names::addresses(&name)).unwrap_or_default()
}
