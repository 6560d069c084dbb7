//! File systems on disks: from what was seen and noted of a disk to the change that makes one, and what becomes of it when
//! all goes back.

use crate::change::{Change, DiskFs};
use crate::disk::Disk;
use crate::observe::Observed;

/// The disk that homing has taken under this name.
fn taken<'s>(name: &str, seen: &'s Observed) -> Option<&'s str> {
    seen.journal.iter().rev().find_map(|(_, change)| match change {
        Change::Disk { name: other, id, to: Some(_), .. } if other == name => Some(id.as_str()),
        _ => None,
    })
}

/// The change that makes a file system on a disk; `None` when it is there.
pub(crate) fn change(name: &str, fs: &DiskFs, wipe: Option<&str>, seen: &Observed) -> Result<Option<Change>, String> {
    let taken = taken(name, seen);
    let Some(disk) = seen.disks.get(name) else {
        let which =
            taken.map(|id| format!("; homing has made a file system on {id}, which is gone")).unwrap_or_default();
        return Err(format!("there is no disk {name}{which}"));
    };
    let told = |why: String| format!("disk {name} ({}): {why}", disk.described());
    if let Some(id) = taken.filter(|id| *id != disk.id && wipe != Some(disk.id.as_str())) {
        return Err(told(format!(
            "homing has made a file system on {id}, and this is another disk; if that is meant: wipe = {:?} for this host",
            disk.id
        )));
    }
    let change = |from: Option<&DiskFs>, erases: String| Change::Disk {
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
            Some((kind, _, _)) if *kind != fs.kind => {
                Err(told(format!("the file system that homing has made on it is {kind}, and stays so")))
            }
            // What stayed when all else went back: the host notes which disk the name stands for.
            _ => Ok(taken.is_none().then(|| change(Some(fs), String::new()))),
        };
    }
    let is_begun = disk.begun.contains(&fs.uuid);
    if wipe.is_some() && taken.is_some_and(|id| id == disk.id) && !is_begun && !disk.holds().is_empty() {
        return Err(told(format!(
            "homing has made a file system on it, and somebody has put {} there since: the word to erase it was for what \
             was there before; if this may go too: homing up --undo, and then homing up",
            disk.holds()
        )));
    }
    let against = disk.against(&fs.uuid, wipe);
    if !against.is_empty() {
        return Err(told(against.join("; ")));
    }
    Ok(Some(change(None, if disk.is_half_made(&fs.uuid) { String::new() } else { disk.holds() })))
}

/// The disk of a change, if it is there.
pub(crate) fn of<'s>(name: &str, id: &str, seen: &'s Observed) -> Option<&'s Disk> {
    seen.disks.get(name).filter(|disk| disk.id == id)
}

/// What becomes of a file system when all goes back.
pub(crate) enum Back {
    /// It goes.
    Goes,
    /// There is none.
    Gone,
    /// It stays, and this is told.
    Stays(String),
}

/// Nobody's bytes go: only a file system without files does, and that only if it was not there before.
pub(crate) fn back(name: &str, id: &str, ends: (Option<&DiskFs>, &DiskFs), seen: &Observed) -> Back {
    let (before, fs) = ends;
    let called = if id.is_empty() { String::new() } else { format!(" ({id})") };
    let Some(disk) = of(name, id, seen) else {
        return Back::Stays(format!("disk {name}{called} is not there: the {} that homing has made on it", fs.kind));
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
