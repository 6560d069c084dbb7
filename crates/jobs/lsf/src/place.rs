//! `iobsub`: chooses the host of a job by the location of its data.

use homing_model::hostname::HostIndex;
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

/// Chooses the host with most bytes of the named files. If no file is named, or no host has more than the server of
/// the working directory, it is that server.
pub fn choose(directory: Option<&str>, inputs: &BTreeMap<String, u64>) -> Option<(String, Why)> {
    let all = inputs.values().sum();
    let at_home = directory.and_then(|d| inputs.get(d)).copied().unwrap_or(0);
    let best = inputs.iter().max_by_key(|(name, bytes)| (**bytes, std::cmp::Reverse(*name)));
    match (best, directory) {
        (Some((name, bytes)), Some(home)) if *bytes > at_home && name != home => {
            Some((name.clone(), Why::Inputs(*bytes, all)))
        }
        (_, Some(home)) => Some((home.into(), Why::Directory)),
        (Some((name, bytes)), None) if *bytes > 0 => Some((name.clone(), Why::Inputs(*bytes, all))),
        _ => None,
    }
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
        assert_eq!(choose(None, &bytes(&[("b", 1)])), Some(("b".into(), Why::Inputs(1, 1))));
        assert_eq!(choose(None, &bytes(&[])), None);
    }
}
