//! This host's part in a build: make and its other children read files here and write some themselves.

use crate::{ChangeLog, RecipeWork, file_words, folders_named};
use homing_fence::{Fence, FolderWatch, Late, recent, server_behind, settle_for};
use homing_locate::{CandidatePaths, Finder, Locator, OwnLocators};
use homing_model::{Ahead, FileChange, FileStamp, RawText};
use homing_os::threads::lock;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// This host's number in the log of changes; workers count from 1.
pub const HERE: usize = 0;
/// Smaller inputs do not decide where a recipe runs: 256 KiB cross a 1 Gbit/s link in 2 ms.
const WORTH_ASKING: u64 = 256 << 10;
/// The most files of one recipe that are located, the largest first.
const MOST_ASKED: usize = 16;

/// How long a file is awaited that is missing here although its writer reported it. A recipe that still runs may have
/// moved it, and reports that when it ends.
const MOVED_WITHIN: Duration = Duration::from_secs(60);

/// Interval at which an awaited file is compared with later reports. On NFS it may be late by a minute, and a
/// temporary file of `ar` is gone after some milliseconds.
const ASK_AGAIN: Duration = Duration::from_millis(2500);

/// The state that all connections share.
pub struct Near {
    /// Whether fences are in use, for hosts that see outdated files.
    pub fenced: bool,
    watch: Mutex<FolderWatch>,
    /// The written files with their hosts.
    pub log: Mutex<ChangeLog>,
    pending: Mutex<Vec<FileChange>>,
    mounts: Mutex<HashMap<PathBuf, (Option<&'static Fence>, PathBuf)>>,
    finder: Option<Finder>,
}

/// Bytes that a recipe will read, as far as is known.
#[derive(Clone, Debug, Default)]
pub struct RecipeInputs {
    /// All of them.
    pub bytes: u64,
    /// Bytes by the host that holds them.
    pub on: BTreeMap<String, u64>,
}

impl Near {
    /// Watches `root` from now on. Without `fenced` nothing is waited for, which serves to show the effect of fences.
    pub fn new(root: &Path, fenced: bool, own: OwnLocators) -> std::io::Result<Near> {
        let mut watch = FolderWatch::new()?;
        let behind = if fenced { server_behind(root) } else { Duration::ZERO };
        watch.add(root);
        let mut log = ChangeLog::default();
        if fenced {
            log.add(HERE, recent(root, behind));
        }
        Ok(Near {
            fenced,
            watch: Mutex::new(watch),
            log: Mutex::new(log),
            pending: Mutex::default(),
            mounts: Mutex::default(),
            finder: Locator::new().ok().map(|locator| Finder::over(locator.with_own(own))),
        })
    }

    /// Adds files that a host with a clock behind ours wrote. They look old, and are looked at again everywhere.
    pub fn wrote_behind(&self, root: &Path, ahead: Ahead) {
        let behind = Duration::from_nanos(ahead.certain_ns().min(0).unsigned_abs());
        lock(&self.log).add(HERE, recent(root, behind));
    }

    /// Records changes on this host since the last call: by make itself, by programs that it started without homing,
    /// and by a local worker.
    pub fn notice(&self, cwd: &Path) {
        let mut watch = lock(&self.watch);
        watch.add(cwd);
        let known = |path: &Path, now| lock(&self.log).state(&path.into()) == Some(now);
        let changes = watch.report_unless(false, known);
        if !changes.is_empty() {
            lock(&self.log).add(HERE, changes);
        }
    }

    /// Returns when this host sees all files that were written elsewhere so far. Connections wait for each other
    /// here, because a later one may need the files that another one is waiting for.
    pub fn catch_up(&self) -> Result<Duration, String> {
        let began = Instant::now();
        if !self.fenced {
            return Ok(Duration::ZERO);
        }
        let mut pending = lock(&self.pending);
        let mut since: HashMap<RawText, Instant> = HashMap::new();
        loop {
            let news = lock(&self.log).take_changes(HERE);
            pending.retain(|old| !news.iter().any(|new| new.path == old.path));
            pending.extend(news);
            let looked = Instant::now();
            let Err(late) = settle_for(&pending, ASK_AGAIN) else { break };
            let path = &late.change.path;
            let waited = since.entry(path.clone()).or_insert(looked).elapsed();
            let state = lock(&self.log).state(path);
            match verdict(&late, state, waited, self.bound_of(path.as_path())) {
                FileTreatment::Outdated => pending.retain(|change| change.path != late.change.path),
                FileTreatment::Wait => {}
                FileTreatment::Stop => return Err(late.to_string()),
            }
        }
        let folders: Vec<FileChange> = pending.drain(..).filter(|c| c.now.is_some_and(|n| n.dir)).collect();
        if !folders.is_empty() {
            let mut watch = lock(&self.watch);
            folders.iter().for_each(|folder| watch.learn(folder.path.as_path()));
        }
        Ok(began.elapsed())
    }

