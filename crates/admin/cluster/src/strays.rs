//! Finds sections of hosts that are not in the cluster files' node sets.

use super::file::ClusterFile;
use homing_model::NodeSet;
use homing_model::nodeset::NodeGroups;
use std::collections::BTreeSet;
use std::sync::Once;

/// The groups of the cluster files alone: those of ClusterShell may be commands, and reading a file must start none.
struct OwnGroups<'a>([&'a ClusterFile; 2]);

impl NodeGroups for OwnGroups<'_> {
    fn group(&self, source: Option<&str>, name: &str) -> Result<Option<String>, String> {
        let named = || self.0.iter().find_map(|settings| settings.groups.get(name)).cloned();
        Ok(if source.is_none() { named() } else { None })
    }

    fn all(&self, _: Option<&str>) -> Result<Option<String>, String> {
        Ok(self.0.iter().find_map(|settings| settings.hosts.clone()))
    }

    fn list(&self, _: Option<&str>) -> Result<Vec<String>, String> {
        Ok(self.0.iter().flat_map(|settings| settings.groups.keys().cloned()).collect())
    }
}

/// Returns the hosts with a section of their own that are in no set of the files: they may be typing errors. Returns
/// none if a set names groups of ClusterShell, or if no file lists hosts. `here`: the names of this machine.
fn strays(files: [&ClusterFile; 2], here: &[String]) -> Vec<String> {
    if files.iter().all(|settings| settings.hosts.is_none()) {
        return Vec::new();
    }
    let groups = OwnGroups(files);
    let mut known: BTreeSet<String> = here.iter().cloned().collect();
    for settings in files {
        known.extend(settings.server.keys().cloned());
        let queues = settings.queue.values().map(|queue| &queue.hosts);
        let switches = settings.switch.values().filter_map(|switch| switch.hosts.as_ref());
        for text in settings.hosts.iter().chain(settings.groups.values()).chain(queues).chain(switches) {
            match NodeSet::parse_with(text, &groups) {
                Ok(set) => known.extend(set.iter().map(String::from)),
                Err(_) => return Vec::new(),
            }
        }
    }
    let named: BTreeSet<&String> = files.iter().flat_map(|settings| settings.host.keys()).collect();
    named.into_iter().filter(|name| !known.contains(*name)).cloned().collect()
}

/// Prints a note on them, once in a process.
pub(super) fn note(own: &ClusterFile, machine: &ClusterFile) {
    static SAID: Once = Once::new();
    if own.host.is_empty() && machine.host.is_empty() {
        return;
    }
    let name = homing_queue::host_name();
    let short = homing_model::hostname::short(&name).to_string();
    let strays: NodeSet = strays([own, machine], &["localhost".into(), short, name]).into_iter().collect();
    if !strays.is_empty() {
        SAID.call_once(|| {
            homing_os::say!(
                "homing: cluster file: [host] has {strays}, which is neither in hosts nor in a group, queue or switch; \
                 its settings apply only if a command names that host (--hosts)"
            );
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_of_a_host_that_no_set_has_is_found() {
        let of = |own: &str, machine: &str| {
            let [own, machine] = [own, machine].map(|text| toml::from_str::<ClusterFile>(text).unwrap());
            strays([&own, &machine], &["here".into()]).join(" ")
        };
        let hosts = "hosts = \"n[1-2]\"\n";
        let section = |name: &str| format!("[host.{name}]\nslots = 3\n");
        assert_eq!(of(&format!("{hosts}{}{}", section("n9"), section("n1")), ""), "n9");
        assert_eq!(of(&section("n9"), hosts), "n9", "the administrator's file has the hosts");
        for (own, why) in [
            (section("n9"), "no hosts are named, so that each command names some"),
            (format!("{hosts}[groups]\nio = \"n9\"\n{}", section("n9")), "a group"),
            (format!("{hosts}[queue.q]\nhosts = \"n9\"\n{}", section("n9")), "a queue"),
            (format!("{hosts}[switch.s]\nhosts = \"n9\"\n{}", section("n9")), "a switch"),
            (format!("{hosts}[server.n9]\nio = 3\n{}", section("n9")), "a server"),
            (format!("{hosts}{}", section("here")), "this machine"),
            (format!("hosts = \"@all\"\n{}", section("n9")), "groups that only ClusterShell knows"),
        ] {
            assert_eq!(of(&own, ""), "", "{why}");
        }
    }
}
