//! Whether a name means this machine.

use homing_model::hostname::{short, spelled};

/// Returns the name that this machine has for itself, as `uname -n` prints it.
pub fn own_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns the number that the kernel has for this boot of the machine; empty without /proc.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_string()
}

/// Whether a name means this machine: its own name, its short form, or `localhost`. An address does not: a user who
/// gives `127.0.0.1` wants its sshd.
pub fn is_here(name: &str) -> bool {
    is_one(name, &own_name())
}

/// Compares a name with the own one. If the own name has no domain, no full name matches, because another host may
/// have it.
fn is_one(name: &str, own: &str) -> bool {
    let (name, own) = (spelled(name), spelled(own));
    name == "localhost" || name == own || name == short(&own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_by_its_names() {
        for (name, own, here) in [
            ("head", "head", true),
            ("Head", "head", true),
            ("head", "head.cluster", true),
            ("head.cluster", "head.cluster", true),
            ("head.cluster", "head", false),
            ("head.there", "head.here", false),
            ("localhost", "head", true),
            ("127.0.0.1", "head", false),
            ("10.0.0.1", "head", false),
            ("n1", "head", false),
        ] {
            assert_eq!(is_one(name, own), here, "{name} on {own}");
        }
        assert!(is_here(&own_name()));
    }
}
