//! Knows the folders of the queue.
//!
//! The jobs of each user are in the user's own folder. The parent of these folders belongs to root and has the sticky
//! bit (/var/tmp). Thus no other user can remove, rename or replace them. One more folder has the things that all users
//! share (the lock of turns, the numbers). It decides nothing but order: a user who breaks it cannot touch a job.

use crate::{QueueError, files};
use homing_os::folder::shared;
use homing_os::threads::lock;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const NAME: &str = "homing-queue";
/// Only its owner changes a user's folder; every user may read it.
const OWN: u32 = 0o755;

/// The paths of one queue.
#[derive(Debug)]
pub(crate) struct Places {
    base: PathBuf,
    shared: PathBuf,
    numbers: PathBuf,
    /// Users' folders whose ownership was checked; the sticky bit keeps them in place.
    found: Mutex<BTreeMap<u32, PathBuf>>,
    /// The users with a folder, and the last change of the parent folder before that was read.
    users: Mutex<Option<(i64, Vec<u32>)>>,
}

impl Places {
    /// Opens `$HOMING_QUEUE`, or /var/tmp, which unlike /tmp outlives a restart.
    pub fn usual() -> Result<Places, QueueError> {
        Places::at(shared::make_base().map_err(|(base, error)| QueueError::io("make", &base)(error))?)
    }

    /// Whether any user of this machine has a queue there.
    pub fn is_usual() -> bool {
        shared::base().join(NAME).is_dir()
    }

    /// Opens the queue in a folder, and makes missing folders.
    pub fn at(base: PathBuf) -> Result<Places, QueueError> {
        let open =
            |place: &Path, name: &str| shared::open(place, name).map_err(QueueError::io("make", &place.join(name)));
        let shared = open(&base, NAME)?;
        let numbers = open(&shared, "numbers")?;
        let places = Places { base, shared, numbers, found: Mutex::default(), users: Mutex::default() };
        Ok(places)
    }

    pub fn base(&self) -> &Path {
        &self.base
    }
    pub fn shared(&self) -> &Path {
        &self.shared
    }
    pub fn numbers(&self) -> &Path {
        &self.numbers
    }
    /// Returns a user's folder: the first of its names that is a folder of that user alone.
    pub fn of(&self, uid: u32) -> PathBuf {
        if let Some(found) = self.found.lock().ok().and_then(|found| found.get(&uid).cloned()) {
            return found;
        }
        let name = usual(uid);
        let own = homing_os::folder::names(&self.base, &name).find(|dir| homing_os::folder::is_own(dir, uid, OWN));
        if let (Some(dir), Ok(mut found)) = (&own, self.found.lock()) {
            found.insert(uid, dir.clone());
        }
        own.unwrap_or_else(|| self.base.join(name))
    }
    pub fn job(&self, uid: u32, id: u64) -> PathBuf {
        self.of(uid).join(id.to_string())
    }

    /// Returns this user's own folder, and makes it if it is missing.
    pub fn own(&self) -> Result<PathBuf, QueueError> {
        let name = usual(files::uid());
        homing_os::folder::own(&self.base, &name, OWN).map_err(QueueError::io("make", &self.base.join(&name)))
    }

    /// Returns the users who have folders that pass the check of ownership.
    pub fn users(&self) -> Vec<u32> {
        let state = fs::metadata(&self.base).map(|meta| files::changed(&meta)).ok();
        let mut known = lock(&self.users);
        if let (Some((at, _)), Some((then, users))) = (state, known.as_ref())
            && at == *then
        {
            return users.clone();
        }
        let is_own = |uid: &u32| homing_os::folder::is_own(&self.of(*uid), *uid, OWN);
        let users: Vec<u32> = homing_os::folder::users(&self.base, NAME).into_iter().filter(is_own).collect();
        *known = state.filter(|(_, settled)| *settled).map(|(at, _)| (at, users.clone()));
        users
    }
}

/// Returns the name of a user's folder if no other user has taken the name.
fn usual(uid: u32) -> String {
    format!("{NAME}-{uid}")
}

/// Makes the folder of a queue for a test, with the temporary folder above it.
#[cfg(test)]
pub(crate) fn new_shared() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().join("q");
    shared::make(&base).unwrap();
    (dir, base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_who_come_first_at_once_are_all_let_in() {
        for _ in 0..50 {
            let dir = tempfile::tempdir().unwrap();
            let base = dir.path().join("queue");
            let come = || {
                shared::make(&base).map_err(QueueError::io("make", &base))?;
                Places::at(base.clone())?.own()
            };
            let refused: Vec<QueueError> = std::thread::scope(|scope| {
                let all: Vec<_> = (0..8).map(|_| scope.spawn(come)).collect();
                all.into_iter().filter_map(|one| one.join().unwrap().err()).collect()
            });
            assert!(refused.is_empty(), "{refused:?}");
            let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
            assert_eq!(left, ["queue"], "and nothing is left of those who came second");
        }
    }
}