    /// Handles a host that did not see `change` within the bound. Returns true if the change is outdated. A recipe
    /// that still runs may have removed the file (zlib's makefile moves each object), and this host sees that.
    pub fn is_outdated(&self, change: &FileChange) -> bool {
        let known = || lock(&self.log).state(&change.path).is_none_or(|state| state == change.now);
        if !known() {
            return true;
        }
        // If the file is awaited here too, this host knows nothing newer, and the other host tries again.
        match self.pending.try_lock() {
            Ok(pending) if pending.iter().any(|awaited| awaited.path == change.path) => return false,
            Ok(_) => {}
            Err(_) => return true,
        }
        let now = homing_fence::look_anew(change.path.as_path());
        if now == change.now || !known() {
            return now != change.now;
        }
        let was = change.now.filter(|_| now.is_none()).map(|old| old.ino);
        lock(&self.log).add(HERE, vec![FileChange { path: change.path.clone(), now, fresh: false, was }]);
        true
    }

    /// Returns the changes that a worker has to see before its next recipe.
    pub fn fence_of(&self, observer: usize) -> Vec<FileChange> {
        match observer {
            // Make's own host waited for them when each recipe ended.
            HERE => Vec::new(),
            _ if !self.fenced => Vec::new(),
            observer => lock(&self.log).take_changes(observer),
        }
    }

    /// Returns the mount point of a folder's file system; `None` for this host's own disks.
    pub fn shared_mount(&self, folder: &Path) -> Option<PathBuf> {
        let (_, mount) = self.fence_at(folder);
        let network =
            self.finder.as_ref().and_then(|f| f.locator().volume_of(folder).ok()).is_some_and(|v| v.kind.is_network());
        network.then_some(mount)
    }

    fn fence_at(&self, folder: &Path) -> (Option<&'static Fence>, PathBuf) {
        lock(&self.mounts).entry(folder.to_path_buf()).or_insert_with(|| Fence::at(folder)).clone()
    }

    /// Whether a host can fail to see a file that exists.
    pub fn may_be_late(&self, path: &Path) -> bool {
        self.fence_at(path.parent().unwrap_or(path)).0.is_some()
    }

    /// Returns the longest time for which a path may be late here.
    fn bound_of(&self, path: &Path) -> Duration {
        self.fence_at(path).0.map_or(Duration::ZERO, |fence| fence.bound)
    }

    /// Returns folders named in a recipe that others may see. They are on `cwd`'s file system or on another that
    /// hosts share. So `/bin` is left out, although a variable may name a shell.
    pub fn folders(&self, text: &str, cwd: &Path) -> Vec<RawText> {
        let (_, own) = self.fence_at(cwd);
        let shared = |folder: &PathBuf| {
            let (fence, mount) = self.fence_at(folder);
            mount == own || fence.is_some()
        };
        folders_named(text, cwd).into_iter().filter(shared).map(|f| RawText::from(f.as_path())).collect()
    }

