//! The reading side: makes this host see changes that other hosts made. The steps and the longest wait differ by file
//! system: they are constants of its own file, in a [`Fence`].

use crate::stamp::{agrees, look};
use crate::{FENCES, Fence, FenceStep, comparable, fence_in};
use homing_model::{FileChange, FileStamp};
use homing_os::folder::{Existing, make_file};
use rustix::fs::{Advice, Mode, OFlags, XattrFlags};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The least number of looks before a file counts as late. On an overloaded host a single look may take as long as
/// the bound.
const LEAST_LOOKS: usize = 10;

/// The number of looks of a fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Changes that were looked at.
    pub looked: usize,
    /// Number of repeated looks.
    pub again: usize,
}

/// A file that this host does not see as its writer left it, after the bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("after {waited:?} this host still sees {} in another state than the host that wrote it: {}", .change.path.display(), stamp_difference(.change, *.seen))]
pub struct Late {
    /// The change.
    pub change: FileChange,
    /// The state that this host sees.
    pub seen: Option<FileStamp>,
    /// The time waited.
    pub waited: Duration,
}

fn stamp_difference(change: &FileChange, seen: Option<FileStamp>) -> String {
    let same_size = change.now.zip(seen).is_some_and(|(a, b)| a.size == b.size);
    let one = |stamp: Option<FileStamp>| match stamp {
        None => "no such file".into(),
        Some(s) if same_size => format!("{} bytes at {}, inode {}", s.size, seconds(s.mtime_ns), s.ino),
        Some(s) => format!("{} bytes", s.size),
    };
    format!("written: {}, seen: {}", one(change.now), one(seen))
}

/// Formats seconds since 1970.
fn seconds(ns: i64) -> String {
    format!("{}.{:09}", ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000))
}

/// A change that this host has to look at.
struct Item<'a> {
    change: &'a FileChange,
    path: PathBuf,
    fence: &'static Fence,
    mount: PathBuf,
}

/// Returns when this host sees all of `changes`. The error is the first one that it does not see within the bound of
/// the file system ([`Fence::bound`]).
pub fn settle(changes: &[FileChange]) -> Result<Settled, Box<Late>> {
    settle_for(changes, Duration::MAX)
}

/// As `settle`, but waits for at most `patience` if the file system's bound is longer. It suits callers that may
/// learn meanwhile that the file has changed again.
pub fn settle_for(changes: &[FileChange], patience: Duration) -> Result<Settled, Box<Late>> {
    let items = concerned(changes);
    let all: Vec<&Item> = items.iter().collect();
    let behind = steps(&all, |fence| fence.first);
    let left = steps(&behind, |fence| fence.again);
    let mut done = Settled { looked: items.len(), again: behind.len() };
    for item in left {
        done.again += wait_for(item, patience)?;
    }
    Ok(done)
}

/// Returns the state of a name after all steps that make this host look again, without waiting.
pub fn look_anew(path: &Path) -> Option<FileStamp> {
    let change = FileChange { path: path.into(), now: None, fresh: false, was: None };
    let (fence, mount) = Fence::at(path);
    if let Some(fence) = fence {
        let item = Item { change: &change, path: path.to_path_buf(), fence, mount };
        fence.again.iter().for_each(|step| take(*step, &[&item]));
    }
    comparable(fence, look(path, true))
}

/// Makes this host look again at recent changes below `root`, for callers without a list of changes.
pub fn refresh(root: &Path) {
    let changes = crate::recent(root, crate::server_behind(root));
    let items = concerned(&changes);
    let all: Vec<&Item> = items.iter().collect();
    steps(&all, |fence| fence.again);
}

/// Takes each step for all items together, so that a folder is read once and not for each of its files. Returns the
/// items that are not seen afterwards.
fn steps<'a>(items: &[&'a Item<'a>], steps: fn(&Fence) -> &'static [FenceStep]) -> Vec<&'a Item<'a>> {
    for fence in FENCES {
        let its: Vec<&Item> = items.iter().copied().filter(|item| std::ptr::eq(item.fence, fence)).collect();
        steps(fence).iter().for_each(|step| take(*step, &its));
    }
    items.iter().copied().filter(|item| !agrees(item.change, look(&item.path, true), item.fence.own_marks)).collect()
}

