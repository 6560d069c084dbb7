//! Leases on units of a host's resources, for example graphics processors. No two tasks on a host get the same unit,
//! whichever runs, jobs or users they belong to.
//!
//! A unit is [`PARTS`] bytes of a file of each user, locked while a task has it. A task that takes a part of a unit
//! locks as many bytes. The kernel drops the locks of a process that ends, however it ends. Each user locks only an
//! own file and queries those of the others, as with the slots of the queue. A file for all would let its first owner
//! keep all others from locking it.

use homing_model::resource::PARTS;
use homing_os::folder::lock::{self, FileLock};
use homing_os::folder::{is_own, names, open_plain, own, users};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The folders' name, before the number of their user.
const NAME: &str = "homing-units";
/// Only its owner changes a user's folder; every user may read it.
const MODE: u32 = 0o755;
/// The byte that belongs to the task whose turn it is. It lies behind all units.
const TURN: u32 = u32::MAX - 1;

/// The units of one resource on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The folder above those of the users. Only the owner of an entry may rename it there.
    pub base: PathBuf,
    /// The name of the locks: pools of one name share their units.
    pub name: String,
    /// The number of each unit, in the order in which they are taken.
    pub units: Vec<u32>,
}

/// Units that a task has. Dropping it releases them.
#[derive(Debug)]
pub struct UnitLease {
    /// The places of the units in [`Pool::units`], ascending.
    pub units: Vec<usize>,
    _file: File,
}

/// A task that wants units. It keeps its turn between two tries, so that tasks with fewer wishes do not pass it for
/// ever.
#[derive(Debug)]
pub struct Taker {
    pool: Pool,
    parts: u32,
    first: usize,
    turn: Option<FileLock>,
}

impl Taker {
    /// Makes a taker of so many parts: a multiple of [`PARTS`], or fewer than one unit has. It tries the unit at the
    /// place `first` first, and counts on from the start behind the last one.
    pub fn new(pool: Pool, parts: u32, first: usize) -> Taker {
        Taker { pool, parts, first, turn: None }
    }

    /// Takes the units now, or none of them and the next turn. Errors are those of the file of this user.
    pub fn try_take(&mut self) -> io::Result<Option<UnitLease>> {
        let uid = rustix::process::geteuid().as_raw();
        let folder = own(&self.pool.base, &format!("{NAME}-{uid}"), MODE)?;
        let path = folder.join(&self.pool.name);
        let others = self.others(uid);
        let file = lock::file(&path, 0o644)?;
        if self.turn.is_none() && is_taken(&file, &others, (TURN, TURN + 1))? {
            return Ok(None);
        }
        let mut units = Vec::new();
        let wanted = self.parts.div_ceil(PARTS as u32).max(1) as usize;
        let count = self.pool.units.len();
        for at in (0..count).map(|at| (at + self.first) % count) {
            if units.len() < wanted && self.lock_unit(&file, &others, self.pool.units[at])? {
                units.push(at);
            }
        }
        units.sort_unstable();
        if units.len() == wanted {
            self.turn = None;
            return Ok(Some(UnitLease { units, _file: file }));
        }
        drop(file);
        if self.turn.is_none() {
            let range = (TURN, Some(TURN + 1));
            let turn = FileLock::of(lock::file(&path, 0o644)?, &[range])?;
            self.turn = turn.filter(|_| !is_met(&others, (TURN, TURN + 1)));
        }
        Ok(None)
    }

    /// Locks a whole unit, or the first free part of it. If another user takes it at the same moment, both release it
    /// and try again.
    fn lock_unit(&self, file: &File, others: &[File], unit: u32) -> io::Result<bool> {
        let all = PARTS as u32;
        let each = self.parts.clamp(1, all);
        let first = unit.saturating_mul(all);
        for at in (0..=all - each).step_by(each as usize) {
            let (from, to) = (first + at, first + at + each);
            if lock::try_add(file, (from, Some(to)))? {
                if !is_met(others, (from, to)) {
                    return Ok(true);
                }
                lock::give_back(file, (from, Some(to)))?;
            }
        }
        Ok(false)
    }

