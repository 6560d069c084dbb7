//! Wakes a runner when something has happened that may let a job start: a
//! keeper's slots were given back, another's turn is over, a job was put in.
//! What cannot be watched is found at the next look.

use crate::places::Places;
use crate::slots;
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Begins the name of the file that tells of a job which its user has changed; the rest is its number.
pub(crate) const CHANGED: &str = "changed.";

/// The number in the name of such a file.
pub(crate) fn changed(name: &str) -> Option<u64> {
    name.strip_prefix(CHANGED)?.parse().ok()
}

/// What has happened since the last look.
#[derive(Default)]
pub(crate) struct Rung {
    /// Jobs that were put in.
    pub new: Vec<u64>,
    /// Jobs that their user has changed.
    pub changed: Vec<u64>,
    /// More has happened than the kernel keeps.
    pub overflowed: bool,
    /// The kernel tells of all that happens.
    pub complete: bool,
    /// Whoever looks is the runner, and no one else has to be told.
    pub by_runner: bool,
}

/// Watches the folders of users.
pub(crate) struct Bell {
    notices: Option<OwnedFd>,
    watched: BTreeMap<u32, i32>,
    /// This user's own folder is watched.
    own: bool,
}

impl Bell {
    /// Watches this user's own folder for jobs.
    pub fn new(own: &std::path::Path) -> Bell {
        let notices = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        let watched = notices.as_ref().map(|fd| add_watch(fd, own, WatchFlags::MOVED_TO | WatchFlags::ONLYDIR));
        let own = watched.is_some_and(|watched| watched.is_ok());
        Bell { notices, watched: BTreeMap::new(), own }
    }

    /// Watches the slots of these users too. A file that was open for writing is closed when a keeper ends.
    pub fn watch(&mut self, places: &Places, users: &[u32]) {
        let Some(fd) = &self.notices else { return };
        self.watched.retain(|uid, _| users.contains(uid));
        for uid in users {
            if !self.watched.contains_key(uid) {
                let flags =
                    WatchFlags::CLOSE_WRITE | WatchFlags::ATTRIB | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
                let added = add_watch(fd, places.of(*uid).join(slots::FOLDER), flags);
                self.watched.extend(added.ok().map(|watch| (*uid, watch)));
            }
        }
    }

    /// What is ready to read when something has happened.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.notices.as_ref().map(|fd| fd.as_fd())
    }

    /// What has happened since the last call.
    pub fn rang(&mut self) -> Rung {
        let mut rung = Rung { complete: self.own, by_runner: true, ..Rung::default() };
        let Some(fd) = &self.notices else { return rung };
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(fd, &mut space);
        while let Ok(event) = reader.next() {
            rung.overflowed |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            let name = event.file_name().filter(|_| event.events().contains(ReadFlags::MOVED_TO));
            let Some(name) = name.and_then(|name| name.to_str().ok()) else { continue };
            rung.new.extend(name.parse::<u64>());
            rung.changed.extend(changed(name));
        }
        rung
    }
}
