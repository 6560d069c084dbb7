//! A recipe that was given to a host.

use crate::HostChoice;
use crate::asked::RecipeRequest;
use homing_launch::Attempt;
use homing_launch::wire::OutputStream;
use homing_model::event::SAID_BYTES;
use homing_model::live::SHOWN_BYTES;
use homing_model::text::{keep_tail, last_line};
use std::time::Instant;

/// The kept error output of a running recipe, bytes. A compiler prints some lines below each of its errors, and the
/// first error is the most useful.
const TAIL: usize = 8 << 10;

/// How compilers and linkers mark errors.
const ERROR: &[u8] = b"error:";

/// A running recipe with its host.
pub type RecipeAttempt = Attempt<RecipeDetails>;

/// The facts besides its host.
pub struct RecipeDetails {
    pub request: RecipeRequest,
    pub slot: usize,
    pub sent: Instant,
    pub choice: HostChoice,
    pub fence_us: u64,
    /// Bytes that it printed so far, on each stream.
    pub printed: [u64; 2],
    /// The end of its error output so far.
    tail: Vec<u8>,
    /// The end of all that it printed.
    shown: Vec<u8>,
}

impl RecipeDetails {
    /// Makes the record for the chosen host.
    pub fn new(request: RecipeRequest, choice: HostChoice, slot: usize) -> RecipeDetails {
        let (sent, fence_us, printed) = (Instant::now(), 0, [0; 2]);
        let (tail, shown) = Default::default();
        RecipeDetails { request, slot, sent, choice, fence_us, printed, tail, shown }
    }

    /// Stores output of the recipe.
    pub fn prints(&mut self, stream: OutputStream, bytes: &[u8]) {
        self.printed[usize::from(stream == OutputStream::Err)] += bytes.len() as u64;
        keep_tail(&mut self.shown, bytes, SHOWN_BYTES);
        if stream == OutputStream::Err {
            keep_tail(&mut self.tail, bytes, TAIL);
        }
    }

    /// Returns the end of its output, for watching programs.
    pub fn shown(&self) -> &[u8] {
        &self.shown
    }

    /// Returns why it failed, in its own words: its first error message, else its last line.
    pub fn failure_message(&self) -> Option<String> {
        let is_error = |line: &&[u8]| line.windows(ERROR.len()).any(|part| part == ERROR);
        // The first line of a cut text is incomplete.
        let whole = self.tail.split(|b| *b == b'\n').skip(usize::from(self.tail.len() == TAIL));
        last_line(whole.into_iter().find(is_error).unwrap_or(&self.tail), SAID_BYTES)
    }
}
