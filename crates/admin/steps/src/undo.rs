//! Plans the undo, from a host's journal and its present state.

use crate::change::{FileState, HostChange, MountState};
use crate::disk_change::{self, Back};
use crate::edit;
use crate::observe::{Observed, PathState};
use crate::plan::ChangeStep;
use serde_json::Value;
use std::collections::BTreeMap;

/// The undo of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// The steps, in order.
    pub steps: Vec<ChangeStep>,
    /// Journal entries of things that were restored already, or that are never restored.
    pub void: Vec<String>,
    /// Things that stay because they were changed since; their entries stay, too.
    pub changed: Vec<String>,
    /// Packages, copies, and file systems that hold files, which stay.
    pub stay: Vec<String>,
}

/// Undoes all changes that homing has made, the last first; units read their files again at the end.
pub fn undo(seen: &Observed) -> Undone {
    let mut undone = Undone::default();
    // One file may contain two blocks: the second is removed from the result of removing the first.
    let mut after = seen.clone();
    let mut nudges = Vec::new();
    for (thing, entries) in things(seen).into_iter().rev() {
        let names: Vec<String> = entries.iter().map(|(name, _)| name.clone()).collect();
        let (change, unbroken) = whole(&entries);
        match &change {
            // A package that could not be installed, for example without a connection to a mirror, has left nothing.
            HostChange::Package { name, .. } if !seen.packages.contains(name) => {
                undone.void.extend(names);
                continue;
            }
            HostChange::Package { .. } | HostChange::Copy { .. } => {
                undone.stay.push(change.thing());
                undone.void.extend(names);
                continue;
            }
            HostChange::Disk { name, id, from, to: Some(fs), .. } => {
                match disk_change::back(name, id, (from.as_ref(), fs), &after) {
                    Back::Goes => {}
                    Back::Gone => {
                        undone.void.extend(names);
                        continue;
                    }
                    Back::Stays(what) => {
                        undone.stay.push(what);
                        undone.void.extend(names);
                        continue;
                    }
                }
            }
            HostChange::Nudge { .. } => {
                nudges.push(ChangeStep { change, undoes: Some(names) });
                continue;
            }
            _ => {}
        }
        match back(&change, unbroken, &after) {
            Ok(Some(change)) => {
                after.apply(&change);
                undone.steps.push(ChangeStep { change, undoes: Some(names) });
            }
            Ok(None) => undone.void.extend(names),
            Err(why) => undone.changed.push(format!("{thing}: {why}")),
        }
    }
    if undone.steps.is_empty() {
        undone.void.extend(nudges.into_iter().flat_map(|step| step.undoes.unwrap_or_default()));
    } else {
        undone.steps.extend(nudges);
    }
    undone
}

/// A thing that homing has made and that differs now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// The thing, and its difference in words.
    pub what: String,
    /// For a file: the change since, from the text that homing wrote to the present one.
    pub since: Option<HostChange>,
}

/// Returns the things that homing has made and that differ now.
pub fn drift(seen: &Observed) -> Vec<Drift> {
    let differs = |(thing, entries): (String, Vec<(String, HostChange)>)| {
        let (change, _) = whole(&entries);
        let what = match &change {
            HostChange::Nudge { .. } | HostChange::Copy { .. } => None,
            HostChange::Package { name, .. } => (!seen.packages.contains(name)).then(|| format!("{thing} is gone")),
            HostChange::File { path, to: Some(to), block: Some(block), .. } => {
                let text = to.content.text().unwrap_or("");
                let now = seen.text(path).and_then(|now| edit::block_of(now, block));
                (now != edit::block_of(text, block)).then(|| format!("{thing}: block {block} was changed since"))
            }
            _ => (now(&change, seen) != ends(&change)["to"]).then(|| format!("{thing} was changed since")),
        };
        what.map(|what| Drift { what, since: since(&change, seen) })
    };
    things(seen).into_iter().filter_map(differs).collect()
}

