//! Summarizes a plan in one line: the number of things of each kind, and the things that are removed.

use crate::change::Change;
use crate::execute::Phase;
use homing_model::units::count;
use homing_model::{NodeSet, alike};
use std::collections::BTreeSet;

/// Number of package names that fit on a line.
const NAMES: usize = 4;

/// Returns a line such as `n[1-5] (5): 3 files, 1 user, install chrony; nothing removed`. Equal things of several
/// hosts count once.
pub fn summary(phases: &[Phase]) -> String {
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
    let erased: BTreeSet<String> = changes().filter(|change| erases(change)).map(Change::thing).collect();
    let erased = erased.into_iter().map(|disk| format!("; ERASES {disk}")).collect::<String>();
    format!("{}: {}; {removed}{erased}", alike::label(&hosts), parts.join(", "))
}

/// Whether a change is of a kind.
type IsKind = fn(&Change) -> bool;

/// Kinds that are counted, in the order of the line.
const KINDS: &[(IsKind, &str)] = &[
    (|c| matches!(c, Change::File { .. }), "file"),
    (|c| matches!(c, Change::User { .. }), "user"),
    (|c| matches!(c, Change::Group { .. }), "group"),
    (|c| matches!(c, Change::Member { .. }), "group member"),
    (|c| matches!(c, Change::Unit { .. }), "service"),
    (|c| matches!(c, Change::Nudge { .. }), "restart"),
    (|c| matches!(c, Change::Sysctl { .. }), "kernel setting"),
    (|c| matches!(c, Change::Link { .. }), "network setting"),
    (|c| matches!(c, Change::Hostname { .. }), "host name"),
    (|c| matches!(c, Change::Mount { .. }), "mount"),
    (|c| matches!(c, Change::Disk { .. }), "disk"),
    (|c| matches!(c, Change::Copy { .. }), "copied folder"),
];

fn counted<'c>(changes: impl Iterator<Item = &'c Change>, kind: IsKind, noun: &str) -> Option<String> {
    let things: BTreeSet<String> = changes.filter(|change| kind(change)).map(Change::thing).collect();
    (!things.is_empty()).then(|| count(things.len() as u64, noun))
}

fn packages<'c>(changes: impl Iterator<Item = &'c Change>) -> Option<String> {
    let name = |change: &'c Change| if let Change::Package { name, .. } = change { Some(name.as_str()) } else { None };
    let names: BTreeSet<&str> = changes.filter_map(name).collect();
    let shown: Vec<&str> = names.iter().copied().take(NAMES).collect();
    let more = names.len().saturating_sub(NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| format!("install {}{more}", shown.join(", ")))
}

/// Returns the things that a change removes.
fn removals(change: &Change) -> Vec<String> {
    match change {
        Change::Package { replaces, .. } => replaces.iter().map(|name| format!("package {name}")).collect(),
        _ if removes(change) => vec![change.thing()],
        _ => Vec::new(),
    }
}

fn removes(change: &Change) -> bool {
    match change {
        Change::File { to, .. } => to.is_none(),
        Change::Group { to, .. } => to.is_none(),
        Change::User { to, .. } => to.is_none(),
        Change::Disk { to, .. } => to.is_none(),
        Change::Member { to, .. } => !to,
        Change::Mount { to, .. } => !to.mounted,
        _ => false,
    }
}

fn erases(change: &Change) -> bool {
    matches!(change, Change::Disk { from: None, to: Some(_), .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::FileState;
    use crate::plan::Step;

    fn phase(of: &[(&str, Change)]) -> Phase {
        let mut phase = Phase::default();
        for (host, change) in of {
            let step = Step { change: change.clone(), undoes: None };
            phase.steps.entry((*host).into()).or_default().push(step);
        }
        phase
    }

    fn file(path: &str, is_kept: bool) -> Change {
        let state = FileState { content: "x".into(), mode: 0o644, uid: 0, gid: 0 };
        let (from, to) = if is_kept { (None, Some(state)) } else { (Some(state), None) };
        Change::File { path: path.into(), from, to, block: None }
    }

    #[test]
    fn equal_things_count_once_and_what_goes_is_named() {
        let package = |name: &str| Change::Package { name: name.into(), replaces: Vec::new() };
        let hosts = phase(&[("n1", file("/etc/hosts", true)), ("n2", file("/etc/hosts", true))]);
        let more = phase(&[("n2", package("chrony"))]);
        assert_eq!(summary(&[hosts.clone(), more]), "n[1-2] (2): 1 file, install chrony; nothing removed");
        let gone = phase(&[("n1", file("/etc/old", false))]);
        assert_eq!(summary(&[hosts, gone]), "n[1-2] (2): 2 files; removes /etc/old");
        let chrony = Change::Package { name: "chrony".into(), replaces: vec!["systemd-timesyncd".into()] };
        let expected = "n1: install chrony; removes package systemd-timesyncd";
        assert_eq!(summary(&[phase(&[("n1", chrony)])]), expected);
        let five: Vec<(&str, Change)> = ["a", "b", "c", "d", "e"].map(|path| ("n1", file(path, false))).into();
        assert_eq!(summary(&[phase(&five)]), "n1: 5 files; removes a, b, c, d and 1 more");
        assert_eq!(summary(&[]), "nothing to do");
    }

    #[test]
    fn a_disk_that_is_erased_is_in_capitals() {
        let fs = crate::DiskFs { kind: "xfs".into(), uuid: "u".into() };
        let disk = Change::Disk {
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
