//! Wakes a runner on an event that may let a job start. Such events are: a keeper returns its slots, the turn of
//! another user's runner ends, a job is submitted. Each regular look finds the events that inotify cannot report.

use crate::places::Places;
use crate::slots;
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The prefix of the file that marks a job as changed by its user; the rest of the name is the job's number.
pub(crate) const CHANGED: &str = "changed.";

/// Returns the job's number from the name of such a file.
pub(crate) fn changed(name: &str) -> Option<u64> {
    name.strip_prefix(CHANGED)?.parse().ok()
}

/// The events since the last look.
#[derive(Default)]
pub(crate) struct Rung {
    /// Jobs that were submitted.
    pub new: Vec<u64>,
    /// Jobs that their user has changed.
    pub changed: Vec<u64>,
    /// Whether events were lost because the kernel's queue was full.
    pub overflowed: bool,
    /// Whether the kernel reports all events.
    pub complete: bool,
    /// Whether the caller is the runner, so that no other process needs a notice.
    pub by_runner: bool,
}

/// Watches the folders of users.
pub(crate) struct Bell {
    notices: Option<OwnedFd>,
    watched: BTreeMap<u32, i32>,
    /// Whether this user's own folder is watched.
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

    /// Watches the slots of these users too: when a keeper ends, its slot file, which was open for writing, is
    /// closed.
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

    /// Returns the descriptor that becomes readable on an event.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.notices.as_ref().map(|fd| fd.as_fd())
    }

    /// Returns the events since the last call.
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
