//! The writing side: uses inotify to find the files that were changed on this host.
//!
//! The kernel reports changes made through this host's own mount, also on FUSE and NFS, to any user, without slowing
//! the commands. The alternatives are worse. fanotify on a mount needs root. ptrace and seccomp slow each system
//! call. A comparison of directory listings costs round trips to the servers for each command and misses a rewrite
//! within one tick of the clock.

use crate::settle::is_passing;
use crate::stamp::{look, stamp};
use crate::{Fence, comparable, fence_in, now_s};
use homing_model::{FileChange, FileStamp};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The most folders that are watched; a source tree has fewer.
const MOST_FOLDERS: usize = 50_000;

/// Events of a name since its last report.
#[derive(Clone, Copy, Debug, Default)]
struct NameEvents {
    /// The first event was its creation.
    created: bool,
    /// A writer has closed it, or it appeared in one step.
    whole: bool,
    /// More than its attributes may have changed. Steps of a fence change attributes only, as far as the kernel
    /// reports.
    written: bool,
}

/// Watches folders of shared file systems. If the kernel's queue of events overflows, the next report compares all
/// watched folders with the earlier state, so that no change is lost.
pub struct FolderWatch {
    fd: OwnedFd,
    folders: HashMap<i32, PathBuf>,
    known: HashMap<PathBuf, Option<&'static Fence>>,
    /// Watched folders below which only new entries are watched.
    above: HashSet<PathBuf>,
    open: BTreeMap<PathBuf, NameEvents>,
    /// Names that were reported before, or existed when their folder was first seen, with their inode numbers.
    old: HashMap<PathBuf, u64>,
    /// The kernel's queue overflowed, so events may be missing.
    overflowed: bool,
    /// Seconds since 1970 at the last report, on this host's clock.
    last: i64,
}

/// Tolerance for times of files, seconds: a server's clock may have set them, and in whole seconds.
const CLOCKS_S: i64 = 3;

/// Returns whether a name is known to be in a state.
type NameCheck<'a> = &'a dyn Fn(&Path, Option<FileStamp>) -> bool;

