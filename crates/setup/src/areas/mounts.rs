//! File systems of servers that all hosts mount, but for the server itself.

use crate::site::{AllSeen, Site};
use homing_steps::{Question, Wanted};

const FSTAB: &str = "/etc/fstab";

pub(super) fn ask(site: &Site, question: &mut Question) {
    question.files.insert(FSTAB.into());
    question.mounts.extend(site.up.mount.keys().cloned());
}

pub(super) fn wanted(site: &Site, host: &str, seen: &AllSeen) -> Vec<Wanted> {
    let own = site.names(host, seen);
    let is_server = |source: &str| {
        let server = source.rsplit_once(":/").map_or("", |(server, _)| server.trim_matches(['[', ']']));
        server == host || own.iter().any(|(name, address)| server == name || server == address)
    };
    let mounts: Vec<_> = site.up.mount.iter().filter(|(_, mount)| !is_server(&mount.source)).collect();
    if mounts.is_empty() {
        return Vec::new();
    }
    let line = |(point, m): &(&String, &crate::Mount)| format!("{} {point} {} {} 0 0\n", m.source, m.fstype, m.options);
    let lines = mounts.iter().map(line).collect();
    let block = Wanted::Block { path: FSTAB.into(), name: "mounts".into(), lines, retire: Vec::new() };
    let mount =
        |(point, _): &(&String, &crate::Mount)| Wanted::Mount { point: (*point).clone(), over: None, disk: false };
    std::iter::once(block).chain(mounts.iter().map(mount)).collect()
}