/// Returns the change of a file since homing wrote it; of a block, the change of its lines. `None` for another thing.
fn since(change: &HostChange, seen: &Observed) -> Option<HostChange> {
    let HostChange::File { path, to, block, .. } = change else { return None };
    let there = match seen.files.get(path) {
        Some(PathState::File(state, _)) => Some(state.clone()),
        Some(PathState::Folder(_) | PathState::Other) => return None,
        _ => None,
    };
    let lines = |state: &Option<FileState>| {
        let Some(block) = block else { return state.clone() };
        let lines = edit::block_of(state.as_ref()?.content.text()?, block)?;
        Some(FileState { content: lines.into(), ..state.clone()? })
    };
    Some(HostChange::File { path: path.clone(), from: lines(to), to: lines(&there), block: block.clone() })
}

/// Returns the facts for the undo of one set-up: without the journal entries of others. `is_own` decides by the
/// recorded cluster file. Entries of older versions have none, and belong to every set-up. Also returns the other
/// set-ups, each with the number of its entries.
pub fn of_owner(seen: &Observed, is_own: impl Fn(&str) -> bool) -> (Observed, BTreeMap<String, usize>) {
    let (mut own, mut others) = (seen.clone(), BTreeMap::<String, usize>::new());
    own.journal.retain(|(entry, _)| match seen.owners.get(entry).filter(|owner| !is_own(owner)) {
        Some(owner) => {
            *others.entry(owner.clone()).or_default() += 1;
            false
        }
        None => true,
    });
    (own, others)
}

/// Groups entries by the thing that they changed, in the order in which homing first changed each thing.
fn things(seen: &Observed) -> Vec<(String, Vec<(String, HostChange)>)> {
    let mut all: Vec<(String, Vec<(String, HostChange)>)> = Vec::new();
    for (name, change) in &seen.journal {
        let entry = (name.clone(), change.clone());
        match all.iter_mut().find(|(_, entries)| is_same(&entries[0].1, change)) {
            Some((_, entries)) => entries.push(entry),
            None => all.push((change.thing(), vec![entry])),
        }
    }
    all
}

/// Whether two changes concern the same thing, or the same block of a file.
fn is_same(a: &HostChange, b: &HostChange) -> bool {
    let block = |change: &HostChange| if let HostChange::File { block, .. } = change { block.clone() } else { None };
    a.thing() == b.thing() && block(a) == block(b)
}

/// Returns a change as a value, whose two ends can be compared.
fn ends(change: &HostChange) -> Value {
    serde_json::to_value(change).unwrap_or_default()
}

/// Joins the last changes of a thing while each begins where the previous one ended: changes by others between two of
/// homing's stay. A block belongs to homing all the time. `false` means that the text outside of the block has
/// changed in between.
fn whole(entries: &[(String, HostChange)]) -> (HostChange, bool) {
    let last = &entries[entries.len() - 1].1;
    let (mut joined, mut unbroken) = (ends(last), true);
    for (_, earlier) in entries.iter().rev().skip(1) {
        let is_block = matches!(earlier, HostChange::File { block: Some(_), .. });
        let is_mount = matches!(earlier, HostChange::Mount { .. });
        let earlier = ends(earlier);
        // The mount's folder was made, and then homing was killed.
        let half = is_mount && !(earlier["from"]["mounted"] == true || joined["from"]["mounted"] == true);
        if !half && earlier["to"] != joined["from"] && earlier["from"] != joined["from"] {
            unbroken = false;
            if !is_block {
                return (of_ends(joined, last), true);
            }
        }
        joined["from"] = earlier["from"].clone();
    }
    (of_ends(joined, last), unbroken)
}

fn of_ends(ends: Value, like: &HostChange) -> HostChange {
    serde_json::from_value(ends).unwrap_or_else(|_| like.clone())
}

