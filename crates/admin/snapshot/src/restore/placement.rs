//! Moves restored entries to their places, by open folders and without following a link. It leaves an entry that has
//! appeared under a name since the examination.

use super::TOLD;
use crate::ask::{Obstacle, Restored};
use crate::destination::{EntryKind, Presence, RestoreEntry, presence};
use crate::run::Reins;
use crate::walk;
use homing_model::RawText;
use homing_os::folder::move_if_free;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// Tries for a name that other users make and remove.
const TRIES: u32 = 100;

/// An open folder and a name in it.
type Spot<'a> = (BorrowedFd<'a>, &'a OsStr);

/// The state of a restore while its entries are moved.
pub(super) struct Placement<'a> {
    /// At first its count has all entries that rsync has written. Those without a place are subtracted.
    pub done: &'a mut Restored,
    pub reins: &'a Reins,
    /// Folders that the destination had already: they are not counted.
    pub leading: &'a HashSet<RawText>,
}

/// The result of a move.
enum MoveOutcome {
    Moved,
    /// The destination has the same entry. If it is a folder, its entries are moved one by one.
    Same,
    /// Another entry has the name.
    Taken(Presence),
    Failed(io::Error),
}

impl Placement<'_> {
    /// Moves all entries of a folder.
    ///
    /// # Errors
    /// That the restore has been ended. Other errors are recorded, and do not stop the other entries.
    pub fn put_all(&mut self, staged: &OwnedFd, there: BorrowedFd, path: &RawText) -> Result<(), String> {
        let names = walk::names(staged).unwrap_or_else(|e| {
            self.fail(path, 0, &e);
            Vec::new()
        });
        for name in names {
            let below = walk::join(path, &name);
            let name = OsStr::from_bytes(&name);
            self.put((staged.as_fd(), name), (there, name), &below)?;
        }
        Ok(())
    }

    /// Moves one entry. If the destination has the folder already, its entries are moved one by one.
    ///
    /// # Errors
    /// As [`Placement::put_all`].
    pub fn put(&mut self, from: Spot, to: Spot, path: &RawText) -> Result<(), String> {
        if self.reins.has_ended() {
            return Err("the restore was stopped".into());
        }
        let own = u64::from(!self.leading.contains(path));
        let stat = rustix::fs::statat(from.0, from.1, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from);
        let entry = stat.and_then(|stat| Ok((RestoreEntry::of(path, &stat, from.0, from.1.as_bytes())?, stat.st_mode)));
        let (entry, mode) = match entry {
            Ok(entry) => entry,
            Err(e) => {
                self.fail(path, own, &e);
                return Ok(());
            }
        };
        let is_folder = entry.kind == EntryKind::Folder;
        match settle(&entry, mode, from, to) {
            MoveOutcome::Moved => {}
            MoveOutcome::Same => {
                self.done.written = self.done.written.saturating_sub(own);
                if is_folder {
                    return self.complete(from, to, path);
                }
            }
            MoveOutcome::Taken(there) => {
                let below = if is_folder { count(from) } else { 0 };
                self.leave(entry, there, own, below);
            }
            MoveOutcome::Failed(e) => {
                let below = if is_folder { count(from) } else { 0 };
                self.fail(path, own + below, &e);
            }
        }
        Ok(())
    }

    /// Moves the entries of a folder that the destination has.
    fn complete(&mut self, from: Spot, to: Spot, path: &RawText) -> Result<(), String> {
        let open = || {
            let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            io::Result::Ok((open_up(from)?, rustix::fs::openat(to.0, to.1, flags, Mode::empty())?))
        };
        match open() {
            Ok((staged, there)) => self.put_all(&staged, there.as_fd(), path),
            Err(e) => {
                self.fail(path, count(from), &e);
                Ok(())
            }
        }
    }

    fn leave(&mut self, entry: RestoreEntry, there: Presence, own: u64, below: u64) {
        self.done.written = self.done.written.saturating_sub(own + below);
        self.done.beneath += below;
        self.done.left += 1;
        if self.done.obstacles.len() < TOLD {
            self.done.obstacles.push(Obstacle { path: entry.path, wanted: entry.kind, there });
        }
    }

    fn fail(&mut self, path: &RawText, lost: u64, e: &io::Error) {
        self.done.written = self.done.written.saturating_sub(lost);
        if self.done.failed.len() < TOLD {
            self.done.failed.push(format!("moving {} to its place: {e}", path.display()));
        }
    }
}

/// Moves an entry unless its name is taken. Else it examines the entry that has the name.
fn settle(entry: &RestoreEntry, mode: u32, from: Spot, to: Spot) -> MoveOutcome {
    for _ in 0..TRIES {
        let moved = if entry.kind == EntryKind::Folder { move_folder(from, to, mode) } else { move_entry(from, to) };
        let taken = match moved {
            Ok(()) => return MoveOutcome::Moved,
            // A folder that is a mount point of the destination gives XDEV.
            Err(e @ (Errno::EXIST | Errno::XDEV)) => e,
            Err(e) => return MoveOutcome::Failed(e.into()),
        };
        match presence(entry, to.0, to.1.as_bytes()) {
            Presence::Missing if taken == Errno::EXIST => {}
            Presence::Missing => return MoveOutcome::Failed(taken.into()),
            Presence::Same => return MoveOutcome::Same,
            there => return MoveOutcome::Taken(there),
        }
    }
    MoveOutcome::Taken(Presence::Unknown("it appears and disappears".into()))
}

fn move_entry(from: Spot, to: Spot) -> rustix::io::Result<()> {
    move_if_free(from.0, from.1, to.0, to.1)
}

/// Moves a folder. An owner without the right to write it cannot move it (rename(2)), and gets that right meanwhile.
fn move_folder(from: Spot, to: Spot, mode: u32) -> rustix::io::Result<()> {
    match move_entry(from, to) {
        Err(Errno::ACCESS) if mode & 0o200 == 0 => {
            let [mode, open] = [mode & 0o7777, mode & 0o7777 | 0o700].map(Mode::from_raw_mode);
            rustix::fs::chmodat(from.0, from.1, open, AtFlags::empty())?;
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let folder = rustix::fs::openat(from.0, from.1, flags, Mode::empty())?;
            let moved = move_entry(from, to);
            rustix::fs::fchmod(&folder, mode).and(moved)
        }
        moved => moved,
    }
}

/// Opens a staged folder that is not moved, whatever its mode is.
fn open_up(from: Spot) -> io::Result<OwnedFd> {
    let _ = rustix::fs::chmodat(from.0, from.1, Mode::RWXU, AtFlags::empty());
    walk::open_inside(from.0, from.1)
}

/// Counts the entries in a staged folder that is not moved.
fn count(from: Spot) -> u64 {
    let mut count = 0;
    if let Ok(open) = open_up(from) {
        let mut each = |_: &RawText, _: &rustix::fs::Stat, _: &OwnedFd, _: &[u8]| {
            count += 1;
            Ok(())
        };
        let _ = walk::inside(&open, &RawText(Vec::new()), &mut each, &mut |_, _| Ok(()));
    }
    count
}
