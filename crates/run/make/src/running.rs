//! A recipe that was given to a host.

use crate::Choice;
use crate::asked::Asked;
use homing_launch::Attempt;
use homing_launch::wire::Stream;
use homing_model::event::SAID_BYTES;
use homing_model::live::SHOWN_BYTES;
use homing_model::text::{keep_tail, last_line};
use std::time::Instant;

/// Kept of the error output of a running recipe, bytes: a compiler draws some lines below each of its errors, and the
/// first one tells most.
const TAIL: usize = 8 << 10;

/// How compilers and linkers mark what is wrong.
const ERROR: &[u8] = b"error:";

/// What the coordinator knows of it.
pub type Running = Attempt<Given>;

/// Besides its host.
pub struct Given {
    pub asked: Asked,
    pub slot: usize,
    pub sent: Instant,
    pub choice: Choice,
    pub fence_us: u64,
    /// Bytes that it printed so far, on each stream.
    pub printed: [u64; 2],
    /// The end of its error output so far.
    tail: Vec<u8>,
    /// The end of all that it printed.
    shown: Vec<u8>,
}

impl Given {
    /// To the host that was chosen.
    pub fn new(asked: Asked, choice: Choice, slot: usize) -> Given {
        let (sent, fence_us, printed) = (Instant::now(), 0, [0; 2]);
        let (tail, shown) = Default::default();
        Given { asked, slot, sent, choice, fence_us, printed, tail, shown }
    }

    /// It printed something.
    pub fn prints(&mut self, stream: Stream, bytes: &[u8]) {
        self.printed[usize::from(stream == Stream::Err)] += bytes.len() as u64;
        keep_tail(&mut self.shown, bytes, SHOWN_BYTES);
        if stream == Stream::Err {
            keep_tail(&mut self.tail, bytes, TAIL);
        }
    }

    /// The end of what it has printed, for those who watch.
    pub fn shown(&self) -> &[u8] {
        &self.shown
    }

    /// Why it failed, in its own words: what it calls an error, else its last line.
    pub fn said(&self) -> Option<String> {
        let is_error = |line: &&[u8]| line.windows(ERROR.len()).any(|part| part == ERROR);
        // The first line of what was cut is no whole one.
        let whole = self.tail.split(|b| *b == b'\n').skip(usize::from(self.tail.len() == TAIL));
        last_line(whole.into_iter().find(is_error).unwrap_or(&self.tail), SAID_BYTES)
    }
}
