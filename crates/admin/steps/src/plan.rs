//! Plans the steps from the present state to the wanted one.

use crate::change::{Account, Change, FileState, MountState, Over, UnitState};
use crate::content::Content;
use crate::disk_change;
use crate::edit;
use crate::observe::{Observed, Seen};
use crate::wanted::Wanted;
use serde::Serialize;

/// One change at its place in the order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The change.
    pub change: Change,
    /// In an undo: the journal entries that it makes void. Else the step is entered into the journal.
    pub undoes: Option<Vec<String>>,
}

/// Returns the steps that make a host as wanted, and updates `seen` to that state. If there are objections, returns
/// all of them and no steps.
pub fn plan(wanted: &[Wanted], seen: &mut Observed) -> Result<Vec<Step>, Vec<String>> {
    let (mut after, mut steps, mut against) = (seen.clone(), Vec::new(), Vec::new());
    for one in wanted {
        match change(one, &after) {
            Ok(Some(change)) => {
                after.apply(&change);
                steps.push(Step { change, undoes: None });
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
fn change(wanted: &Wanted, seen: &Observed) -> Result<Option<Change>, String> {
    let change = match wanted {
        Wanted::Package { name, replaces } => {
            let replaces = replaces.iter().filter(|other| seen.packages.contains(*other)).cloned().collect();
            let change = Change::Package { name: name.clone(), replaces };
            return Ok((!seen.packages.contains(name)).then_some(change));
        }
        Wanted::File { path, content, mode, owner } => whole(path, content, *mode, *owner, seen)?,
        Wanted::Block { path, name, lines, retire } => block(path, name, lines, retire, seen)?,
        Wanted::Group { name, gid } => group(name, *gid, seen)?,
        Wanted::User { name, account } => user(name, account, seen)?,
        Wanted::Member { user, group } => {
            let from = seen.groups.get(group).is_some_and(|(_, members)| members.contains(user));
            Change::Member { user: user.clone(), group: group.clone(), from, to: true }
        }
        Wanted::Unit { name, on } => unit(name, *on, *on, seen),
        Wanted::AtBoot(name) => {
            let active = seen.units.get(name).is_some_and(|(state, _)| state.active);
            unit(name, true, active, seen)
        }
        Wanted::Reads { unit, paths, how, test } => {
            let since = seen.units.get(unit).filter(|(state, _)| state.active).map_or(u64::MAX, |(_, at)| *at);
            let written = |path: &String| matches!(seen.files.get(path), Some(Seen::File(_, at)) if *at > since);
            let nudge = Change::Nudge { unit: unit.clone(), how: *how, test: test.clone() };
            return Ok(paths.iter().any(written).then_some(nudge));
        }
        Wanted::Sysctl { key, value } => {
            let from = seen.sysctls.get(key).ok_or_else(|| format!("the kernel knows no {key}"))?;
            Change::Sysctl { key: key.clone(), from: from.clone(), to: words(value) }
        }
        Wanted::Link { interface, setting, value } => {
            let from = seen.links.get(interface).and_then(|link| link.value(setting));
            let from = from.ok_or_else(|| format!("{interface} has no {setting} that can be set"))?;
            let (interface, setting) = (interface.clone(), setting.clone());
            Change::Link { interface, setting, from: from.into(), to: value.clone() }
        }
        Wanted::Hostname(name) => Change::Hostname { from: seen.hostname.clone(), to: name.clone() },
        Wanted::Mount { point, over, disk } => mount(point, over.as_ref(), *disk, seen)?,
        Wanted::Disk { name, fs, wipe } => return disk_change::change(name, fs, wipe.as_deref(), seen),
        Wanted::Copy { from, to, host } => {
            return Ok(Some(Change::Copy { from: from.clone(), to: to.clone(), host: host.clone() }));
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
        Some(Seen::File(state, _)) => Ok(Some(state)),
        Some(Seen::Other) => Err(format!("{path} is no regular file there")),
        Some(Seen::Absent) | None => Ok(None),
    }
}

fn whole(path: &str, content: &Content, mode: u32, owner: (u32, u32), seen: &Observed) -> Result<Change, String> {
    let from = present(path, seen)?.cloned();
    let to = FileState { content: content.clone(), mode, uid: owner.0, gid: owner.1 };
    Ok(Change::File { path: path.into(), from, to: Some(to), block: None })
}

fn block(path: &str, name: &str, lines: &str, retire: &[String], seen: &Observed) -> Result<Change, String> {
    let from = present(path, seen)?.cloned();
    let old = match &from {
        Some(state) => state.content.text().ok_or_else(|| format!("{path} is no text there"))?,
        None => "",
    };
    let new =
        edit::with_block(&edit::retire(old, retire), name, Some(lines)).map_err(|why| format!("{path}: {why}"))?;
    let like = from.clone().unwrap_or(FileState { content: Content::default(), mode: 0o644, uid: 0, gid: 0 });
    let to = Some(FileState { content: new.into(), ..like });
    Ok(Change::File { path: path.into(), from, to, block: Some(name.into()) })
}

fn group(name: &str, gid: u32, seen: &Observed) -> Result<Change, String> {
    let from = seen.groups.get(name).map(|(gid, _)| *gid);
    match from {
        Some(other) if other != gid => {
            return Err(format!("group {name} has number {other} there, not {gid}; nobody is renumbered"));
        }
        None => {
            if let Some((holder, _)) = seen.groups.iter().find(|(_, (taken, _))| *taken == gid) {
                return Err(format!("number {gid}, meant for group {name}, is that of group {holder} there"));
            }
        }
        _ => {}
    }
    Ok(Change::Group { name: name.into(), from, to: Some(gid) })
}

fn user(name: &str, account: &Account, seen: &Observed) -> Result<Change, String> {
    let from = seen.users.get(name).cloned();
    match &from {
        Some(there) if there.uid != account.uid => Err(format!(
            "user {name} has number {} there, not {}; nobody is renumbered (files of that number: \
             find / -xdev -uid {})",
            there.uid, account.uid, there.uid
        )),
        Some(there) if there.gid != account.gid => {
            Err(format!("the group of user {name} has number {} there, not {}", there.gid, account.gid))
        }
        Some(there) => Ok(Change::User { name: name.into(), from: Some(there.clone()), to: Some(there.clone()) }),
        None => match seen.users.iter().find(|(_, taken)| taken.uid == account.uid) {
            Some((holder, _)) => {
                Err(format!("number {}, meant for user {name}, is that of user {holder} there", account.uid))
            }
            None => Ok(Change::User { name: name.into(), from: None, to: Some(account.clone()) }),
        },
    }
}

/// Plans the state of a unit. A unit that does not exist counts as one that is off.
fn unit(name: &str, enabled: bool, active: bool, seen: &Observed) -> Change {
    let from = seen.units.get(name).map(|(state, _)| *state).unwrap_or_default();
    Change::Unit { name: name.into(), from, to: UnitState { enabled, active } }
}

fn mount(point: &str, over: Option<&Over>, disk: bool, seen: &Observed) -> Result<Change, String> {
    let (from, files) = seen.mounts.get(point).copied().unwrap_or_default();
    if files && !from.mounted && over.is_none() {
        return Err(format!("{point} holds files, which a mount would hide"));
    }
    let to = MountState { exists: true, mounted: true };
    Ok(Change::Mount { point: point.into(), from, to, over: over.cloned(), disk })
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
        seen.files.insert("/etc/hosts".into(), Seen::File(hosts, 5));
        seen.units.insert("ssh".into(), (UnitState { enabled: true, active: true }, 10));
        seen.sysctls.insert("a.b".into(), "1 2".into());
        seen
    }

    pub(crate) fn all() -> Vec<Wanted> {
        let alice = Account { uid: 1001, gid: 1001, home: "/home/alice".into(), shell: "/bin/bash".into() };
        vec![
            Wanted::Package { name: "chrony".into(), replaces: vec![] },
            Wanted::File { path: "/etc/new".into(), content: "x\n".into(), mode: 0o600, owner: (0, 0) },
            Wanted::Block {
                path: "/etc/hosts".into(),
                name: "names".into(),
                lines: "10.0.0.1 n1\n".into(),
                retire: vec!["127.0.1.1 n1".into()],
            },
            Wanted::Group { name: "alice".into(), gid: 1001 },
            Wanted::User { name: "alice".into(), account: alice },
            Wanted::Group { name: "lab".into(), gid: 2000 },
            Wanted::Member { user: "alice".into(), group: "lab".into() },
            Wanted::Unit { name: "chrony".into(), on: true },
            Wanted::Reads { unit: "ssh".into(), paths: vec!["/etc/new".into()], how: How::Reload, test: None },
            Wanted::Sysctl { key: "a.b".into(), value: "3  4".into() },
            Wanted::Hostname("n1".into()),
            Wanted::Mount { point: "/data".into(), over: None, disk: false },
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
        assert_eq!(against, ["number 1001, meant for user alice, is that of user bob there"]);
        assert_eq!(seen, before);
        seen.users.remove("bob");
        seen.users.insert("alice".into(), Account { uid: 1007, ..bob });
        assert!(plan(&all(), &mut seen).unwrap_err()[0].contains("user alice has number 1007 there, not 1001"));
    }

    #[test]
    fn a_unit_that_has_not_read_its_file_since_is_told_to() {
        let reads =
            [Wanted::Reads { unit: "ssh".into(), paths: vec!["/etc/hosts".into()], how: How::Restart, test: None }];
        let mut seen = host();
        assert_eq!(plan(&reads, &mut seen), Ok(Vec::new()), "it was started after the file was written");
        seen.units.get_mut("ssh").unwrap().1 = 4;
        assert_eq!(plan(&reads, &mut seen).unwrap().len(), 1, "killed between the file and the unit");
    }

    #[test]
    fn what_a_mount_would_hide_or_a_link_leads_to_stands_against_it() {
        let mut seen = host();
        seen.mounts.insert("/data".into(), (MountState { exists: true, mounted: false }, true));
        seen.files.insert("/etc/new".into(), Seen::Other);
        let against = plan(&all(), &mut seen).unwrap_err();
        assert_eq!(against, ["/etc/new is no regular file there", "/data holds files, which a mount would hide"]);
    }
}
