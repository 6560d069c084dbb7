//! The files that tasks of this run wrote, for tasks on other hosts that read them. Such a host may have an older
//! state in its caches, and looks again first.

use homing_model::{FileChange, RawText};
use homing_os::clock::Mono;
use homing_place::HostIx;
use std::collections::{BTreeMap, VecDeque};

/// The time for which a change is remembered. No cache of a shared file system is older: NFS caches a missing name
/// for 60 s.
const REMEMBERED_US: u64 = 75_000_000;

/// The newest known states, as long as a host may have an older one in its cache.
#[derive(Debug, Default)]
pub(crate) struct Written {
    latest: BTreeMap<RawText, ChangeEntry>,
    order: VecDeque<(Mono, RawText)>,
}

#[derive(Debug)]
struct ChangeEntry {
    change: FileChange,
    by: HostIx,
    at: Mono,
}

impl Written {
    /// Adds the changes that a task on `by` left when it ended.
    pub fn add(&mut self, by: HostIx, changes: Vec<FileChange>, now: Mono) {
        for change in changes {
            self.order.push_back((now, change.path.clone()));
            self.latest.insert(change.path.clone(), ChangeEntry { change, by, at: now });
        }
        while self.order.front().is_some_and(|(at, _)| now.us_since(*at) > REMEMBERED_US) {
            let Some((at, path)) = self.order.pop_front() else { break };
            if self.latest.get(&path).is_some_and(|entry| entry.at == at) {
                self.latest.remove(&path);
            }
        }
    }

    /// Returns the changes that `host` must see before a task that reads `reads`. The changes in `recent` are older
    /// than the run's knowledge. For the same path, the state known here is newer.
    pub fn fence(&self, host: HostIx, reads: &[RawText], recent: &[FileChange]) -> Vec<FileChange> {
        if self.latest.is_empty() {
            return recent.to_vec();
        }
        let entries = reads.iter().flat_map(|path| self.below(path));
        let others = entries.filter(|entry| entry.by != host).map(|entry| entry.change.clone());
        let unknown = recent.iter().filter(|change| !self.latest.contains_key(&change.path));
        unknown.cloned().chain(others).collect()
    }

    /// Returns the host that wrote most of these bytes, because its caches hold them.
    pub fn writer(&self, reads: &[RawText]) -> Option<HostIx> {
        if self.latest.is_empty() {
            return None;
        }
        let mut bytes: BTreeMap<HostIx, u64> = BTreeMap::new();
        for entry in reads.iter().flat_map(|path| self.below(path)) {
            *bytes.entry(entry.by).or_default() += entry.change.now.as_ref().map_or(0, |stamp| stamp.size);
        }
        bytes.into_iter().filter(|(_, bytes)| *bytes > 0).max_by_key(|(_, bytes)| *bytes).map(|(host, _)| host)
    }

    /// Returns the entry of a name and, if it is a directory, of all names below it.
    fn below(&self, path: &RawText) -> impl Iterator<Item = &ChangeEntry> {
        let inner = RawText([&path.0[..], b"/"].concat());
        let within = self.latest.range(inner.clone()..).take_while(move |(name, _)| name.0.starts_with(&inner.0));
        self.latest.get(path).into_iter().chain(within.map(|(_, entry)| entry))
    }

    /// Forgets a path that another program has changed.
    pub fn forget(&mut self, path: &RawText) {
        self.latest.remove(path);
    }

    /// Whether no newer state than this change is known.
    pub fn is_current(&self, change: &FileChange) -> bool {
        self.latest.get(&change.path).is_none_or(|entry| entry.change == *change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_model::FileStamp;

    fn change(path: &str, mtime_ns: i64) -> FileChange {
        let now = Some(FileStamp { size: 1, ino: 1, mtime_ns, dir: false });
        FileChange { path: path.into(), now, fresh: false, was: None }
    }

    #[test]
    fn others_look_at_the_newest_state_and_its_writer_does_not() {
        let mut written = Written::default();
        assert_eq!(written.fence(0, &["/d/a".into()], &[change("/d/b", 1)]), [change("/d/b", 1)]);
        written.add(0, vec![change("/d/a", 1)], Mono::from_us(0));
        written.add(1, vec![change("/d/a", 2)], Mono::from_us(1));
        assert_eq!(written.fence(0, &["/d/a".into()], &[change("/d/a", 1)]), [change("/d/a", 2)]);
        assert!(written.fence(1, &["/d/a".into(), "/d/c".into()], &[]).is_empty());
        assert!(written.is_current(&change("/d/a", 2)) && !written.is_current(&change("/d/a", 1)));
        written.forget(&"/d/a".into());
        assert!(written.fence(0, &["/d/a".into()], &[]).is_empty());
    }

    #[test]
    fn who_reads_a_directory_looks_at_what_was_written_below_it() {
        let mut written = Written::default();
        written.add(
            0,
            vec![change("/d/x", 1), change("/d/x/f", 1), change("/d/xy", 1), change("/d/x/g/h", 1)],
            Mono::from_us(0),
        );
        let told = written.fence(1, &["/d/x".into()], &[]);
        assert_eq!(told, [change("/d/x", 1), change("/d/x/f", 1), change("/d/x/g/h", 1)]);
    }

    #[test]
    fn the_writer_is_who_wrote_most_of_it() {
        let large = |path: &str, size| {
            let now = Some(FileStamp { size, ino: 1, mtime_ns: 1, dir: false });
            FileChange { path: path.into(), now, fresh: false, was: None }
        };
        let mut written = Written::default();
        let reads: [RawText; 2] = ["/d/a".into(), "/d/x".into()];
        assert_eq!(written.writer(&reads), None);
        written.add(0, vec![large("/d/a", 5)], Mono::from_us(0));
        written.add(1, vec![large("/d/x/f", 3), large("/d/x/g", 3), large("/d/other", 9)], Mono::from_us(0));
        assert_eq!((written.writer(&reads), written.writer(&reads[..1])), (Some(1), Some(0)));
        written.add(2, vec![large("/d/a", 0)], Mono::from_us(0));
        assert_eq!(written.writer(&reads[..1]), None, "nothing of it is in anybody's cache");
    }

    #[test]
    fn what_no_cache_can_remember_is_forgotten() {
        let mut written = Written::default();
        written.add(0, vec![change("/d/a", 1), change("/d/b", 1)], Mono::from_us(0));
        written.add(0, vec![change("/d/a", 2)], Mono::from_us(REMEMBERED_US));
        written.add(0, vec![], Mono::from_us(REMEMBERED_US + 1));
        let reads = ["/d/a".into(), "/d/b".into()];
        assert_eq!(written.fence(1, &reads, &[]), [change("/d/a", 2)]);
        written.add(0, vec![], Mono::from_us(2 * REMEMBERED_US + 1));
        assert!(written.latest.is_empty() && written.order.is_empty());
    }
}
