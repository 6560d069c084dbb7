//! What surrounds a recipe of `homing make`: before it, what other hosts wrote
//! is made visible here; after it, what it wrote is synced and told.

use homing_fence::Watch;
use homing_model::{Change, RawText};
use homing_wire::FromWorker;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The watched folders of a build, and how many recipes run in them here.
pub(crate) struct Recipes {
    watch: Mutex<Watch>,
    running: AtomicUsize,
}

impl Recipes {
    pub fn new(roots: &[RawText]) -> std::io::Result<Recipes> {
        let mut watch = Watch::new()?;
        roots.iter().for_each(|root| watch.add(root.as_path()));
        Ok(Recipes { watch: Mutex::new(watch), running: AtomicUsize::new(0) })
    }

    /// The fence of a recipe that is about to start in `cwd`: the answer to
    /// give when it may not, else the microseconds that it took.
    pub fn before(&self, ticket: u64, cwd: Option<&Path>, changes: &[Change]) -> Result<u64, FromWorker> {
        let began = Instant::now();
        if let Err(late) = homing_fence::settle(changes) {
            return Err(FromWorker::Late { ticket, why: late.to_string(), change: late.change });
        }
        if let Some(cwd) = cwd {
            self.lock().add(cwd);
        }
        self.running.fetch_add(1, Ordering::SeqCst);
        Ok(began.elapsed().as_micros() as u64)
    }

    /// What changed here. The caller sends it while `send` is called, so that
    /// no recipe ends before the report that holds its files.
    pub fn after(&self, ticket: u64, fence_us: u64, send: impl FnOnce(FromWorker)) {
        let began = Instant::now();
        let mut watch = self.lock();
        let alone = self.running.fetch_sub(1, Ordering::SeqCst) == 1;
        let changes = watch.report(alone);
        let overflowed = std::mem::take(&mut watch.overflowed);
        let fence_us = fence_us + began.elapsed().as_micros() as u64;
        send(FromWorker::Changed { ticket, changes, fence_us, overflowed });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