fn concerned(changes: &[FileChange]) -> Vec<Item<'_>> {
    if changes.is_empty() {
        return Vec::new();
    }
    let table = homing_mounts::read().unwrap_or_default();
    let mut mounts = HashMap::new();
    let mut items = Vec::new();
    for change in changes {
        let path = change.path.to_path();
        let parent = path.parent().unwrap_or(Path::new("/")).to_path_buf();
        let (fence, mount) = mounts.entry(parent).or_insert_with(|| fence_in(&table, &path)).clone();
        if let Some(fence) = fence.filter(|fence| (fence.concerns)(change)) {
            items.push(Item { change, path, fence, mount });
        }
    }
    items
}

/// Looks until this host sees the change. Returns the number of repeated looks.
fn wait_for(item: &Item, patience: Duration) -> Result<usize, Box<Late>> {
    let Item { change, path, fence, .. } = item;
    let bound = fence.bound;
    let began = Instant::now();
    let mut again = 0;
    let mut pause = Duration::from_millis(2);
    loop {
        let seen = look(path, true);
        if agrees(change, seen, fence.own_marks) {
            return Ok(again);
        }
        if began.elapsed() > bound.min(patience) && again >= LEAST_LOOKS {
            // It was looked at for longer than any cache lasts, so it was removed and made again.
            if change.now.is_none() && bound <= patience {
                return Ok(again);
            }
            return Err(Box::new(Late { change: (*change).clone(), seen, waited: began.elapsed() }));
        }
        if again > 0 {
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(100));
        }
        again += 1;
        fence.again.iter().for_each(|step| take(*step, &[item]));
    }
}

fn take(step: FenceStep, items: &[&Item]) {
    let mut folders: HashSet<&Path> = HashSet::new();
    for item in items {
        let folder = item.path.parent().unwrap_or(&item.mount);
        match step {
            FenceStep::SyncAncestors if folders.insert(folder) => sync_ancestors(&item.path, &item.mount),
            FenceStep::ListParent if folders.insert(folder) => list(folder),
            FenceStep::ForgetListing if folders.insert(folder) => forget_listing(folder),
            FenceStep::SyncAncestors | FenceStep::ListParent | FenceStep::ForgetListing => {}
            FenceStep::Invalidate => invalidate(&item.path),
            FenceStep::DropPages => drop_pages(&item.path),
            FenceStep::Open => open(&item.path),
            FenceStep::Link => link(&item.path),
        }
    }
}

pub(crate) fn sync_ancestors(path: &Path, mount: &Path) {
    let mut folders: Vec<&Path> = path.ancestors().skip(1).take_while(|p| p.starts_with(mount)).collect();
    folders.reverse();
    for folder in folders {
        let _ = look(folder, true);
    }
}

pub(crate) fn list(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        drop(entry);
    }
}

/// Invalidates a file of GlusterFS. The kernel refuses that for another user's file; then only the listing and the
/// bound help. GlusterFS's client (10.3) ends itself, and the mount with it, if this is called on the mount's root,
/// by any name: a bind mount, `.`. FUSE numbers the root 1.
fn invalidate(path: &Path) {
    let is_root = std::fs::symlink_metadata(path).is_ok_and(|found| found.ino() == 1);
    if !is_root {
        let _ = rustix::fs::lsetxattr(path, "inode-invalidate", b"1", XattrFlags::empty());
    }
}

fn drop_pages(path: &Path) {
    if let Ok(file) = opened(path) {
        let _ = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
    }
}

fn opened(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

fn open(path: &Path) {
    // A symbolic link cannot be opened. Links of other users cannot be linked to; then only the bound helps.
    if opened(path).is_err_and(|error| error == Errno::LOOP) {
        link(path);
    }
}

fn link(path: &Path) {
    let name = passing(path.parent().unwrap_or(path));
    if rustix::fs::link(path, &name).is_ok() {
        let _ = std::fs::remove_file(&name);
    }
}

/// Prefix of temporary names.
const PASSING: &str = ".homing-look.";

/// Whether a name was made only for a look, so that it is not reported.
pub(crate) fn is_passing(name: &[u8]) -> bool {
    name.starts_with(PASSING.as_bytes())
}

/// Returns a temporary name that no other look of any host has.
pub(crate) fn passing(folder: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let host = homing_os::names::own_name();
    let (process, nth) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    folder.join(format!("{PASSING}{host}.{process}.{nth}"))
}

fn forget_listing(folder: &Path) {
    let path = passing(folder);
    if make_file(&path, Existing::Refuse, 0o600).is_ok() {
        let _ = std::fs::remove_file(&path);
    }
}

/// Lists a folder of a mount whose program caches listings.
pub(crate) fn list_past_the_program(folder: &Path) {
    forget_listing(folder);
    list(folder);
}
