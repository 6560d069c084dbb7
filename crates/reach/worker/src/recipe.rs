//! The fences around a recipe of `homing make`. Before it, the files that other hosts wrote are made visible here.
//! After it, the files that it wrote are synced and reported.

use homing_fence::FolderWatch;
use homing_launch::wire::FromWorker;
use homing_model::{FileChange, FileStamp, RawText};
use homing_os::threads::lock;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The watched folders of a build, and the number of recipes that run in them here.
pub(crate) struct Recipes {
    watch: Mutex<FolderWatch>,
    /// Changes by other hosts that this host has not seen yet.
    pending: Mutex<Vec<FileChange>>,
    /// The files of other hosts as this host last saw them. Looking at a file again appears to the watch as a change
    /// of its attributes; these stamps filter such events.
    seen: Mutex<HashMap<PathBuf, Option<FileStamp>>>,
    running: AtomicUsize,
}

impl Recipes {
    pub fn new(roots: &[RawText]) -> std::io::Result<Recipes> {
        let mut watch = FolderWatch::new()?;
        roots.iter().for_each(|root| watch.add(root.as_path()));
        let (pending, seen, running) = Default::default();
        Ok(Recipes { watch: Mutex::new(watch), pending, seen, running })
    }

    /// Adds changes; called in the order of the messages. The coordinator sends a change once, and the first recipe
    /// that starts waits for all of them.
    pub fn expect(&self, changes: Vec<FileChange>) {
        let mut pending = lock(&self.pending);
        pending.retain(|old| !changes.iter().any(|new| new.path == old.path));
        pending.extend(changes);
    }

    /// The fence before a recipe in `cwd`. Returns the microseconds that it took, or the answer if the recipe may not
    /// start.
    pub fn before(&self, ticket: u64, cwd: Option<&Path>, folders: &[RawText]) -> Result<u64, Box<FromWorker>> {
        let began = Instant::now();
        let mut pending = lock(&self.pending);
        if let Err(late) = homing_fence::settle(&pending) {
            return Err(Box::new(FromWorker::Late { ticket, why: late.to_string(), change: late.change }));
        }
        let mut watch = lock(&self.watch);
        let mut seen = lock(&self.seen);
        for change in pending.drain(..) {
            if change.now.is_some_and(|now| now.dir) {
                watch.learn(change.path.as_path());
            }
            seen.insert(change.path.to_path(), change.now);
        }
        drop(seen);
        cwd.into_iter().chain(folders.iter().map(RawText::as_path)).for_each(|folder| watch.add(folder));
        self.running.fetch_add(1, Ordering::SeqCst);
        Ok(began.elapsed().as_micros() as u64)
    }

    /// Reports the changes here. `send` is called while no other report can be made, so that no recipe ends before
    /// the report that contains its files.
    pub fn after(&self, ticket: u64, fence_us: u64, folders: &[RawText], send: impl Fn(FromWorker)) {
        let began = Instant::now();
        let mut watch = lock(&self.watch);
        let alone = self.running.fetch_sub(1, Ordering::SeqCst) == 1;
        folders.iter().for_each(|folder| watch.learn(folder.as_path()));
        let mut seen = lock(&self.seen);
        let changes = watch.report_unless(alone, |path, now| seen.get(path) == Some(&now));
        // The files at these paths are now this host's own.
        changes.iter().for_each(|change| _ = seen.remove(change.path.as_path()));
        drop(seen);
        let mut fence_us = fence_us + began.elapsed().as_micros() as u64;
        for changes in homing_launch::wire::portions(changes) {
            send(FromWorker::Changed { ticket, changes, fence_us: std::mem::take(&mut fence_us) });
        }
    }
}
