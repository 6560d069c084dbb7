//! The links of a lab, from this machine's end.

use crate::support::Lab;

/// Returns this machine's interface at the end of a host's link.
pub fn port(lab: &Lab, host: &str) -> String {
    let other = lab.ok(host, "cat /sys/class/net/host0/iflink");
    let links = std::fs::read_dir("/sys/class/net").unwrap().flatten();
    let is = |path: &std::path::Path| std::fs::read_to_string(path.join("ifindex")).is_ok_and(|i| i == other);
    let found = links.filter(|link| is(&link.path())).find_map(|link| link.file_name().into_string().ok());
    found.unwrap_or_else(|| panic!("{host}: no interface {other}"))
}