    /// Opens the files of the other users. A user who makes one unreadable hides only own units.
    fn others(&self, uid: u32) -> Vec<File> {
        let open = |user: u32| {
            let name = format!("{NAME}-{user}");
            let folder = names(&self.pool.base, &name).find(|dir| is_own(dir, user, MODE))?;
            let file = open_plain(&folder.join(&self.pool.name)).ok()?;
            file.metadata().is_ok_and(|meta| meta.uid() == user).then_some(file)
        };
        let others = users(&self.pool.base, NAME).into_iter().filter(|user| *user != uid);
        others.filter_map(open).collect()
    }
}

/// Whether another open file of this user, or a file of another user, has a lock on some of these bytes.
fn is_taken(own: &File, others: &[File], bytes: (u32, u32)) -> io::Result<bool> {
    Ok(lock::met(own, bytes)?.is_some() || is_met(others, bytes))
}

fn is_met(files: &[File], bytes: (u32, u32)) -> bool {
    files.iter().any(|file| lock::met(file, bytes).is_ok_and(|met| met.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::until::until;

    /// A folder as /var/tmp is, with pools in it.
    struct Host(tempfile::TempDir);

    /// Tries until it succeeds. A lock that was released is held a moment longer by a child of another test between
    /// its fork and its exec.
    fn soon(taker: &mut Taker) -> UnitLease {
        let mut lease = None;
        until("the units are released", || {
            lease = taker.try_take().unwrap();
            lease.is_some()
        });
        lease.unwrap()
    }

    impl Host {
        fn new() -> Host {
            use std::os::unix::fs::PermissionsExt;
            let dir = tempfile::tempdir().unwrap();
            std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
            Host(dir)
        }

        fn taker(&self, units: &[u32], parts: u32) -> Taker {
            let pool = Pool { base: self.0.path().into(), name: "gpu".into(), units: units.to_vec() };
            Taker::new(pool, parts, 0)
        }

        fn take(&self, units: &[u32], parts: u32) -> Option<UnitLease> {
            self.taker(units, parts).try_take().unwrap()
        }
    }

    #[test]
    fn no_two_tasks_have_the_same_unit_and_the_lowest_free_ones_go_first() {
        let host = Host::new();
        let all = [0, 1, 2];
        let first = host.take(&all, 100).unwrap();
        let second = host.take(&all, 200).unwrap();
        assert_eq!((&first.units[..], &second.units[..]), (&[0][..], &[1, 2][..]));
        assert!(host.take(&all, 100).is_none());
        drop(first);
        assert_eq!(soon(&mut host.taker(&all, 100)).units, [0]);
        // A pool of other numbers shares the units that both name.
        assert_eq!(soon(&mut host.taker(&[2, 7], 100)).units, [1], "unit 2 is taken");
    }

    #[test]
    fn parts_of_a_unit_are_shared_and_a_whole_one_is_not() {
        let host = Host::new();
        let all = [0, 1];
        let halves: Vec<UnitLease> = (0..3).map(|_| host.take(&all, 50).unwrap()).collect();
        assert_eq!(halves.iter().map(|lease| lease.units[0]).collect::<Vec<_>>(), [0, 0, 1]);
        assert!(host.take(&all, 100).is_none(), "half of unit 1 is no whole unit");
        assert_eq!(host.take(&all, 25).unwrap().units, [1]);
    }

    #[test]
    fn a_task_that_waits_for_several_units_is_not_passed_for_ever() {
        let host = Host::new();
        let all = [0, 1];
        let (one, other) = (host.take(&all, 100).unwrap(), host.take(&all, 100).unwrap());
        let mut wide = host.taker(&all, 200);
        assert!(wide.try_take().unwrap().is_none());
        drop(one);
        assert!(host.take(&all, 100).is_none(), "it is the turn of the wide one");
        assert!(wide.try_take().unwrap().is_none(), "unit 1 is still taken");
        drop(other);
        assert_eq!(soon(&mut wide).units, [0, 1]);
        let pool = host.taker(&all, 100).pool;
        let next = soon(&mut Taker::new(pool, 100, 3));
        assert_eq!(next.units, [1], "from a place on");
        // A taker that gives up leaves its turn to others.
        soon(&mut host.taker(&all, 100));
    }
}
