//! Chooses the user whose login shows the settings in force: one of `[up.user]`, else the first ordinary user of the
//! host.

use crate::site::ClusterSite;

/// Returns shell commands that set `u` to that user, or to nothing.
pub(super) fn choose(site: &ClusterSite) -> String {
    let named: Vec<&str> = site.up.user.keys().map(String::as_str).collect();
    format!(
        "u=; for n in {}; do ! getent passwd \"$n\" >/dev/null || {{ u=$n; break; }}; done; \
         [ -n \"$u\" ] || u=$(getent passwd | awk -F: '$3 >= 1000 && $3 < 60000 && $7 !~ /(nologin|false|sync)$/ {{ print $1; exit }}')\n",
        named.join(" ")
    )
}
