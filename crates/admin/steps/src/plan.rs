//! Plans the steps from the present state to the wanted one.

use crate::change::{Account, FileState, HostChange, MountState, Over, UnitState};
use crate::content::FileContent;
use crate::disk_change;
use crate::edit;
use crate::observe::{Observed, PathState};
use crate::wanted::HostRequirement;
use serde::Serialize;

/// One change at its place in the order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangeStep {
    /// The change.
    pub change: HostChange,
    /// In an undo: the journal entries that it makes void. Else the step is entered into the journal.
    pub undoes: Option<Vec<String>>,
}

/// Returns the steps that make a host as wanted, and updates `seen` to that state. If there are objections, returns
/// all of them and no steps.
pub fn plan(wanted: &[HostRequirement], seen: &mut Observed) -> Result<Vec<ChangeStep>, Vec<String>> {
    let (mut after, mut steps, mut against) = (seen.clone(), Vec::new(), Vec::new());
    for one in wanted {
        match change(one, &after) {
            Ok(Some(change)) => {
                after.apply(&change);
                steps.push(ChangeStep { change, undoes: None });
            }
            Ok(None) => {}
            Err(why) => against.push(why),
        }
    }
    if against.is_empty() {
        *seen = after;
        Ok(steps)
    } else {
        Err(against)
    }
}

/// Returns the change that one thing needs; `None` if it is as wanted.
fn change(wanted: &HostRequirement, seen: &Observed) -> Result<Option<HostChange>, String> {
    let change = match wanted {
        HostRequirement::Package { name, replaces } => {
            let replaces = replaces.iter().filter(|other| seen.packages.contains(*other)).cloned().collect();
            let change = HostChange::Package { name: name.clone(), replaces };
            return Ok((!seen.packages.contains(name)).then_some(change));
        }
        HostRequirement::File { path, content, mode, owner } => whole(path, content, *mode, *owner, seen)?,
        HostRequirement::Block { path, name, lines, retire } => block(path, name, lines, retire, seen)?,
        HostRequirement::Group { name, gid } => group(name, *gid, seen)?,
        HostRequirement::User { name, account } => user(name, account, seen)?,
        HostRequirement::Member { user, group } => {
            let from = seen.groups.get(group).is_some_and(|(_, members)| members.contains(user));
            HostChange::Member { user: user.clone(), group: group.clone(), from, to: true }
        }
        HostRequirement::Unit { name, on } => unit(name, *on, *on, seen),
        HostRequirement::AtBoot(name) => {
            let active = seen.units.get(name).is_some_and(|(state, _)| state.active);
            unit(name, true, active, seen)
        }
        HostRequirement::Reads { unit, paths, how, test } => {
            let since = seen.units.get(unit).filter(|(state, _)| state.active).map_or(u64::MAX, |(_, at)| *at);
            let written = |path: &String| match seen.files.get(path) {
                Some(PathState::File(_, at) | PathState::Folder(at)) => *at > since,
                _ => false,
            };
            let nudge = HostChange::Nudge { unit: unit.clone(), how: *how, test: test.clone() };
            return Ok(paths.iter().any(written).then_some(nudge));
        }
        HostRequirement::Sysctl { key, value } => {
            let from = seen.sysctls.get(key).ok_or_else(|| format!("its kernel has no setting {key}"))?;
            HostChange::Sysctl { key: key.clone(), from: from.clone(), to: words(value) }
        }
        HostRequirement::Link { interface, setting, value } => {
            let from = seen.links.get(interface).and_then(|link| link.value(setting));
            let from = from.ok_or_else(|| format!("{interface} has no {setting} that can be set"))?;
            let (interface, setting) = (interface.clone(), setting.clone());
            HostChange::Link { interface, setting, from: from.into(), to: value.clone() }
        }
        HostRequirement::Hostname(name) => HostChange::Hostname { from: seen.hostname.clone(), to: name.clone() },
        HostRequirement::Mount { point, over, disk } => mount(point, over.as_ref(), *disk, seen)?,
        HostRequirement::Disk { name, fs, wipe } => return disk_change::change(name, fs, wipe.as_deref(), seen),
        HostRequirement::Copy { from, to, host } => {
            return Ok(Some(HostChange::Copy { from: from.clone(), to: to.clone(), host: host.clone() }));
        }
    };
    Ok((!change.is_nothing()).then_some(change))
}

