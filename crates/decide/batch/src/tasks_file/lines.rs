//! Reads the lines of a task file, and skips empty ones. The last line needs no newline: a file that was cut inside of
//! a line ends with an error about that line, since half an object is no JSON.

use crate::error::BatchError;
use crate::records::{BOM, LONGEST_LINE, read_until};
use std::io::BufRead;

/// Most bytes of a line: the limit of a command line, with each byte escaped as six, like JSON's `\u0001`.
const LONGEST_TASK: usize = 6 * LONGEST_LINE;

pub(super) struct TaskFileReader {
    reader: Box<dyn BufRead + Send>,
    name: String,
    /// The number of the last read line, from 1.
    pub line: u64,
}

impl TaskFileReader {
    pub fn new(reader: Box<dyn BufRead + Send>, name: String) -> TaskFileReader {
        TaskFileReader { reader, name, line: 0 }
    }

    pub fn next(&mut self) -> Result<Option<Vec<u8>>, BatchError> {
        let mut text = Vec::new();
        loop {
            text.clear();
            let got = read_until(&mut self.reader, b'\n', LONGEST_TASK + 1, &mut text);
            if got.map_err(|source| BatchError::Read { name: self.name.clone(), source })? == 0 {
                return Ok(None);
            }
            self.line += 1;
            if self.line == 1 && text.starts_with(BOM) {
                text.drain(..BOM.len());
            }
            if text.len() > LONGEST_TASK {
                return Err(BatchError::TooLong { name: self.name.clone(), item: self.line, limit: LONGEST_TASK });
            }
            if !text.trim_ascii().is_empty() {
                return Ok(Some(text));
            }
        }
    }

    /// Makes an error about the last read line.
    pub fn wrong(&self, reason: String) -> BatchError {
        BatchError::TaskLine { name: self.name.clone(), line: self.line, reason }
    }
}
