//! Summarizes a plan in one line: the number of things of each kind, and the things that are removed.

use crate::change::HostChange;
use crate::execute::ChangePhase;
use homing_model::units::count;
use homing_model::{NodeSet, alike};
use std::collections::BTreeSet;

/// Number of package names that fit on a line.
const NAMES: usize = 4;

/// Returns a line such as `n[1-5] (5): 3 files, 1 user, install chrony; nothing removed`. Equal things of several
/// hosts count once.
pub fn summary(phases: &[ChangePhase]) -> String {
    let hosts: NodeSet = phases.iter().flat_map(|phase| phase.steps.keys().cloned()).collect();
    if hosts.is_empty() {
        return "nothing to do".into();
    }
    let changes = || phases.iter().flat_map(|phase| phase.steps.values().flatten()).map(|step| &step.change);
    let mut parts: Vec<String> = KINDS.iter().filter_map(|(kind, noun)| counted(changes(), *kind, noun)).collect();
    parts.extend(packages(changes()));
    let removed: BTreeSet<String> = changes().flat_map(removals).collect();
    let removed = match removed.len() {
        0 => "nothing removed".into(),
        1..=NAMES => format!("removes {}", Vec::from_iter(removed).join(", ")),
        more => {
            let first: Vec<String> = removed.into_iter().take(NAMES).collect();
            format!("removes {} and {} more", first.join(", "), more - NAMES)
        }
    };
    let erased: BTreeSet<String> = changes().filter(|change| erases(change)).map(HostChange::thing).collect();
    let erased = erased.into_iter().map(|disk| format!("; ERASES {disk}")).collect::<String>();
    format!("{}: {}; {removed}{erased}", alike::label(&hosts), parts.join(", "))
}

/// Whether a change is of a kind.
type IsKind = fn(&HostChange) -> bool;

/// Kinds that are counted, in the order of the line.
const KINDS: &[(IsKind, &str)] = &[
    (|c| matches!(c, HostChange::File { .. }), "file"),
    (|c| matches!(c, HostChange::User { .. }), "user"),
    (|c| matches!(c, HostChange::Group { .. }), "group"),
    (|c| matches!(c, HostChange::Member { .. }), "group member"),
    (|c| matches!(c, HostChange::Unit { .. }), "service"),
    (|c| matches!(c, HostChange::Nudge { .. }), "restart"),
    (|c| matches!(c, HostChange::Sysctl { .. }), "kernel setting"),
    (|c| matches!(c, HostChange::Link { .. }), "network setting"),
    (|c| matches!(c, HostChange::Hostname { .. }), "host name"),
    (|c| matches!(c, HostChange::Mount { .. }), "mount"),
    (|c| matches!(c, HostChange::Disk { .. }), "disk"),
    (|c| matches!(c, HostChange::Copy { .. }), "copied folder"),
];

fn counted<'c>(changes: impl Iterator<Item = &'c HostChange>, kind: IsKind, noun: &str) -> Option<String> {
    let things: BTreeSet<String> = changes.filter(|change| kind(change)).map(HostChange::thing).collect();
    (!things.is_empty()).then(|| count(things.len() as u64, noun))
}

fn packages<'c>(changes: impl Iterator<Item = &'c HostChange>) -> Option<String> {
    let name =
        |change: &'c HostChange| if let HostChange::Package { name, .. } = change { Some(name.as_str()) } else { None };
    let names: BTreeSet<&str> = changes.filter_map(name).collect();
    let shown: Vec<&str> = names.iter().copied().take(NAMES).collect();
    let more = names.len().saturating_sub(NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| format!("install {}{more}", shown.join(", ")))
}

/// Returns the things that a change removes.
fn removals(change: &HostChange) -> Vec<String> {
    match change {
        HostChange::Package { replaces, .. } => replaces.iter().map(|name| format!("package {name}")).collect(),
        _ if removes(change) => vec![change.thing()],
        _ => Vec::new(),
    }
}

fn removes(change: &HostChange) -> bool {
    match change {
        HostChange::File { to, .. } => to.is_none(),
        HostChange::Group { to, .. } => to.is_none(),
        HostChange::User { to, .. } => to.is_none(),
        HostChange::Disk { to, .. } => to.is_none(),
        HostChange::Member { to, .. } => !to,
        HostChange::Mount { to, .. } => !to.mounted,
        _ => false,
    }
}

fn erases(change: &HostChange) -> bool {
    matches!(change, HostChange::Disk { from: None, to: Some(_), .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::FileState;
    use crate::plan::ChangeStep;

    fn phase(of: &[(&str, HostChange)]) -> ChangePhase {
        let mut phase = ChangePhase::default();
        for (host, change) in of {
            let step = ChangeStep { change: change.clone(), undoes: None };
            phase.steps.entry((*host).into()).or_default().push(step);
        }
        phase
    }

    fn file(path: &str, is_kept: bool) -> HostChange {
        let state = FileState { content: "x".into(), mode: 0o644, uid: 0, gid: 0 };
        let (from, to) = if is_kept { (None, Some(state)) } else { (Some(state), None) };
        HostChange::File { path: path.into(), from, to, block: None }
    }

    #[test]
    fn equal_things_count_once_and_what_goes_is_named() {
        let package = |name: &str| HostChange::Package { name: name.into(), replaces: Vec::new() };
        let hosts = phase(&[("n1", file("/etc/hosts", true)), ("n2", file("/etc/hosts", true))]);
        let more = phase(&[("n2", package("chrony"))]);
        assert_eq!(summary(&[hosts.clone(), more]), "n[1-2] (2): 1 file, install chrony; nothing removed");
        let gone = phase(&[("n1", file("/etc/old", false))]);
        assert_eq!(summary(&[hosts, gone]), "n[1-2] (2): 2 files; removes /etc/old");
        let chrony = HostChange::Package { name: "chrony".into(), replaces: vec!["systemd-timesyncd".into()] };
        let expected = "n1: install chrony; removes package systemd-timesyncd";
        assert_eq!(summary(&[phase(&[("n1", chrony)])]), expected);
        let five: Vec<(&str, HostChange)> = ["a", "b", "c", "d", "e"].map(|path| ("n1", file(path, false))).into();
        assert_eq!(summary(&[phase(&five)]), "n1: 5 files; removes a, b, c, d and 1 more");
        assert_eq!(summary(&[]), "nothing to do");
    }

    #[test]
    fn a_disk_that_is_erased_is_in_capitals() {
        let fs = crate::DiskFs { kind: "xfs".into(), uuid: "u".into() };
        let disk = HostChange::Disk {
            name: "/dev/vdb".into(),
            id: "S1".into(),
            from: None,
            to: Some(fs),
            told: "1 TB".into(),
            erases: String::new(),
            facts: String::new(),
        };
        assert_eq!(summary(&[phase(&[("n3", disk)])]), "n3: 1 disk; nothing removed; ERASES disk /dev/vdb (S1)");
    }
}
