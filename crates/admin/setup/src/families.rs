//! Names of packages, units and files in families of systems. They are in `families.txt`, beside this file; lines of
//! `[up.family]` in the cluster file come before it.

use crate::site::ClusterSite;
use homing_steps::Observed;
use std::collections::BTreeSet;

const TABLE: &str = include_str!("families.txt");
/// Matches all families that have no line of their own.
const ANY: &str = "*";

/// Returns the things, families and names of the table.
fn lines() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let (thing, rest) = line.split_once(char::is_whitespace)?;
        let rest = rest.trim();
        let (family, names) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        Some((thing, family, names.trim()))
    })
}

fn words(names: &str) -> Vec<String> {
    names.split_whitespace().map(String::from).collect()
}

impl ClusterSite {
    /// Returns the names of a thing on a host, from the first of its families that has a line.
    pub(crate) fn called(&self, there: &Observed, thing: &str) -> Option<Vec<String>> {
        let families = there.family.iter().map(String::as_str).chain([ANY]);
        let told = |family: &str| self.up.family.get(family)?.get(thing).map(String::as_str);
        let known = |family: &str| lines().find(|(t, f, _)| *t == thing && *f == family).map(|(_, _, names)| names);
        families.into_iter().find_map(|family| told(family).or_else(|| known(family))).map(words)
    }

    /// Returns the one name of a thing that has to have one.
    pub(crate) fn called_one(&self, there: &Observed, thing: &str) -> Result<String, Vec<String>> {
        self.called(there, thing).and_then(|names| names.into_iter().next()).ok_or_else(|| vec![unknown(there, thing)])
    }

    /// Returns all possible names of a thing, for a query to hosts whose family is not known yet.
    pub(crate) fn callings(&self, thing: &str) -> BTreeSet<String> {
        let told = self.up.family.values().filter_map(|lines| lines.get(thing)).map(String::as_str);
        let known = lines().filter(|(t, _, _)| *t == thing).map(|(_, _, names)| names);
        told.chain(known).flat_map(words).collect()
    }

    /// Returns faults of lines in the cluster file about unknown things.
    pub(crate) fn family_faults(&self) -> Vec<String> {
        let things: BTreeSet<&str> = lines().map(|(thing, _, _)| thing).collect();
        let of = |(family, told): (&String, &std::collections::BTreeMap<String, String>)| {
            let odd = told.keys().filter(|thing| !things.contains(thing.as_str())).cloned().collect::<Vec<_>>();
            let all = things.iter().copied().collect::<Vec<_>>().join(", ");
            odd.into_iter()
                .map(move |thing| format!("[up.family.{family}] {thing:?} is not one of {all}"))
                .collect::<Vec<_>>()
        };
        self.up.family.iter().flat_map(of).collect()
    }
}

/// Explains why an area is not set up on a host.
pub(crate) fn unknown(there: &Observed, thing: &str) -> String {
    let family = there.family.first().map_or("unknown", String::as_str);
    format!(
        "homing does not know the name of {thing} on {family}: set [up.family.{family}] \"{thing}\" = \"...\" in the cluster file"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_the_names_of_the_first_family_that_has_a_line_and_those_of_the_cluster_file_win() {
        let of = |family: &str| Observed { family: words(family), ..Observed::default() };
        let mut site = ClusterSite::default();
        let called = |site: &ClusterSite, family: &str, thing: &str| {
            site.called(&of(family), thing).map(|names| names.join(" "))
        };
        assert_eq!(called(&site, "ubuntu debian", "clock.unit").as_deref(), Some("chrony"));
        assert_eq!(called(&site, "rocky rhel centos fedora", "clock.unit").as_deref(), Some("chronyd"));
        assert_eq!(called(&site, "rocky rhel centos fedora", "gluster.mount").as_deref(), Some("glusterfs-fuse"));
        assert_eq!(called(&site, "arch", "slurm.packages"), None);
        assert!(site.called_one(&of("arch"), "clock.unit").unwrap_err()[0].contains("[up.family.arch] \"clock.unit\""));
        site.up.family.entry("arch".into()).or_default().insert("slurm.packages".into(), "munge slurm-llnl".into());
        assert_eq!(called(&site, "arch", "slurm.packages").as_deref(), Some("munge slurm-llnl"));
        assert!(site.callings("slurm.packages").contains("slurm-llnl"));
        assert_eq!(site.family_faults(), [""; 0]);
        site.up.family.entry("arch".into()).or_default().insert("slurm".into(), "x".into());
        assert!(site.family_faults()[0].contains("\"slurm\" is not one of clock.block, "));
        assert!(lines().all(|(thing, family, _)| thing.contains('.') && !family.contains('.')));
    }
}
