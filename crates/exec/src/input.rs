//! One standard input for many hosts, of any length, in little memory.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
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
}

impl Spool {
    /// All of these bytes, and no more.
    pub fn of(bytes: &[u8]) -> io::Result<Arc<Spool>> {
        let spool = Spool::empty()?;
        spool.append(bytes)?;
        spool.end();
        Ok(spool)
    }

    /// What `source` gives, read by a thread until its end.
    pub fn from_reader(mut source: impl Read + Send + 'static) -> io::Result<Arc<Spool>> {
        let spool = Spool::empty()?;
        let filled = spool.clone();
        homing_threads::begin(move || {
            let mut chunk = vec![0; 64 << 10];
            loop {
                match source.read(&mut chunk) {
                    Ok(0) => break,
                    Ok(n) if filled.append(&chunk[..n]).is_ok() => {}
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    _ => break,
                }
            }
            filled.end();
        })?;
        Ok(spool)
    }

    fn empty() -> io::Result<Arc<Spool>> {
        let file = tempfile::tempfile()?;
        Ok(Arc::new(Spool { file, state: Mutex::default(), grown: Condvar::new() }))
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.file).write_all(bytes)?;
        self.state.lock().unwrap_or_else(PoisonError::into_inner).len += bytes.len() as u64;
        self.grown.notify_all();
        Ok(())
    }

    fn end(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
        self.grown.notify_all();
    }

    /// Copies everything to `to`, until the end, or until `to` takes no more or `stop` is set.
    pub(crate) fn feed(&self, mut to: impl Write, stop: &AtomicBool) {
        let (mut at, mut chunk) = (0, vec![0; 64 << 10]);
        while let Some(len) = self.beyond(at, stop) {
            let most = chunk.len().min((len - at) as usize);
            let Ok(n @ 1..) = self.file.read_at(&mut chunk[..most], at) else { return };
            if to.write_all(&chunk[..n]).is_err() {
                return;
            }
            at += n as u64;
        }
    }

    /// The length once it is more than `at`; `None` when it will never be.
    fn beyond(&self, at: u64, stop: &AtomicBool) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
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