/// Returns the present state of a thing, in the form of an end of its change.
fn now(change: &HostChange, seen: &Observed) -> Value {
    let value = match change {
        HostChange::File { path, .. } => match seen.files.get(path) {
            Some(PathState::File(state, _)) => serde_json::to_value(state),
            Some(PathState::Folder(_) | PathState::Other) => return "other".into(),
            _ => return Value::Null,
        },
        HostChange::Group { name, .. } => serde_json::to_value(seen.groups.get(name).map(|(gid, _)| gid)),
        HostChange::User { name, .. } => serde_json::to_value(seen.users.get(name)),
        HostChange::Member { user, group, .. } => {
            return seen.groups.get(group).is_some_and(|(_, members)| members.contains(user)).into();
        }
        HostChange::Unit { name, .. } => {
            serde_json::to_value(seen.units.get(name).map(|(state, _)| *state).unwrap_or_default())
        }
        HostChange::Sysctl { key, .. } => serde_json::to_value(seen.sysctls.get(key)),
        HostChange::Link { interface, setting, .. } => {
            serde_json::to_value(seen.links.get(interface).and_then(|link| link.value(setting)))
        }
        HostChange::Hostname { .. } => return seen.hostname.as_str().into(),
        HostChange::Mount { point, .. } => {
            serde_json::to_value(seen.mounts.get(point).map(|(state, _)| *state).unwrap_or_default())
        }
        HostChange::Disk { name, id, to, .. } => {
            let fs = to.as_ref().filter(|fs| disk_change::of(name, id, seen).is_some_and(|disk| disk.has(&fs.uuid)));
            serde_json::to_value(fs)
        }
        HostChange::Nudge { .. } | HostChange::Package { .. } | HostChange::Copy { .. } => return Value::Null,
    };
    value.unwrap_or_default()
}

/// Returns the change that restores the state from before; `None` if that is in force already.
fn back(change: &HostChange, unbroken: bool, seen: &Observed) -> Result<Option<HostChange>, String> {
    let (now, ends) = (now(change, seen), ends(change));
    if matches!(change, HostChange::Disk { .. }) {
        return Ok(change.inverse());
    }
    if let HostChange::Unit { name, .. } = change
        && !seen.units.contains_key(name)
        && now != ends["from"]
    {
        return Err("it no longer exists".into());
    }
    if now == ends["to"] && unbroken {
        return Ok(change.inverse().filter(|back| !back.is_nothing()));
    }
    if now == ends["from"] {
        // The entry is missing in the database alone: its other files are checked, too.
        let is_made = matches!(change, HostChange::User { from: None, .. } | HostChange::Group { from: None, .. });
        let rest = is_made && seen.rests.contains(&change.thing());
        return Ok(change.inverse().filter(|_| rest));
    }
    let changed = || "it was changed since; it stays as it is".to_string();
    match change {
        HostChange::File { path, from, to: Some(to), block: Some(block) } => match seen.files.get(path) {
            Some(PathState::File(there, _)) => {
                block_back(path, from.as_ref(), to, block, there).map(Some).ok_or_else(changed)
            }
            _ => Err(changed()),
        },
        // The mount failed, its disk is gone, or somebody has unmounted it; only an empty folder is left of it.
        HostChange::Mount { over: None, to: MountState { mounted: true, .. }, .. } if now["mounted"] == false => {
            let mut back = change.inverse();
            if let (Some(HostChange::Mount { from, .. }), Ok(there)) = (&mut back, serde_json::from_value(now)) {
                *from = there;
            }
            Ok(back)
        }
        _ => Err(changed()),
    }
}

