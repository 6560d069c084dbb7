//! Writes steps as one script for a host.

use crate::change::{FileState, HostChange, How};
use crate::content::FileContent;
use crate::guard::Guard;
use crate::observe::word;
use crate::plan::ChangeStep;
use std::collections::BTreeSet;

/// Shell functions about Debian's packages: the available ones, and the comparison of their files with the signed
/// index.
pub const APT: &str = include_str!("apt.sh");
/// The shell functions that the steps call.
const ACT: &str = concat!(
    include_str!("in_use.sh"),
    include_str!("disk.sh"),
    include_str!("apt.sh"),
    include_str!("dnf.sh"),
    include_str!("act.sh")
);

/// Returns a script for `sh -c` that reads files of packages from its standard input, as tar. Steps of packages
/// compare them with the index of their host and install from them, until the phase has ended. `lead`: as in
/// [`crate::ChangePhase::lead`].
pub fn take_packages(lead: Option<&str>) -> String {
    format!("{ACT}main() {{\n{}took\n}}\nmain\n", call("lock", lead))
}

/// The circumstances of a script, as in [`crate::ChangePhase`].
#[derive(Clone, Copy, Default)]
pub(crate) struct By<'a> {
    pub guard: Option<&'a Guard>,
    pub lead: Option<&'a str>,
    pub owner: Option<&'a str>,
}

/// Returns the script for `sh -s`: nothing of it runs before all of it has arrived. It prints `did N` for each step.
pub(crate) fn script(steps: &[ChangeStep], void: &[String], by: &By) -> String {
    let By { guard, lead, owner } = *by;
    let guard = guard.filter(|_| !steps.is_empty()).map_or(String::new(), |guard| {
        let back = FileContent(back(steps).into_bytes()).encoded();
        let saved: String = interfaces(steps).iter().map(|name| call("save", [*name])).collect();
        saved + &call("guard", [&*guard.token, &*guard.seconds.to_string(), &*back])
    });
    let each: String = steps.iter().enumerate().map(|(n, step)| format!("{}did {n}\n", lines(step, owner))).collect();
    let forget = if void.is_empty() { String::new() } else { call("forget", void.iter().map(String::as_str)) };
    let tidy = if steps.iter().any(|s| s.undoes.is_some()) || !void.is_empty() { "tidy\n" } else { "" };
    let of_packages = steps.iter().any(|step| matches!(step.change, HostChange::Package { .. }));
    let end = if of_packages { "packages_end\n" } else { "" };
    let lock = call("lock", lead);
    format!("{ACT}main() {{\n{lock}{guard}{each}{end}{forget}{tidy}}}\nmain </dev/null\n")
}

/// Returns the script that undoes steps: it restores each file that is still as the step left it, then units read
/// their files again. Entries of the journal stay: the next query finds them void.
fn back(steps: &[ChangeStep]) -> String {
    let files =
        steps.iter().rev().filter_map(|step| step.change.inverse()).map(|change| format!("({})\n", act(&change)));
    let is_nudge = |step: &&ChangeStep| matches!(step.change, HostChange::Nudge { .. });
    let units = steps.iter().filter(is_nudge).map(|step| act(&step.change));
    // A driver may take its link down when a setting changes, and some do not take it up again.
    let healed = interfaces(steps).into_iter().map(|name| call("heal", [name]));
    let all: String = files.chain(units).chain(healed).collect();
    format!("{ACT}main() {{\nlock\n{all}}}\nmain </dev/null\n")
}

/// Returns the network interfaces that steps change.
fn interfaces(steps: &[ChangeStep]) -> BTreeSet<&str> {
    fn of(step: &ChangeStep) -> Option<&str> {
        match &step.change {
            HostChange::Link { interface, .. } => Some(interface),
            _ => None,
        }
    }
    steps.iter().filter_map(of).collect()
}

fn lines(step: &ChangeStep, owner: Option<&str>) -> String {
    let act = act(&step.change);
    match &step.undoes {
        None => format!("{}note {}\n{act}", ahead(&step.change), entry(&step.change, owner)),
        // The entry of a setting that could not be restored stays.
        Some(entries) => {
            let and = if matches!(step.change, HostChange::Sysctl { .. }) { " && " } else { "\n" };
            format!("{}{and}{}", act.trim_end_matches('\n'), call("forget", entries.iter().map(String::as_str)))
        }
    }
}

