//! An input that is a stream: one thread reads it ahead of need into its kept copy. Tasks are made of that copy, so
//! memory does not grow.

use homing_batch::HELD_FILE;
use homing_journal::{EarlierInput, Keeping};
use homing_os::threads::lock;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The bytes that are read ahead. That much of an input is soon safe in its copy, and an endless source does not fill
/// the disk.
const AHEAD: u64 = HELD_FILE;

/// An error of the copy, as opposed to an error of the source.
#[derive(Debug, thiserror::Error)]
#[error("cannot store it in the run's folder: {0}")]
pub struct NotKept(io::Error);

/// Marks an error as one of the copy.
pub fn not_kept(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), NotKept(error))
}

/// An input of which a run that was cut off had read only the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The known bytes.
    pub known: u64,
    /// The reason why there are no more.
    pub why: &'static str,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Cut { known, why } = self;
        write!(f, "the run was interrupted before it had read the end, only {known} bytes of it are known, and {why}")
    }
}

impl std::error::Error for Cut {}

impl Cut {
    /// Returns the reason of a failed read, if it is this one.
    pub fn of(error: &io::Error) -> Option<Cut> {
        error.get_ref()?.downcast_ref().copied()
    }
}

/// The end of a cut input is an error, not an end, because the bytes before it may be half an item.
impl Read for Cut {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other(*self))
    }
}

/// The bytes that are compared at once.
const PIECE: u64 = 64 << 10;

/// Returns whether two sources give the same bytes.
pub fn is_same(one: &mut impl Read, other: &mut impl Read) -> io::Result<bool> {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    loop {
        a.clear();
        b.clear();
        one.by_ref().take(PIECE).read_to_end(&mut a)?;
        other.by_ref().take(PIECE).read_to_end(&mut b)?;
        if a != b {
            return Ok(false);
        }
        if (a.len() as u64) < PIECE {
            return Ok(true);
        }
    }
}

/// The state that reader and follower share.
#[derive(Default)]
struct StreamState {
    written: u64,
    taken: u64,
    /// The end of the copy, if it is complete or failed.
    over: Option<io::Result<()>>,
    /// Whether the follower is gone.
    left: bool,
}

#[derive(Default)]
struct SharedStream {
    state: Mutex<StreamState>,
    changed: Condvar,
}

impl SharedStream {
    fn state(&self) -> MutexGuard<'_, StreamState> {
        lock(&self.state)
    }

    fn change(&self, how: impl FnOnce(&mut StreamState)) {
        how(&mut self.state());
        self.changed.notify_all();
    }

    fn wait_while(&self, mut until: impl FnMut(&StreamState) -> bool) -> MutexGuard<'_, StreamState> {
        let waited = self.changed.wait_while(self.state(), |state| until(state));
        waited.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads `source` in a thread into its copy, and returns a reader of the growing copy. `kept`: the beginning that is
/// in the copy already, and that `source` must give again.
pub fn follow(source: Box<dyn Read + Send>, keeping: Keeping, kept: Option<EarlierInput>) -> io::Result<Follower> {
    let copy = File::open(keeping.copy())?;
    let shared = Arc::new(SharedStream::default());
    let kept = kept.map_or(0, |kept| kept.length);
    shared.change(|state| state.written = kept);
    let (theirs, again) = (shared.clone(), File::open(keeping.copy())?);
    homing_os::threads::begin_as(thread::Builder::new().name("input".into()), move || {
        let mut source = source;
        let over = begins_with(&mut source, again, kept).and_then(|()| take_in(&mut source, keeping, &theirs));
        theirs.change(|state| state.over = Some(over));
    })?;
    Ok(Follower { copy, shared })
}

/// Checks that the source gives the `kept` bytes of the copy again.
fn begins_with(source: &mut impl Read, copy: File, kept: u64) -> io::Result<()> {
    if kept == 0 {
        return Ok(());
    }
    if is_same(&mut source.take(kept), &mut copy.take(kept))? {
        return Ok(());
    }
    let why = "the present input does not begin with them";
    Err(io::Error::other(Cut { known: kept, why }))
}

