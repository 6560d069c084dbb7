//! What the cluster file says of the kernel of a host.

use homing_steps::{Lasting, Observed};

/// Where `homing up` writes it. It is read after the file of tuning at a boot: the user's own word counts more.
pub const FILE: &str = "/etc/sysctl.d/60-homing.conf";

/// Whether it says what a value is to be.
pub fn says(seen: &Observed, key: &str) -> bool {
    let lines = seen.text(FILE).unwrap_or("").lines();
    lines.filter_map(|line| line.split_once('=')).any(|(name, _)| name.trim() == key)
}

/// Whether it says what a setting of an interface is to be.
pub fn sets(seen: &Observed, interface: &str, setting: &str) -> bool {
    seen.text(Lasting::UP.file).unwrap_or("").lines().any(|line| line.contains(&format!(" dev {interface} {setting} ")))
}