/// Returns the check that precedes even the journal entry of a change: the entry of a disk reserves its name.
fn ahead(change: &HostChange) -> String {
    match change {
        HostChange::Disk { name, facts, .. } => call("disk_same", [name.as_str(), facts]),
        _ => String::new(),
    }
}

/// An entry of the journal. The kind of the change is its first field: hosts find entries of a kind by that.
#[derive(serde::Serialize)]
struct Entry<'a> {
    #[serde(flatten)]
    change: &'a HostChange,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
}

fn entry(change: &HostChange, by: Option<&str>) -> String {
    // An entry contains only numbers and texts: it can always be serialized.
    FileContent(serde_json::to_vec(&Entry { change, by }).unwrap_or_default()).encoded()
}

fn call<'w>(function: &str, words: impl IntoIterator<Item = &'w str>) -> String {
    let words: String = words.into_iter().map(|w| format!(" {}", word(w))).collect();
    format!("{function}{words}\n")
}

fn act(change: &HostChange) -> String {
    let yes = |on: bool| if on { "yes" } else { "no" };
    let number = |n: &u32| n.to_string();
    match change {
        HostChange::File { path, from, to, .. } => file(path, from.as_ref(), to.as_ref()),
        HostChange::Group { name, to: Some(gid), .. } => call("group_add", [name, &*number(gid)]),
        HostChange::Group { name, to: None, .. } => call("group_del", [name.as_str()]),
        HostChange::User { name, from: None, to: Some(a) } => {
            call("user_add", [name, &*number(&a.uid), &*number(&a.gid), &a.home, &a.shell])
        }
        HostChange::User { name, from: Some(a), to: None } => call("user_del", [name.as_str(), &a.home]),
        // Numbers of users never change.
        HostChange::User { .. } => String::new(),
        HostChange::Member { user, group, to: true, .. } => call("member_add", [user.as_str(), group]),
        HostChange::Member { user, group, to: false, .. } => call("member_del", [user.as_str(), group]),
        HostChange::Unit { name, to, .. } => call("unit", [name, yes(to.enabled), yes(to.active)]),
        HostChange::Nudge { unit, how, test } => {
            let verb = if *how == How::Reload { "try-reload-or-restart" } else { "try-restart" };
            call("nudge", [unit, verb, test.as_deref().unwrap_or("")])
        }
        HostChange::Sysctl { key, to, .. } => call("kernel", [key.as_str(), to]),
        HostChange::Link { interface, setting, to, .. } => call("link", [interface.as_str(), setting, to]),
        HostChange::Hostname { to, .. } => call("name_host", [to.as_str()]),
        HostChange::Mount { point, to, over: Some(over), .. } if to.mounted => {
            call("mount_over", [point.as_str(), &over.copy, yes(over.is_source)])
        }
        HostChange::Mount { point, to, disk: false, .. } if to.mounted => call("mount_alone", [point.as_str()]),
        HostChange::Mount { point, to, .. } if to.mounted => call("mount_on", [point.as_str()]),
        HostChange::Mount { point, to, .. } => call("mount_off", [point.as_str(), yes(to.exists)]),
        HostChange::Disk { name, from: None, to: Some(fs), .. } => {
            call("disk_make", [name.as_str(), &fs.kind, &fs.uuid])
        }
        HostChange::Disk { name, id, from: Some(fs), to: None, .. } => call("disk_off", [name.as_str(), id, &fs.uuid]),
        HostChange::Disk { .. } => String::new(),
        HostChange::Copy { from, to, host } => call("copy_tree", [from.as_str(), to, host]),
        HostChange::Package { name, replaces } => {
            call("package", std::iter::once(name.as_str()).chain(replaces.iter().map(String::as_str)))
        }
    }
}

fn file(path: &str, from: Option<&FileState>, to: Option<&FileState>) -> String {
    let hash = from.map_or("-".into(), |state| state.content.hash());
    match to {
        None => call("remove", [path, &*hash]),
        Some(to) => {
            let mode = format!("{:o}", to.mode);
            call("put", [path, &*hash, &*mode, &*to.uid.to_string(), &*to.gid.to_string(), &*to.content.encoded()])
        }
    }
}

#[cfg(test)]
mod foreign;
#[cfg(test)]
mod tests;
