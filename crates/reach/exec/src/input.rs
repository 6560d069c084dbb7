//! One standard input for many hosts, of any length, in little memory.

use homing_model::units;
use homing_os::folder::Reserve;
use homing_os::threads::lock;
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that grow at one end, while each host reads them from the start. They are in a file without a name, since
/// hosts begin at different times and read at different speeds.
#[derive(Debug)]
pub struct InputSpool {
    file: File,
    state: Mutex<SpoolState>,
    grown: Condvar,
}

#[derive(Debug, Default)]
struct SpoolState {
    len: u64,
    ended: bool,
    /// The reason if it ended before its source.
    failed: Option<String>,
}

impl InputSpool {
    /// Returns a spool of exactly these bytes.
    pub fn of(bytes: &[u8]) -> io::Result<Arc<InputSpool>> {
        let spool = InputSpool::empty(&std::env::temp_dir())?;
        spool.append(bytes)?;
        spool.end();
        Ok(spool)
    }

    /// Waits for its end and returns its length.
    pub fn length(&self) -> u64 {
        let state = self.state();
        self.grown.wait_while(state, |state| !state.ended).unwrap_or_else(PoisonError::into_inner).len
    }

    /// Returns a spool of the bytes of `source`, which a thread reads to its end. It ends early if its disk has no
    /// more room; [`InputSpool::failure`] then has the reason.
    pub fn from_reader(mut source: impl Read + Send + 'static) -> io::Result<Arc<InputSpool>> {
        let spool = InputSpool::empty(&std::env::temp_dir())?;
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
                            "the disk of {folder:?} has no space for more than {len} of it"
                        )));
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Returns the reason if it ended before its source.
    pub fn failure(&self) -> Option<String> {
        self.state().failed.clone()
    }

    fn state(&self) -> MutexGuard<'_, SpoolState> {
        lock(&self.state)
    }

    /// Returns an empty spool whose file is in the file system of `folder`.
    pub(crate) fn empty(folder: &Path) -> io::Result<Arc<InputSpool>> {
        let file = tempfile::tempfile_in(folder)?;
        Ok(Arc::new(InputSpool { file, state: Mutex::default(), grown: Condvar::new() }))
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

    /// Copies everything to `to`, until the end, until `to` accepts no more, or until `stop` is set. Returns whether
    /// all was copied.
    pub(crate) fn feed(&self, to: impl Write, stop: &AtomicBool) -> bool {
        let Some(at) = self.copy(0..u64::MAX, to, stop) else { return false };
        let state = self.state();
        state.ended && state.len == at
    }

    /// Copies a part to `to` and returns where the copy ends. It ends with the part or the spool, or when `stop` is
    /// set. `None`: `to` accepts no more.
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

    /// Waits until the length exceeds `at` and returns it; `None` if it never will.
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
