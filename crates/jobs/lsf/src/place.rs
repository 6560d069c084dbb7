//! `iobsub`: chooses the host of a job by the location of its data.

use homing_model::hostname::HostIndex;
use homing_place::near;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A host of the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterHost {
    /// Its name there.
    pub name: String,
    /// Other names and addresses of it.
    pub aliases: Vec<String>,
}

/// Returns the host that a mount table means by a server's name.
pub fn host_of<'a>(server: &str, known: &'a [ClusterHost]) -> Option<&'a str> {
    let find = |names: &dyn Fn(&'a ClusterHost) -> Vec<&'a str>| {
        let mut index = HostIndex::default();
        known.iter().enumerate().for_each(|(at, host)| index.add(at, names(host)));
        index.find(server)
    };
    let all = |host: &'a ClusterHost| std::iter::once(&host.name).chain(&host.aliases).map(String::as_str).collect();
    let at = find(&|host| vec![&host.name]).or_else(|| find(&all))?;
    Some(&known[at].name)
}

/// The reason of the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The working directory is there.
    Directory,
    /// Most bytes of the files that the command names are there: the bytes there, and all bytes.
    Inputs(u64, u64),
}

/// Chooses the host to which the named files are near, and among several the server of the working directory. If no
/// file is named, it is that server.
pub fn choose(directory: Option<&str>, inputs: &BTreeMap<String, u64>) -> Option<(String, Why)> {
    let near = near(inputs.iter().map(|(name, bytes)| (name.as_str(), *bytes)));
    if let Some(home) = directory.filter(|home| near.is_empty() || near.contains(home)) {
        return Some((home.into(), Why::Directory));
    }
    let best = near.into_iter().max_by_key(|name| (inputs[*name], Reverse(*name)))?;
    Some((best.into(), Why::Inputs(inputs[best], inputs.values().sum())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_all_its_names() {
        let known = |name: &str, aliases: &[&str]| ClusterHost {
            name: name.into(),
            aliases: aliases.iter().map(|a| a.to_string()).collect(),
        };
        let all = [known("storage-1", &["10.0.0.5", "fe80::5"]), known("rcss1", &[]), known("rcss10", &[])];
        for (server, host) in [
            ("storage-1", Some("storage-1")),
            ("storage-1.lab.example", Some("storage-1")),
            ("Storage-1.lab.example.", Some("storage-1")),
            ("[fe80::5]", Some("storage-1")),
            ("10.0.0.5", Some("storage-1")),
            ("rcss10", Some("rcss10")),
            ("rcss", None),
            ("10", None),
        ] {
            assert_eq!(host_of(server, &all), host, "{server}");
        }
    }

    #[test]
    fn the_named_files_count_more_than_the_directory() {
        let bytes = |list: &[(&str, u64)]| list.iter().map(|(n, b)| (n.to_string(), *b)).collect::<BTreeMap<_, _>>();
        assert_eq!(choose(Some("a"), &bytes(&[])), Some(("a".into(), Why::Directory)));
        assert_eq!(choose(Some("a"), &bytes(&[("a", 5), ("b", 9)])), Some(("b".into(), Why::Inputs(9, 14))));
        assert_eq!(choose(Some("a"), &bytes(&[("a", 9), ("b", 9)])), Some(("a".into(), Why::Directory)));
        assert_eq!(choose(Some("a"), &bytes(&[("a", 96), ("b", 100)])), Some(("a".into(), Why::Directory)));
        assert_eq!(choose(None, &bytes(&[("b", 1)])), Some(("b".into(), Why::Inputs(1, 1))));
        assert_eq!(choose(None, &bytes(&[])), None);
    }
}
