//! Reads NFS mounts, and the file that sets the number of their connections. It does no input or output.

use homing_steps::{HostRequirement, Observed, block_of};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The file from which mount.nfs reads options for each server, however a mount is started.
pub const FILE: &str = "/etc/nfsmount.conf";
/// Our block in that file.
const BLOCK: &str = "connections";
/// Prints mounts by NFS 4, and the lines of fstab that contain a number of connections: such a line overrides the
/// file.
pub const MOUNTS: &str = "findmnt -rn -t nfs4 -o SOURCE,OPTIONS; \
    grep -E '^[^#]*nconnect=' /etc/fstab 2> /dev/null | while read -r a b; do echo \"fstab $a\"; done; true";

/// A mount by NFS 4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// The server, as the mount names it.
    pub server: String,
    /// `server:/path`.
    pub source: String,
    /// Its version: `4.2`.
    pub version: String,
    /// Number of connections that it has now.
    pub connections: u32,
    /// Whether a line of fstab sets that number.
    pub by_line: bool,
}

/// Returns the first mount of each server.
pub fn mounted(seen: &Observed) -> Vec<Mounted> {
    let text = seen.outputs.get(MOUNTS).map_or("", String::as_str);
    let of_lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("fstab ")).filter_map(server).collect();
    let mut all: Vec<Mounted> = Vec::new();
    for (source, options) in text.lines().filter_map(|line| line.split_once(' ')) {
        let option = |name: &str| options.split(',').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let (Some(server), Some(version)) = (server(source), option("vers")) else { continue };
        if all.iter().any(|one| one.server == server) {
            continue;
        }
        let connections = option("nconnect").and_then(|n| n.parse().ok()).unwrap_or(1);
        let (server, source, version) = (server.to_string(), source.to_string(), version.to_string());
        let by_line = of_lines.contains(&server.as_str());
        all.push(Mounted { server, source, version, connections, by_line });
    }
    all
}

/// Returns the server of a source, if a line of the file can name it and a shell needs no quotes for it.
fn server(source: &str) -> Option<&str> {
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
    let (server, path) = source.split_once(':')?;
    (!server.is_empty() && plain(server) && path.starts_with('/') && plain(path)).then_some(server)
}

/// Returns a version of NFS with which a second mount gets connections of its own.
pub fn beside(version: &str) -> &'static str {
    if version == "4.1" { "4.2" } else { "4.1" }
}

/// Returns the servers in the file, each with its number of connections.
fn configured_connections(seen: &Observed) -> BTreeMap<String, u32> {
    let text = seen.text(FILE).and_then(|text| block_of(text, BLOCK)).unwrap_or("");
    let mut all = BTreeMap::new();
    let mut server = "";
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("[ Server \"").and_then(|rest| rest.strip_suffix("\" ]")) {
            server = name;
        } else if let Some(number) = line.strip_prefix("nconnect=").and_then(|n| n.parse().ok()) {
            all.insert(server.to_string(), number);
        }
    }
    all
}

/// Returns the number of connections that the next mount of this server gets.
pub fn connections(seen: &Observed, server: &str) -> u32 {
    let has = || mounted(seen).into_iter().find(|one| one.server == server).map(|one| one.connections);
    configured_connections(seen).get(server).copied().or_else(has).unwrap_or(1)
}

/// Wants this number for the server; the other servers of the file stay.
pub fn wanted(seen: &Observed, server: &str, connections: u32) -> HostRequirement {
    let mut all = configured_connections(seen);
    all.insert(server.into(), connections);
    let lines = all.iter().fold(String::new(), |mut text, (server, number)| {
        let _ = writeln!(text, "[ Server \"{server}\" ]\nnconnect={number}");
        text
    });
    HostRequirement::Block { path: FILE.into(), name: BLOCK.into(), lines, retire: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_steps::{PathState, plan};

    fn seen(mounts: &str) -> Observed {
        let mut seen = Observed::default();
        seen.outputs.insert(MOUNTS.into(), mounts.into());
        seen.files.insert(FILE.into(), PathState::Absent);
        seen
    }

    #[test]
    fn a_server_is_told_once_and_no_word_of_it_becomes_a_command() {
        let text = "n1:/home rw,vers=4.2,hard,nconnect=4,addr=10.0.0.1\nn1:/data rw,vers=4.2\nn2:/ rw,vers=4.1\n\
            n3:/$(reboot) rw,vers=4.2\n\"x:/ rw,vers=4.2\n[fe80::1]:/ rw,vers=4.2\nfstab n2:/\n";
        let all = mounted(&seen(text));
        let short: Vec<_> =
            all.iter().map(|m| (m.source.as_str(), m.version.as_str(), m.connections, m.by_line)).collect();
        assert_eq!(short, [("n1:/home", "4.2", 4, false), ("n2:/", "4.1", 1, true)]);
        assert_eq!((beside("4.2"), beside("4.1"), beside("4.0")), ("4.1", "4.2", "4.1"));
    }

    #[test]
    fn what_the_file_tells_of_other_servers_stays() {
        let mut seen = seen("n1:/home rw,vers=4.2\n");
        assert_eq!(connections(&seen, "n1"), 1);
        for (server, number) in [("n2", 8), ("n1", 4), ("n1", 8)] {
            plan(&[wanted(&seen, server, number)], &mut seen).unwrap();
        }
        assert_eq!(connections(&seen, "n1"), 8);
        let block = block_of(seen.text(FILE).unwrap(), BLOCK).unwrap();
        assert_eq!(block, "[ Server \"n1\" ]\nnconnect=8\n[ Server \"n2\" ]\nnconnect=8\n");
    }
}