/// Removes the block from a file that was edited outside of it.
fn block_back(
    path: &str,
    from: Option<&FileState>,
    to: &FileState,
    block: &str,
    there: &FileState,
) -> Option<HostChange> {
    let (text, written) = (there.content.text()?, to.content.text()?);
    if edit::block_of(text, block)? != edit::block_of(written, block)? {
        return None;
    }
    let before = from.and_then(|state| edit::block_of(state.content.text()?, block));
    let text = edit::restore(&edit::with_block(text, block, before).ok()?);
    let back = FileState { content: text.into(), ..there.clone() };
    Some(HostChange::File { path: path.into(), from: Some(there.clone()), to: Some(back), block: Some(block.into()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{Account, UnitState};
    use crate::plan::plan;
    use crate::plan::tests::{all, host};
    use crate::show::diff;
    use crate::wanted::HostRequirement;

    /// Carries steps out on an observed state.
    fn carry(seen: &mut Observed, steps: &[ChangeStep]) {
        for step in steps {
            seen.apply(&step.change);
            match &step.undoes {
                None => seen.journal.push((format!("{:08}.json", seen.journal.len() + 1), step.change.clone())),
                Some(names) => seen.journal.retain(|(name, _)| !names.contains(name)),
            }
        }
    }

    /// The state without times and packages, which cannot be restored, and with units that are off removed.
    fn bare(mut seen: Observed) -> Observed {
        seen.units.retain(|_, (state, at)| {
            *at = 0;
            *state != UnitState::default()
        });
        for file in seen.files.values_mut() {
            if let PathState::File(_, at) = file {
                *at = 0;
            }
        }
        seen.files.retain(|_, file| *file != PathState::Absent);
        seen.mounts.retain(|_, (state, _)| *state != Default::default());
        seen.packages.clear();
        seen
    }

    fn whats(seen: &Observed) -> Vec<String> {
        drift(seen).into_iter().map(|drift| drift.what).collect()
    }

    #[test]
    fn an_undo_takes_back_what_its_own_cluster_file_made() {
        let mut seen = host();
        let add = |name: &str| HostChange::Group { name: name.into(), from: None, to: Some(7) };
        for (n, (group, owner)) in
            [("a", Some("adm:/a.toml")), ("b", Some("adm:/b.toml")), ("old", None)].iter().enumerate()
        {
            seen.apply(&add(group));
            let entry = format!("{n:08}.json");
            seen.owners.extend(owner.map(|owner| (entry.clone(), owner.to_string())));
            seen.journal.push((entry, add(group)));
        }
        let (own, others) = of_owner(&seen, |owner| owner == "adm:/a.toml");
        let things: Vec<String> = undo(&own).steps.iter().map(|step| step.change.thing()).collect();
        assert_eq!(things, ["group old", "group a"], "an entry without a cluster file is of an older version");
        assert_eq!(others, [("adm:/b.toml".to_string(), 1)].into());
    }

    fn set_up() -> Observed {
        let mut seen = host();
        let steps = plan(&all(), &mut seen.clone()).unwrap();
        carry(&mut seen, &steps);
        seen
    }

    #[test]
    fn all_goes_back_to_what_it_was_wherever_it_was_killed() {
        let steps = plan(&all(), &mut host()).unwrap();
        for killed in 0..=steps.len() {
            let mut seen = host();
            carry(&mut seen, &steps[..killed]);
            // The step was entered into the journal, but not carried out.
            if let Some(next) = steps.get(killed) {
                seen.journal.push(("99999999.json".into(), next.change.clone()));
            }
            let undone = undo(&seen);
            assert_eq!(undone.changed, Vec::<String>::new());
            carry(&mut seen, &undone.steps);
            seen.journal.retain(|(name, _)| !undone.void.contains(name));
            assert_eq!(bare(seen), bare(host()), "killed at {killed}");
        }
    }

    #[test]
    fn what_a_power_cut_amid_userdel_has_left_goes_too() {
        let mut seen = set_up();
        seen.users.remove("alice");
        seen.groups.remove("alice");
        let lines = ["user alice", "group alice", "user other"].map(String::from);
        seen.rests.extend(lines);
        let undone = undo(&seen);
        let things: Vec<String> = undone.steps.iter().map(|step| step.change.thing()).collect();
        assert!(things.contains(&"user alice".into()) && things.contains(&"group alice".into()), "{things:?}");
        carry(&mut seen, &undone.steps);
        assert_eq!(seen.rests, ["user other".to_string()].into());
    }

    #[test]
    fn what_somebody_has_changed_since_stays_and_is_named() {
        let mut seen = set_up();
        let theirs = FileState { content: "theirs".into(), mode: 0o600, uid: 0, gid: 0 };
        seen.files.insert("/etc/new".into(), PathState::File(theirs.clone(), 7));
        let shell = Account { shell: "/bin/zsh".into(), ..seen.users["alice"].clone() };
        seen.users.insert("alice".into(), shell);
        assert_eq!(whats(&seen), ["/etc/new was changed since", "user alice was changed since"]);
        let diffs: Vec<_> = drift(&seen).into_iter().map(|drift| drift.since.and_then(|since| diff(&since))).collect();
        assert!(diffs[0].is_some() && diffs[1].is_none(), "{diffs:?}");
        let undone = undo(&seen);
        assert_eq!(undone.changed.len(), 2, "{:?}", undone.changed);
        assert!(undone.changed[1].starts_with("/etc/new: it was changed since"), "{:?}", undone.changed);
        assert_eq!(undone.stay, ["package chrony"]);
        carry(&mut seen, &undone.steps);
        assert_eq!(seen.files["/etc/new"], PathState::File(theirs, 7));
        assert_eq!(seen.groups.get("lab"), None, "the others go back");
    }

    #[test]
    fn a_package_that_was_never_installed_is_not_said_to_stay() {
        let mut seen = set_up();
        seen.packages.clear();
        let undone = undo(&seen);
        assert!(undone.stay.is_empty(), "{:?}", undone.stay);
        seen.journal.retain(|(name, _)| undone.void.contains(name));
        assert!(
            seen.journal.iter().any(|(_, change)| matches!(change, HostChange::Package { .. })),
            "its entry is void"
        );
    }

    #[test]
    fn an_edit_outside_of_the_block_stays_one_inside_is_not_taken_away() {
        let mut seen = set_up();
        let Some(PathState::File(state, _)) = seen.files.get("/etc/hosts").cloned() else { panic!() };
        let text = state.content.text().unwrap().to_string();
        let edited = FileState { content: format!("# mine\n{text}1.2.3.4 other\n").into(), ..state.clone() };
        seen.files.insert("/etc/hosts".into(), PathState::File(edited, 7));
        assert_eq!(drift(&seen), []);
        let mut after = seen.clone();
        carry(&mut after, &undo(&seen).steps);
        let old = "127.0.0.1 localhost\n127.0.1.1 n1\n";
        assert_eq!(after.text("/etc/hosts").unwrap(), format!("# mine\n{old}1.2.3.4 other\n"));
        let inside = FileState { content: text.replace("10.0.0.1", "10.0.0.9").into(), ..state };
        seen.files.insert("/etc/hosts".into(), PathState::File(inside, 7));
        assert_eq!(undo(&seen).changed.len(), 1);
        assert_eq!(whats(&seen), ["/etc/hosts: block names was changed since"]);
        let diff = diff(drift(&seen)[0].since.as_ref().unwrap()).unwrap();
        let lines: Vec<&str> = diff.lines().filter(|line| line.starts_with(['+', '-'])).collect();
        assert_eq!(lines.len(), 4, "the header, and the one line that was changed: {diff}");
        assert!(lines[2].starts_with("-10.0.0.1") && lines[3].starts_with("+10.0.0.9"), "{diff}");
    }

    #[test]
    fn an_edit_outside_of_the_block_between_two_changes_of_it_stays_too() {
        let mut seen = set_up();
        let Some(PathState::File(state, _)) = seen.files.get("/etc/hosts").cloned() else { panic!() };
        let text = state.content.text().unwrap().replace("10.0.0.1", "10.0.0.9");
        let edited = FileState { content: format!("# mine\n{text}").into(), ..state };
        seen.files.insert("/etc/hosts".into(), PathState::File(edited, 7));
        let mended = plan(&all(), &mut seen.clone()).unwrap();
        carry(&mut seen, &mended);
        let steps = undo(&seen).steps;
        carry(&mut seen, &steps);
        assert_eq!(seen.text("/etc/hosts").unwrap(), "# mine\n127.0.0.1 localhost\n127.0.1.1 n1\n");
    }

    #[test]
    fn two_blocks_of_one_file_go_one_after_the_other() {
        let block = |name: &str, lines: &str| HostRequirement::Block {
            path: "/etc/hosts".into(),
            name: name.into(),
            lines: lines.into(),
            retire: vec![],
        };
        let mut seen = host();
        for wanted in [block("a", "1\n"), block("b", "2\n"), block("a", "3\n")] {
            let steps = plan(&[wanted], &mut seen.clone()).unwrap();
            carry(&mut seen, &steps);
        }
        let mut edited = seen.clone();
        let undone = undo(&seen);
        carry(&mut seen, &undone.steps);
        assert_eq!((seen.text("/etc/hosts"), seen.journal.len()), (host().text("/etc/hosts"), 0));
        let Some(PathState::File(state, _)) = edited.files.get_mut("/etc/hosts") else { panic!() };
        state.content = format!("# mine\n{}", state.content.text().unwrap()).into();
        let undone = undo(&edited);
        carry(&mut edited, &undone.steps);
        assert_eq!(edited.text("/etc/hosts").unwrap(), format!("# mine\n{}", host().text("/etc/hosts").unwrap()));
    }

    #[test]
    fn a_folder_that_was_made_for_a_mount_that_did_not_come_about_goes_with_it() {
        let state = |exists, mounted| MountState { exists, mounted };
        let mount =
            |from| HostChange::Mount { point: "/m".into(), from, to: state(true, true), over: None, disk: false };
        let mut seen = Observed::default();
        seen.mounts.insert("/m".into(), (state(true, true), false));
        for (n, from) in [state(false, false), state(true, false)].into_iter().enumerate() {
            seen.journal.push((n.to_string(), mount(from)));
        }
        let HostChange::Mount { to, .. } = undo(&seen).steps.remove(0).change else { panic!() };
        assert_eq!(to, state(false, false));
    }

    /// The journal has the entry from before the attempt.
    #[test]
    fn a_mount_that_failed_is_undone() {
        let state = |exists, mounted| MountState { exists, mounted };
        let (from, to) = (state(false, false), state(true, true));
        let mut seen = Observed::default();
        seen.mounts.insert("/m".into(), (state(true, false), false));
        seen.journal.push(("1".into(), HostChange::Mount { point: "/m".into(), from, to, over: None, disk: false }));
        let Undone { steps, changed, .. } = undo(&seen);
        assert!(changed.is_empty(), "{changed:?}");
        let HostChange::Mount { from: now, to: then, .. } = steps[0].change else { panic!() };
        assert_eq!((now, then), (state(true, false), from));
    }

    #[test]
    fn a_unit_that_is_gone_is_named_and_holds_up_nothing() {
        let on = UnitState { enabled: true, active: true };
        let off = HostChange::Unit { name: "ntp".into(), from: on, to: UnitState::default() };
        let mut seen = set_up();
        seen.journal.push(("99999999.json".into(), off));
        let undone = undo(&seen);
        assert_eq!(undone.changed, ["unit ntp: it no longer exists"]);
        assert!(undone.steps.iter().any(|step| step.change.thing() == "/etc/hosts"));
    }

    #[test]
    fn what_somebody_did_between_two_changes_of_homings_comes_back() {
        let file = |from: &str, to: &str| {
            let state = |text: &str| Some(FileState { content: text.into(), mode: 0o644, uid: 0, gid: 0 });
            HostChange::File { path: "/f".into(), from: state(from), to: state(to), block: None }
        };
        let back = |rows: &[(&str, &str)]| {
            let mut seen = Observed::default();
            for (n, (from, to)) in rows.iter().enumerate() {
                seen.apply(&file(from, to));
                seen.journal.push((n.to_string(), file(from, to)));
            }
            match &undo(&seen).steps[0].change {
                HostChange::File { to: Some(to), .. } => to.content.text().unwrap().to_string(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(back(&[("a", "b"), ("b", "c")]), "a");
        assert_eq!(back(&[("a", "b"), ("edited", "c")]), "edited");
        assert_eq!(back(&[("a", "b"), ("a", "b")]), "a", "noted twice: killed after the first note");
    }
}
