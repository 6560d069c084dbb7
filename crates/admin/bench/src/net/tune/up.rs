//! Reads the kernel values that the cluster file sets on a host.

use homing_steps::{Lasting, Observed};

/// The file in which `homing up` writes them. At boot it is read after the file of tuning: the user's own choice
/// counts more.
pub const FILE: &str = "/etc/sysctl.d/60-homing.conf";

/// Whether that file sets a key.
pub fn sets_key(seen: &Observed, key: &str) -> bool {
    let lines = seen.text(FILE).unwrap_or("").lines();
    lines.filter_map(|line| line.split_once('=')).any(|(name, _)| name.trim() == key)
}

/// Whether `homing up` sets a setting of an interface.
pub fn sets(seen: &Observed, interface: &str, setting: &str) -> bool {
    seen.text(Lasting::UP.file).unwrap_or("").lines().any(|line| line.contains(&format!(" dev {interface} {setting} ")))
}
