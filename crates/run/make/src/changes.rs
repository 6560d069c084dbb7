//! The written files with the hosts that wrote them, and which of them each host has received.

use homing_model::{FileChange, FileStamp, RawText};
use std::collections::HashMap;

/// The changes of a build in the order in which they became known.
#[derive(Debug, Default)]
pub struct ChangeLog {
    entries: Vec<(usize, FileChange)>,
    /// The newest state of each name, and the entry that holds it.
    latest: HashMap<RawText, (Option<FileStamp>, usize)>,
    /// Number of entries that each host has received.
    told: Vec<usize>,
}

impl ChangeLog {
    /// Adds changes seen on `host`. Known changes are left out, because two observers of one host may report the
    /// same.
    pub fn add(&mut self, host: usize, changes: Vec<FileChange>) {
        for mut change in changes {
            let known = self.latest.get(&change.path);
            if known.is_some_and(|(state, _)| *state == change.now) {
                continue;
            }
            // Only the whole build shows whether a name is new. Its observer may have missed that another host made
            // and removed it before.
            change.fresh &= known.is_none();
            self.latest.insert(change.path.clone(), (change.now, self.entries.len()));
            self.entries.push((host, change));
        }
    }

    /// Returns the changes that `host` must see before its next recipe. They are the newest state of each name that
    /// others changed since the last call for this host.
    pub fn take_changes(&mut self, host: usize) -> Vec<FileChange> {
        let news = self.news(host);
        self.told.resize(self.told.len().max(host + 1), 0);
        self.told[host] = self.entries.len();
        news
    }

    /// Returns the same changes, but does not mark them as received.
    pub fn news(&self, host: usize) -> Vec<FileChange> {
        let from = self.told.get(host).copied().unwrap_or(0);
        let numbered = self.entries.iter().enumerate().skip(from);
        let newest = numbered.filter(|(at, (_, change))| self.latest[&change.path].1 == *at);
        newest.filter(|(_, (by, _))| *by != host).map(|(_, (_, change))| change.clone()).collect()
    }

    /// Returns the number of changes of existing names below `folder` that a host has not received.
    pub fn untold(&self, host: usize, folder: &RawText) -> usize {
        let from = self.told.get(host).copied().unwrap_or(0);
        let news = self.entries[from..].iter().filter(|(by, c)| *by != host && !c.fresh);
        news.filter(|(_, c)| c.path.as_path().starts_with(folder.as_path())).count()
    }

    /// Returns the newest known state of a name.
    pub fn state(&self, path: &RawText) -> Option<Option<FileStamp>> {
        self.latest.get(path).map(|(state, _)| *state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, mtime_ns: i64, fresh: bool) -> FileChange {
        let now = (mtime_ns > 0).then_some(FileStamp { size: 1, ino: 1, mtime_ns, dir: false });
        FileChange { path: path.into(), now, fresh, was: None }
    }

    #[test]
    fn a_host_is_told_once_the_newest_and_never_its_own() {
        let mut log = ChangeLog::default();
        log.add(0, vec![change("/a", 1, true), change("/b", 1, true)]);
        log.add(1, vec![change("/a", 2, true)]);
        assert_eq!(log.take_changes(0), [change("/a", 2, false)]);
        assert!(log.take_changes(0).is_empty());
        assert_eq!(log.take_changes(1), [change("/b", 1, true)]);
        assert_eq!(log.take_changes(2), [change("/b", 1, true), change("/a", 2, false)]);
        log.add(0, vec![change("/a", 2, false)]);
        assert!(log.take_changes(2).is_empty(), "told by a second observer");
    }

    #[test]
    fn a_name_that_was_removed_is_not_new_when_it_comes_again() {
        let mut log = ChangeLog::default();
        log.add(0, vec![change("/a", 1, true)]);
        log.add(0, vec![change("/a", 0, false)]);
        log.add(1, vec![change("/a", 3, true)]);
        assert_eq!(log.take_changes(2), [change("/a", 3, false)]);
    }
}
