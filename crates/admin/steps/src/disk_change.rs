//! Plans file systems on disks: from observed facts and journal entries to the change that makes one, and its undo.

use crate::change::{DiskFs, HostChange};
use crate::disk::DiskFacts;
use crate::observe::Observed;

/// Returns the disk that homing has used under this name.
fn taken<'s>(name: &str, seen: &'s Observed) -> Option<&'s str> {
    seen.journal.iter().rev().find_map(|(_, change)| match change {
        HostChange::Disk { name: other, id, to: Some(_), .. } if other == name => Some(id.as_str()),
        _ => None,
    })
}

/// Returns the change that makes a file system on a disk; `None` if it exists.
pub(crate) fn change(
    name: &str,
    fs: &DiskFs,
    wipe: Option<&str>,
    seen: &Observed,
) -> Result<Option<HostChange>, String> {
    let taken = taken(name, seen);
    let Some(disk) = seen.disks.get(name) else {
        let which = taken.map(|id| format!("; homing made a file system on {id}, which is gone")).unwrap_or_default();
        return Err(format!("there is no disk {name}{which}"));
    };
    let told = |why: String| format!("disk {name} ({}): {why}", disk.described());
    if let Some(id) = taken.filter(|id| *id != disk.id && wipe != Some(disk.id.as_str())) {
        return Err(told(format!(
            "homing made a file system on {id}, and this is another disk; to use this one, set wipe = {:?} for this host",
            disk.id
        )));
    }
    let change = |from: Option<&DiskFs>, erases: String| HostChange::Disk {
        name: name.into(),
        id: disk.id.clone(),
        from: from.cloned(),
        to: Some(fs.clone()),
        told: disk.described(),
        erases,
        facts: disk.facts.clone(),
    };
    if disk.has(&fs.uuid) && !disk.is_half_made(&fs.uuid) {
        return match disk.signs.iter().find(|(_, _, uuid)| *uuid == fs.uuid) {
            Some((kind, _, _)) if *kind != fs.kind => Err(told(format!(
                "the file system that homing made on it is {kind}, and homing does not change its type"
            ))),
            // The file system stayed when all else was undone: the host records which disk the name means.
            _ => Ok(taken.is_none().then(|| change(Some(fs), String::new()))),
        };
    }
    let is_begun = disk.begun.contains(&fs.uuid);
    if wipe.is_some() && taken.is_some_and(|id| id == disk.id) && !is_begun && !disk.holds().is_empty() {
        return Err(told(format!(
            "homing made a file system on it, and {} was put there since: wipe was meant for the earlier content; \
             to erase this too: homing up --undo, then homing up",
            disk.holds()
        )));
    }
    let against = disk.against(&fs.uuid, wipe);
    if !against.is_empty() {
        return Err(told(against.join("; ")));
    }
    Ok(Some(change(None, if disk.is_half_made(&fs.uuid) { String::new() } else { disk.holds() })))
}

/// Returns the disk of a change, if it is present.
pub(crate) fn of<'s>(name: &str, id: &str, seen: &'s Observed) -> Option<&'s DiskFacts> {
    seen.disks.get(name).filter(|disk| disk.id == id)
}

/// The fate of a file system in an undo.
pub(crate) enum Back {
    /// It is removed.
    Goes,
    /// It no longer exists.
    Gone,
    /// It stays, with this message.
    Stays(String),
}

/// Decides the fate of a file system in an undo. It is removed only if it has no files and did not exist before: no
/// user's bytes are lost.
pub(crate) fn back(name: &str, id: &str, ends: (Option<&DiskFs>, &DiskFs), seen: &Observed) -> Back {
    let (before, fs) = ends;
    let called = if id.is_empty() { String::new() } else { format!(" ({id})") };
    let Some(disk) = of(name, id, seen) else {
        return Back::Stays(format!("disk {name}{called} is missing: the {} that homing made on it", fs.kind));
    };
    match disk.has(&fs.uuid) {
        _ if disk.is_half_made(&fs.uuid) => Back::Goes,
        true if disk.is_empty && before.is_none() => Back::Goes,
        true => Back::Stays(format!("the {} of disk {name}{called}, with the files in it,", fs.kind)),
        false => Back::Gone,
    }
}

#[cfg(test)]
mod tests;
