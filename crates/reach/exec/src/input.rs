//! One standard input for many hosts, of any length, in little memory.

use homing_model::units;
use homing_os::folder::Reserve;
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that grow on one side and are read from their start by each host. They
/// lie in a file without a name, for hosts begin at different times and read
/// at different speeds.
#[derive(Debug)]
pub struct Spool {
    file: File,
    state: Mutex<State>,
    grown: Condvar,
}

#[derive(Debug, Default)]
struct State {
    len: u64,
    ended: bool,
    /// Why it ended before its source.
    failed: Option<String>,
}

impl Spool {
    /// All of these bytes, and no more.
    pub fn of(bytes: &[u8]) -> io::Result<Arc<Spool>> {
        let spool = Spool::empty(&std::env::temp_dir())?;
        spool.append(bytes)?;
        spool.end();
        Ok(spool)
    }

    /// Its length, once it has ended.
    pub fn length(&self) -> u64 {
        let state = self.state();
        self.grown.wait_while(state, |state| !state.ended).unwrap_or_else(PoisonError::into_inner).len
    }

    /// What `source` gives, read by a thread until its end. Where its disk has no room for more it ends early, and
    /// [`Spool::failure`] has the reason.
    pub fn from_reader(mut source: impl Read + Send + 'static) -> io::Result<Arc<Spool>> {
        let spool = Spool::empty(&std::env::temp_dir())?;
        let filled = spool.clone();
        homing_os::threads::begin(move || {
            let failed = filled.fill(&mut source).err();
            filled.state().failed = failed.map(|e| e.to_string());
            filled.end();
        })?;
        Ok(spool)
    }

    fn fill(&self, source: &mut impl Read) -> io::Result<()> {
        let (mut chunk, mut reserve) = (vec![0; 64 << 10], Reserve::default());
        loop {
            match source.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(n) => {
                    self.append(&chunk[..n])?;
                    if reserve.is_used_up(&self.file, n) {
                        let (folder, len) = (std::env::temp_dir(), units::bytes(self.state().len));
                        return Err(io::Error::other(format!(
                            "the disk of {folder:?} has no room for more than {len} of it"
                        )));
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Why it ended before its source, if it did.
    pub fn failure(&self) -> Option<String> {
        self.state().failed.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing yet; the bytes will lie in a folder's file system.
    pub(crate) fn empty(folder: &Path) -> io::Result<Arc<Spool>> {
        let file = tempfile::tempfile_in(folder)?;
        Ok(Arc::new(Spool { file, state: Mutex::default(), grown: Condvar::new() }))
    }

    pub(crate) fn append(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.file).write_all(bytes)?;
        self.state().len += bytes.len() as u64;
        self.grown.notify_all();
        Ok(())
    }

    pub(crate) fn end(&self) {
        self.state().ended = true;
        self.grown.notify_all();
    }

    /// Copies everything to `to`, until the end, or until `to` takes no more or `stop` is set. True: it was everything.
    pub(crate) fn feed(&self, to: impl Write, stop: &AtomicBool) -> bool {
        let Some(at) = self.copy(0..u64::MAX, to, stop) else { return false };
        let state = self.state();
        state.ended && state.len == at
    }

    /// Copies a part of it to `to`, and returns where it ends: where there is no more of it, or `stop` is set. `None`: `to`
    /// takes no more.
    pub(crate) fn copy(&self, part: Range<u64>, mut to: impl Write, stop: &AtomicBool) -> Option<u64> {
        let (mut at, mut chunk) = (part.start, vec![0; 64 << 10]);
        while at < part.end
            && let Some(len) = self.beyond(at, stop)
        {
            let most = (chunk.len() as u64).min(len.min(part.end) - at) as usize;
            let Ok(n @ 1..) = self.file.read_at(&mut chunk[..most], at) else { return None };
            to.write_all(&chunk[..n]).ok()?;
            at += n as u64;
        }
        Some(at)
    }

    /// The length once it is more than `at`; `None` when it will never be.
    fn beyond(&self, at: u64, stop: &AtomicBool) -> Option<u64> {
        let mut state = self.state();
        while state.len <= at {
            if state.ended || stop.load(Ordering::Relaxed) {
                return None;
            }
            let waited = self.grown.wait_timeout(state, Duration::from_millis(100));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(state.len)
    }
}