/// Joins words with blanks: the kernel separates numbers by tabs, people by blanks.
fn words(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn present<'s>(path: &str, seen: &'s Observed) -> Result<Option<&'s FileState>, String> {
    match seen.files.get(path) {
        Some(PathState::File(state, _)) => Ok(Some(state)),
        Some(PathState::Folder(_) | PathState::Other) => Err(format!("{path} is not a regular file there")),
        Some(PathState::Absent) | None => Ok(None),
    }
}

fn whole(
    path: &str,
    content: &FileContent,
    mode: u32,
    owner: (u32, u32),
    seen: &Observed,
) -> Result<HostChange, String> {
    let from = present(path, seen)?.cloned();
    let to = FileState { content: content.clone(), mode, uid: owner.0, gid: owner.1 };
    Ok(HostChange::File { path: path.into(), from, to: Some(to), block: None })
}

fn block(path: &str, name: &str, lines: &str, retire: &[String], seen: &Observed) -> Result<HostChange, String> {
    let from = present(path, seen)?.cloned();
    let old = match &from {
        Some(state) => state.content.text().ok_or_else(|| format!("{path} is not a text file there"))?,
        None => "",
    };
    let new =
        edit::with_block(&edit::retire(old, retire), name, Some(lines)).map_err(|why| format!("{path}: {why}"))?;
    let like = from.clone().unwrap_or(FileState { content: FileContent::default(), mode: 0o644, uid: 0, gid: 0 });
    let to = Some(FileState { content: new.into(), ..like });
    Ok(HostChange::File { path: path.into(), from, to, block: Some(name.into()) })
}

fn group(name: &str, gid: u32, seen: &Observed) -> Result<HostChange, String> {
    let from = seen.groups.get(name).map(|(gid, _)| *gid);
    match from {
        Some(other) if other != gid => {
            return Err(format!("group {name} has number {other} there, not {gid}; homing renumbers no group"));
        }
        None => {
            if let Some((holder, _)) = seen.groups.iter().find(|(_, (taken, _))| *taken == gid) {
                return Err(format!("number {gid}, wanted for group {name}, belongs to group {holder} there"));
            }
        }
        _ => {}
    }
    Ok(HostChange::Group { name: name.into(), from, to: Some(gid) })
}

fn user(name: &str, account: &Account, seen: &Observed) -> Result<HostChange, String> {
    let from = seen.users.get(name).cloned();
    match &from {
        Some(there) if there.uid != account.uid => Err(format!(
            "user {name} has number {} there, not {}; homing renumbers no user (files of that number: \
             find / -xdev -uid {})",
            there.uid, account.uid, there.uid
        )),
        Some(there) if there.gid != account.gid => {
            Err(format!("the group of user {name} has number {} there, not {}", there.gid, account.gid))
        }
        Some(there) => Ok(HostChange::User { name: name.into(), from: Some(there.clone()), to: Some(there.clone()) }),
        None => match seen.users.iter().find(|(_, taken)| taken.uid == account.uid) {
            Some((holder, _)) => {
                Err(format!("number {}, wanted for user {name}, belongs to user {holder} there", account.uid))
            }
            None => Ok(HostChange::User { name: name.into(), from: None, to: Some(account.clone()) }),
        },
    }
}

/// Plans the state of a unit. A unit that does not exist counts as one that is off.
fn unit(name: &str, enabled: bool, active: bool, seen: &Observed) -> HostChange {
    let from = seen.units.get(name).map(|(state, _)| *state).unwrap_or_default();
    HostChange::Unit { name: name.into(), from, to: UnitState { enabled, active } }
}