    /// Returns the places of a recipe's inputs: files that this host sees, and files of HDFS, whose sizes the
    /// NameNode reports.
    pub fn inputs(&self, Files { mut sized, remote }: Files) -> RecipeInputs {
        let bytes: u64 = sized.iter().map(|(size, _)| size).sum();
        let is_worth_it = bytes >= WORTH_ASKING || !remote.is_empty();
        let Some(finder) = self.finder.as_ref().filter(|_| is_worth_it) else {
            return RecipeInputs { bytes, on: BTreeMap::new() };
        };
        sized.sort_unstable_by(|a, b| b.cmp(a));
        let words = sized.into_iter().take(MOST_ASKED).map(|(_, path)| path).collect();
        let mut on = finder.inputs(&CandidatePaths { words, ..CandidatePaths::default() }).shared;
        let found = finder.inputs(&CandidatePaths { remote, ..CandidatePaths::default() });
        found.shared.into_iter().for_each(|(host, more)| *on.entry(host).or_default() += more);
        RecipeInputs { bytes: bytes + found.bytes, on }
    }
}

/// Files that a recipe reads.
#[derive(Debug, Default, PartialEq)]
pub struct Files {
    /// With their sizes.
    sized: Vec<(u64, PathBuf)>,
    /// Names of files on HDFS.
    remote: Vec<PathBuf>,
}

/// Returns the files that a recipe reads. It is the first look at its files and its folder. Fails with a message if
/// one of them does not answer.
pub fn files_of(text: &str, cwd: &Path, step: RecipeWork) -> Result<Files, String> {
    let most = if step == RecipeWork::Gather { 200 } else { 8 };
    let (mut remote, words): (Vec<PathBuf>, Vec<PathBuf>) =
        file_words(text).into_iter().take(most).partition(|word| homing_locate::is_remote(word));
    remote.sort_unstable();
    remote.dedup();
    let words: Vec<PathBuf> = words.into_iter().map(|word| cwd.join(word)).collect();
    let looked: Vec<PathBuf> = words.iter().cloned().chain([cwd.to_path_buf()]).collect();
    let sized = |path: PathBuf| Some((path.metadata().ok().filter(|meta| meta.is_file())?.len(), path));
    let cwd = cwd.to_path_buf();
    homing_mounts::patiently(looked, homing_mounts::FS_TIMEOUT, move || {
        let _ = cwd.metadata();
        Files { sized: words.into_iter().filter_map(sized).collect(), remote }
    })
}

/// The treatment of a file that this host does not see as it was written.
#[derive(Debug, PartialEq, Eq)]
enum FileTreatment {
    /// The awaited state is outdated.
    Outdated,
    Wait,
    Stop,
}

/// Decides about a late file; `state` is the newest known one.
fn verdict(late: &Late, state: Option<Option<FileStamp>>, waited: Duration, bound: Duration) -> FileTreatment {
    match state {
        Some(newer) if newer != late.change.now => FileTreatment::Outdated,
        _ if waited < bound => FileTreatment::Wait,
        // It was removed, and made again.
        _ if late.change.now.is_none() => FileTreatment::Outdated,
        _ if late.seen.is_none() && waited < MOVED_WITHIN => FileTreatment::Wait,
        _ => FileTreatment::Stop,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_may_have_been_moved_and_what_is_old_is_late() {
        let dir = tempfile::tempdir().unwrap();
        let now = homing_fence::stamp(dir.path());
        let change = FileChange { path: dir.path().into(), now, fresh: true, was: None };
        let late = |seen| Late { change: change.clone(), seen, waited: Duration::from_secs(3) };
        let (short, long) = (Duration::from_secs(3), Duration::from_secs(90));
        let verdict = |late: &Late, state, waited| super::verdict(late, state, waited, Duration::from_millis(2500));
        assert_eq!(verdict(&late(None), Some(now), short), FileTreatment::Wait);
        assert_eq!(verdict(&late(None), Some(None), short), FileTreatment::Outdated);
        assert_eq!(verdict(&late(None), Some(now), long), FileTreatment::Stop);
        assert_eq!(verdict(&late(now), Some(now), short), FileTreatment::Stop);
        let behind = super::verdict(&late(now), Some(now), short, Duration::from_secs(65));
        assert_eq!(behind, FileTreatment::Wait, "NFS may take longer");
    }

    #[test]
    fn what_has_moved_on_here_is_told_as_the_newer_state() {
        let dir = tempfile::tempdir().unwrap();
        let near = Near::new(dir.path(), true, OwnLocators::default()).unwrap();
        let path = dir.path().join("x.o");
        std::fs::write(&path, "1").unwrap();
        let now = homing_fence::stamp(&path);
        let change = FileChange { path: path.as_path().into(), now, fresh: true, was: None };
        lock(&near.log).add(1, vec![change.clone()]);
        assert!(!near.is_outdated(&change), "it is there: that host is late");
        std::fs::rename(&path, dir.path().join("x.lo")).unwrap();
        assert!(near.is_outdated(&change));
        let told = near.fence_of(2);
        assert_eq!(told.iter().map(|c| (c.now, c.was)).collect::<Vec<_>>(), [(None, now.map(|s| s.ino))]);
        // The writer's own report comes later.
        assert!(near.is_outdated(&change));
    }
}