/// Copies the rest. Each piece is reported once it is in the copy, and the end once its mark is written.
fn take_in(source: &mut impl Read, mut keeping: Keeping, shared: &SharedStream) -> io::Result<()> {
    let mut piece = vec![0; 64 << 10];
    loop {
        let full = |state: &StreamState| !state.left && state.written - state.taken > AHEAD;
        if shared.wait_while(full).left {
            return Ok(());
        }
        match source.read(&mut piece) {
            Ok(0) => return keeping.end().map_err(not_kept),
            Ok(n) => {
                keeping.add(&piece[..n]).map_err(not_kept)?;
                shared.change(|state| state.written += n as u64);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// A reader of the growing copy of an input.
pub struct Follower {
    copy: File,
    shared: Arc<SharedStream>,
}

impl Read for Follower {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.shared.wait_while(|state| state.taken == state.written && state.over.is_none());
        let ready = state.written - state.taken;
        if ready == 0 {
            // An error is returned once, and then the end.
            return state.over.replace(Ok(())).map_or(Ok(0), |over| over.map(|()| 0));
        }
        let at = state.taken;
        drop(state);
        let most = buffer.len().min(usize::try_from(ready).unwrap_or(usize::MAX));
        let n = self.copy.read_at(&mut buffer[..most], at)?;
        if n == 0 && most > 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "its copy in the run's folder was truncated"));
        }
        self.shared.change(|state| state.taken += n as u64);
        Ok(n)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.shared.change(|state| state.left = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(dir: &std::path::Path, source: &'static [u8]) -> (Vec<u8>, Option<Cut>) {
        let kept = homing_journal::kept(dir, "stdin").unwrap();
        let keeping = match &kept {
            Some(kept) => Keeping::go_on(kept).unwrap(),
            None => Keeping::begin(dir, "stdin").unwrap(),
        };
        let mut all = Vec::new();
        let end = follow(Box::new(source), keeping, kept).unwrap().read_to_end(&mut all);
        (all, end.err().map(|e| Cut::of(&e).unwrap()))
    }

    #[test]
    fn the_rest_is_taken_from_a_source_that_begins_with_what_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("stdin"), "a\nb").unwrap();
        assert_eq!(read(dir.path(), b"a\nbc\nd\n"), (b"a\nbc\nd\n".to_vec(), None));
        let kept = homing_journal::kept(dir.path(), "stdin").unwrap().unwrap();
        assert_eq!((kept.length, kept.whole), (7, true));
    }

    #[test]
    fn another_source_gives_nothing_beyond_what_is_kept() {
        for other in [&b""[..], b"a", b"a\nc\n", b"x\na\nb\n"] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join("stdin"), "a\nb").unwrap();
            let (all, cut) = read(dir.path(), other);
            assert_eq!((all.as_slice(), cut.unwrap().known), (&b"a\nb"[..], 3));
            assert!(!homing_journal::kept(dir.path(), "stdin").unwrap().unwrap().whole);
        }
    }

    #[test]
    fn sources_are_the_same_only_to_their_last_byte() {
        let long = vec![7; 200_000];
        let mut longer = long.clone();
        longer.push(7);
        assert!(is_same(&mut long.as_slice(), &mut long.as_slice()).unwrap());
        assert!(!is_same(&mut long.as_slice(), &mut longer.as_slice()).unwrap());
        assert!(!is_same(&mut &b"a"[..], &mut &b"b"[..]).unwrap());
    }

    #[test]
    fn a_source_that_nobody_follows_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let keeping = Keeping::begin(dir.path(), "stdin").unwrap();
        let (mut to, from) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut follower = follow(Box::new(from), keeping, None).unwrap();
        to.write_all(b"a").unwrap();
        let mut byte = [0];
        follower.read_exact(&mut byte).unwrap();
        drop(follower);
        // The reading thread notices the end of its follower at the next piece, and closes its side.
        while to.write_all(&[0; 4096]).is_ok() {}
        assert!(!homing_journal::kept(dir.path(), "stdin").unwrap().unwrap().whole);
    }
}