impl FolderWatch {
    /// Makes a watch without folders.
    pub fn new() -> io::Result<FolderWatch> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let (folders, known, above, open, old) = Default::default();
        Ok(FolderWatch { fd, folders, known, above, open, old, overflowed: false, last: now_s() })
    }

    /// Watches `root` and all folders below it, unless it is watched already. If watched folders are below `root`,
    /// only its new entries are watched. The mount point is such a folder, if a recipe names a file in it. A walk
    /// through everything below would take longer than most recipes.
    pub fn add(&mut self, root: &Path) {
        if self.known.contains_key(root) {
            return;
        }
        let real = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
        let is_above = self.known.keys().any(|known| known.starts_with(&real));
        if is_above {
            self.above.insert(root.to_path_buf());
        }
        self.walk(root, None, !is_above);
    }

    /// As `add`, for a folder that was made elsewhere or found late. Its content counts as changed here, because this
    /// host may have changed it.
    pub fn learn(&mut self, root: &Path) {
        if !self.known.contains_key(root) {
            self.walk(root, Some(NameEvents { created: false, whole: true, written: true }), true);
        }
    }

    /// Watches a folder and, if `deep`, all below it. Its entries are recorded as `seen`; without `seen`, as existing
    /// before.
    fn walk(&mut self, root: &Path, seen: Option<NameEvents>, deep: bool) {
        let mounts = homing_mounts::read().unwrap_or_default();
        let mut todo = vec![root.to_path_buf()];
        while let Some(folder) = todo.pop() {
            let skip = self.folders.len() >= MOST_FOLDERS || self.known.contains_key(&folder);
            if skip || !self.watch_one(&folder, fence_in(&mounts, &folder).0) {
                continue;
            }
            // The watch begins before the reading, so a name made in between is seen twice instead of never.
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let is_dir = entry.file_type().is_ok_and(|t| t.is_dir());
                match seen {
                    Some(seen) => _ = self.open.entry(entry.path()).or_insert(seen),
                    None => _ = self.old.insert(entry.path(), entry.ino()),
                }
                if deep && is_dir && entry.file_name() != ".git" {
                    todo.push(entry.path());
                }
            }
        }
    }

    /// Returns false if it is watched already, or cannot be watched.
    fn watch_one(&mut self, folder: &Path, fence: Option<&'static Fence>) -> bool {
        let what = WatchFlags::CREATE
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::DELETE
            | WatchFlags::ATTRIB
            | WatchFlags::ONLYDIR;
        let Ok(number) = inotify::add_watch(&self.fd, folder, what) else { return false };
        self.folders.insert(number, folder.to_path_buf());
        self.known.insert(folder.to_path_buf(), fence).is_none()
    }

    fn drain(&mut self) {
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut events = Vec::new();
        let mut reader = inotify::Reader::new(&self.fd, &mut buffer);
        while let Ok(event) = reader.next() {
            let name = event.file_name().map(|n| n.to_bytes().to_vec());
            events.push((event.wd(), event.events(), name));
        }
        for (wd, flags, name) in events {
            self.event(wd, flags, name);
        }
    }

    fn event(&mut self, wd: i32, flags: ReadFlags, name: Option<Vec<u8>>) {
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.overflowed = true;
        }
        if flags.contains(ReadFlags::IGNORED)
            && let Some(gone) = self.folders.remove(&wd)
        {
            self.known.remove(&gone);
        }
        let (Some(folder), Some(name)) = (self.folders.get(&wd), name) else { return };
        if is_passing(&name) {
            return;
        }
        let path = folder.join(std::ffi::OsStr::from_bytes(&name));
        let dir = flags.contains(ReadFlags::ISDIR);
        let made = flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
        let first = !self.open.contains_key(&path);
        let seen = self.open.entry(path.clone()).or_default();
        seen.created = if first { flags.contains(ReadFlags::CREATE) } else { seen.created };
        seen.written |= flags.bits() != ReadFlags::ATTRIB.bits();
        // A file that was just created is complete when its writer closes it.
        seen.whole = dir || !flags.contains(ReadFlags::CREATE);
        if dir && made {
            self.walk(&path, Some(NameEvents { created: true, whole: true, written: true }), true);
        }
    }

    /// Replaces events that the kernel dropped. It finds names that are gone, new, or have a time since the last
    /// report. A file that is still being written is reported now and again when it is closed.
    fn rescan(&mut self) {
        let since = self.last.min(now_s()) - CLOCKS_S;
        let seen = NameEvents { created: false, whole: true, written: true };
        let gone = self.old.keys().filter(|path| path.symlink_metadata().is_err());
        self.open.extend(gone.map(|path| (path.clone(), seen)));
        let mut folders = Vec::new();
        for (folder, fence) in std::mem::take(&mut self.known) {
            // Watched again, because another folder may have taken its place.
            if !self.watch_one(&folder, fence) {
                continue;
            }
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let Ok(meta) = entry.metadata() else { continue };
                let is_left = self.above.contains(&folder) && self.old.contains_key(&path);
                if !self.old.contains_key(&path) || meta.mtime().max(meta.ctime()) >= since {
                    self.open.insert(path.clone(), seen);
                }
                folders.extend((meta.is_dir() && entry.file_name() != ".git" && !is_left).then_some(path));
            }
        }
        folders.iter().for_each(|folder| self.walk(folder, Some(seen), true));
    }

    /// Records the inode number and returns the earlier one. A removed name keeps its last number.
    fn remember(&mut self, path: PathBuf, now: Option<FileStamp>) -> Option<u64> {
        match now {
            Some(now) => self.old.insert(path, now.ino),
            None => self.old.get(&path).copied().or_else(|| self.old.insert(path, 0)).filter(|ino| *ino != 0),
        }
    }

    /// Makes sure that the file is at its servers, and returns its state.
    fn synced(&self, path: &Path) -> Option<FileStamp> {
        let fence = self.fence_of(path);
        if !fence.is_some_and(|fence| fence.asking_syncs) {
            sync(path);
        }
        // Read after the sync, which may give the file its final time.
        comparable(fence, stamp(path))
    }

    fn fence_of(&self, path: &Path) -> Option<&'static Fence> {
        path.parent().and_then(|folder| *self.known.get(folder)?)
    }

    /// Returns the changes since the last report, synced to their servers. Files that may still be open for writing
    /// wait for the next report, unless `all`.
    pub fn report(&mut self, all: bool) -> Vec<FileChange> {
        self.collect_changes(all, None)
    }

    /// As `report`, without files whose state is already `known`.
    pub fn report_unless(&mut self, all: bool, known: impl Fn(&Path, Option<FileStamp>) -> bool) -> Vec<FileChange> {
        self.collect_changes(all, Some(&known))
    }

    fn collect_changes(&mut self, all: bool, known: Option<NameCheck<'_>>) -> Vec<FileChange> {
        let began = now_s();
        self.drain();
        if std::mem::take(&mut self.overflowed) {
            self.rescan();
        }
        self.last = began;
        let mut changes = Vec::new();
        for (path, seen) in std::mem::take(&mut self.open) {
            if !all && !seen.whole && !is_link(&path) {
                self.open.insert(path, seen);
                continue;
            }
            if let Some(known) = known {
                // This host's kernel knows attributes that were set here.
                let state = comparable(self.fence_of(&path), look(&path, seen.written));
                if known(&path, state) {
                    self.remember(path, state);
                    continue;
                }
            }
            let now = self.synced(&path);
            let fresh = seen.created && !self.old.contains_key(&path);
            if now.is_none() && fresh {
                // It was made and removed between two reports, so no other host has seen it.
                continue;
            }
            let was = self.remember(path.clone(), now).filter(|_| now.is_none());
            changes.push(FileChange { path: path.as_path().into(), now, fresh, was });
        }
        changes
    }
}

fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|m| m.is_symlink() || m.nlink() > 1)
}

/// Writes data and size to the servers: `close` alone does not if the client flushes in the background.
pub(crate) fn sync(path: &Path) {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(path, flags, Mode::empty()) else { return };
    if rustix::fs::fstat(&file).is_ok_and(|s| rustix::fs::FileType::from_raw_mode(s.st_mode).is_file()) {
        let _ = rustix::fs::fdatasync(&file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(changes: &[FileChange], root: &Path) -> Vec<(String, bool, bool)> {
        let short = |c: &FileChange| c.path.as_path().strip_prefix(root).unwrap().display().to_string();
        changes.iter().map(|c| (short(c), c.now.is_some(), c.fresh)).collect()
    }

    #[test]
    fn each_kind_of_change_is_reported_once() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::write(root.join("old"), "1").unwrap();
        std::fs::write(root.join("gone"), "1").unwrap();
        let mut watch = FolderWatch::new().unwrap();
        watch.add(root);
        assert!(watch.report(true).is_empty());
        std::fs::write(root.join("new"), "1").unwrap();
        std::fs::write(root.join("old"), "2").unwrap();
        std::fs::remove_file(root.join("gone")).unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/deep"), "1").unwrap();
        std::fs::write(root.join("tmp"), "1").unwrap();
        std::fs::remove_file(root.join("tmp")).unwrap();
        let told = names(&watch.report(false), root);
        let want = [("a", true, true), ("a/b", true, true), ("a/b/deep", true, true), ("gone", false, false)];
        let want = want.into_iter().chain([("new", true, true), ("old", true, false)]);
        assert_eq!(told, want.map(|(n, t, f)| (n.to_string(), t, f)).collect::<Vec<_>>());
        assert!(watch.report(true).is_empty());
        std::fs::write(root.join("a/b/deep"), "2").unwrap();
        assert_eq!(names(&watch.report(false), root), [("a/b/deep".to_string(), true, false)]);
        let was = root.join("a/b/deep").metadata().unwrap().ino();
        std::fs::remove_file(root.join("a/b/deep")).unwrap();
        assert_eq!(watch.report(false)[0].was, Some(was));
    }

    #[test]
    fn of_a_folder_above_another_only_what_comes_into_it_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("own/src")).unwrap();
        std::fs::create_dir_all(root.join("others/much")).unwrap();
        let mut watch = FolderWatch::new().unwrap();
        watch.add(&root.join("own/src"));
        watch.add(&root.join("own/src/../.."));
        watch.report(true);
        for name in ["own/src/a", "b", "others/much/c"] {
            std::fs::write(root.join(name), "1").unwrap();
        }
        std::fs::create_dir(root.join("new")).unwrap();
        std::fs::write(root.join("new/d"), "1").unwrap();
        let seen: Vec<_> = watch.report(true).into_iter().map(|change| change.path.to_path()).collect();
        let seen_at = |name: &str| seen.iter().any(|path| path.ends_with(name));
        assert!(seen_at("src/a") && seen_at("b") && seen_at("new/d"), "{seen:?}");
        assert!(!seen_at("much/c"), "{seen:?}");
    }

    #[test]
    fn what_is_made_for_a_look_is_told_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let mut watch = FolderWatch::new().unwrap();
        watch.add(dir.path());
        std::fs::write(dir.path().join(".homing-look.n1.7.0"), "").unwrap();
        std::fs::write(dir.path().join("new"), "").unwrap();
        assert_eq!(names(&watch.report(true), dir.path()), [("new".to_string(), true, true)]);
    }

    #[test]
    fn a_file_that_is_being_written_waits() {
        let dir = tempfile::tempdir().unwrap();
        let mut watch = FolderWatch::new().unwrap();
        watch.add(dir.path());
        let file = std::fs::File::create(dir.path().join("half")).unwrap();
        assert!(watch.report(false).is_empty());
        drop(file);
        assert_eq!(watch.report(false).len(), 1);
    }

    #[test]
    fn what_the_kernel_had_no_room_to_tell_is_found_by_a_look() {
        let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let limit: usize = limit.trim().parse().unwrap();
        if limit > 100_000 {
            eprintln!("SKIPPED: this kernel queues {limit} events");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("r");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        for name in ["gone", "still", "sub/old"] {
            std::fs::write(root.join(name), "1").unwrap();
        }
        let mut watch = FolderWatch::new().unwrap();
        watch.add(&root);
        let mode = std::fs::metadata(root.join("sub/old")).unwrap().permissions();
        for _ in 0..=limit {
            // Consecutive equal events are merged, so the two files alternate.
            std::fs::set_permissions(root.join("sub/old"), mode.clone()).unwrap();
            std::fs::set_permissions(root.join("still"), mode.clone()).unwrap();
        }
        std::fs::remove_file(root.join("gone")).unwrap();
        std::fs::write(root.join("sub/old"), "2").unwrap();
        std::fs::create_dir_all(root.join("late/deep")).unwrap();
        std::fs::write(root.join("late/deep/file"), "1").unwrap();
        let told = names(&watch.report(true), &root);
        let has = |name: &str, there| told.iter().any(|(n, t, _)| n == name && *t == there);
        assert!(has("gone", false) && has("sub/old", true) && has("late/deep/file", true), "{told:?}");
        // The folder that was made without events is watched from now on.
        std::fs::write(root.join("late/deep/file"), "3").unwrap();
        assert!(names(&watch.report(true), &root).iter().any(|(n, ..)| n == "late/deep/file"));
    }
}
