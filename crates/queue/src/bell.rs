//! Wakes a runner when something has happened that may let a job start: a
//! keeper's slots were given back, another's turn is over, a job was put in.
//! What cannot be watched is found at the next look.

use crate::places::Places;
use crate::slots;
use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Watches the folders of users.
pub(crate) struct Bell {
    notices: Option<OwnedFd>,
    watched: BTreeMap<u32, i32>,
}

impl Bell {
    /// Watches this user's own folder for jobs.
    pub fn new(own: &std::path::Path) -> Bell {
        let notices = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        if let Some(fd) = &notices {
            let _ = add_watch(fd, own, WatchFlags::MOVED_TO | WatchFlags::ONLYDIR);
        }
        Bell { notices, watched: BTreeMap::new() }
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

    /// Whether something that matters has happened since the last call: a record of this user's own does not.
    pub fn rang(&mut self) -> bool {
        let Some(fd) = &self.notices else { return false };
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(fd, &mut space);
        let mut rang = false;
        while let Ok(event) = reader.next() {
            let name = event.file_name().map(|n| n.to_bytes().first().copied().unwrap_or(b'.'));
            let own = event.events().contains(rustix::fs::inotify::ReadFlags::MOVED_TO);
            rang |= !own || name.is_some_and(|first| first.is_ascii_digit());
        }
        rang
    }
}