fn mount(point: &str, over: Option<&Over>, disk: bool, seen: &Observed) -> Result<HostChange, String> {
    let (from, files) = seen.mounts.get(point).copied().unwrap_or_default();
    if files && !from.mounted && over.is_none() {
        return Err(format!("{point} contains files, which a mount would hide"));
    }
    let to = MountState { exists: true, mounted: true };
    Ok(HostChange::Mount { point: point.into(), from, to, over: over.cloned(), disk })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::change::How;

    pub(crate) fn host() -> Observed {
        let root = Account { uid: 0, gid: 0, home: "/root".into(), shell: "/bin/sh".into() };
        let hosts = FileState { content: "127.0.0.1 localhost\n127.0.1.1 n1\n".into(), mode: 0o644, uid: 0, gid: 0 };
        let mut seen = Observed { hostname: "n1".into(), ..Observed::default() };
        seen.users.insert("root".into(), root);
        seen.groups.insert("root".into(), (0, Default::default()));
        seen.files.insert("/etc/hosts".into(), PathState::File(hosts, 5));
        seen.units.insert("ssh".into(), (UnitState { enabled: true, active: true }, 10));
        seen.sysctls.insert("a.b".into(), "1 2".into());
        seen
    }

    pub(crate) fn all() -> Vec<HostRequirement> {
        let alice = Account { uid: 1001, gid: 1001, home: "/home/alice".into(), shell: "/bin/bash".into() };
        vec![
            HostRequirement::Package { name: "chrony".into(), replaces: vec![] },
            HostRequirement::File { path: "/etc/new".into(), content: "x\n".into(), mode: 0o600, owner: (0, 0) },
            HostRequirement::Block {
                path: "/etc/hosts".into(),
                name: "names".into(),
                lines: "10.0.0.1 n1\n".into(),
                retire: vec!["127.0.1.1 n1".into()],
            },
            HostRequirement::Group { name: "alice".into(), gid: 1001 },
            HostRequirement::User { name: "alice".into(), account: alice },
            HostRequirement::Group { name: "lab".into(), gid: 2000 },
            HostRequirement::Member { user: "alice".into(), group: "lab".into() },
            HostRequirement::Unit { name: "chrony".into(), on: true },
            HostRequirement::Reads { unit: "ssh".into(), paths: vec!["/etc/new".into()], how: How::Reload, test: None },
            HostRequirement::Sysctl { key: "a.b".into(), value: "3  4".into() },
            HostRequirement::Hostname("n1".into()),
            HostRequirement::Mount { point: "/data".into(), over: None, disk: false },
        ]
    }

    #[test]
    fn nothing_is_planned_that_is_so_already() {
        let mut seen = host();
        let steps = plan(&all(), &mut seen).unwrap();
        assert_eq!(steps.len(), all().len() - 1, "the name is right already: {steps:?}");
        assert_eq!(plan(&all(), &mut seen), Ok(Vec::new()));
        let names = seen.text("/etc/hosts").unwrap();
        assert!(names.contains("#homing: 127.0.1.1 n1\n") && names.contains("\n10.0.0.1 n1\n"), "{names}");
    }

    #[test]
    fn a_number_that_is_somebody_elses_is_named_and_nothing_is_planned() {
        let mut seen = host();
        let bob = Account { uid: 1001, gid: 0, home: "/".into(), shell: "/bin/sh".into() };
        seen.users.insert("bob".into(), bob.clone());
        let before = seen.clone();
        let against = plan(&all(), &mut seen).unwrap_err();
        assert_eq!(against, ["number 1001, wanted for user alice, belongs to user bob there"]);
        assert_eq!(seen, before);
        seen.users.remove("bob");
        seen.users.insert("alice".into(), Account { uid: 1007, ..bob });
        assert!(plan(&all(), &mut seen).unwrap_err()[0].contains("user alice has number 1007 there, not 1001"));
    }

    #[test]
    fn a_unit_that_has_not_read_its_file_since_is_told_to() {
        let reads = [HostRequirement::Reads {
            unit: "ssh".into(),
            paths: vec!["/etc/hosts".into()],
            how: How::Restart,
            test: None,
        }];
        let mut seen = host();
        assert_eq!(plan(&reads, &mut seen), Ok(Vec::new()), "it was started after the file was written");
        let since = std::mem::replace(&mut seen.units.get_mut("ssh").unwrap().1, 4);
        assert_eq!(plan(&reads, &mut seen).unwrap().len(), 1, "killed between the file and the unit");
        seen.units.get_mut("ssh").unwrap().1 = since;
        seen.files.insert("/etc/hosts".into(), PathState::Folder(since + 1));
        assert_eq!(plan(&reads, &mut seen).unwrap().len(), 1, "a file of the folder was removed");
    }

    #[test]
    fn what_a_mount_would_hide_or_a_link_leads_to_stands_against_it() {
        let mut seen = host();
        seen.mounts.insert("/data".into(), (MountState { exists: true, mounted: false }, true));
        seen.files.insert("/etc/new".into(), PathState::Other);
        let against = plan(&all(), &mut seen).unwrap_err();
        assert_eq!(against, ["/etc/new is not a regular file there", "/data contains files, which a mount would hide"]);
    }
}
