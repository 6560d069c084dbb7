//! The output of a host, kept to its end: in memory while it is small, then in a file without a name. Equal outputs
//! are kept once.

use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Write};
use std::os::unix::fs::FileExt;

/// Most bytes of one output in memory.
const IN_MEMORY: usize = 64 << 10;

/// An output that comes in pieces.
#[derive(Default)]
pub struct Capture {
    memory: Vec<u8>,
    file: Option<File>,
    len: u64,
    hash: Sha256,
}

/// The key by which two outputs are equal.
pub type OutputKey = (u64, [u8; 32]);

impl Capture {
    /// Appends a piece.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.len += bytes.len() as u64;
        if let Some(file) = &mut self.file {
            return file.write_all(bytes);
        }
        self.memory.extend(bytes);
        if self.memory.len() > IN_MEMORY {
            let mut file = tempfile::tempfile()?;
            file.write_all(&self.memory)?;
            self.memory = Vec::new();
            self.file = Some(file);
        }
        Ok(())
    }

    /// Returns the file that holds a large output.
    pub fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    /// Returns the number of bytes.
    pub fn size(&self) -> u64 {
        self.len
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns length and SHA-256.
    pub fn key(&self) -> OutputKey {
        (self.len, self.hash.clone().finalize().into())
    }

    /// Returns a reader from the start.
    pub fn reader(&self) -> Box<dyn BufRead + '_> {
        match &self.file {
            None => Box::new(Cursor::new(&self.memory)),
            Some(file) => Box::new(BufReader::with_capacity(64 << 10, SpoolReader { file, at: 0 })),
        }
    }

    /// Returns the lines, without their ends.
    pub fn lines(&self) -> impl Iterator<Item = Vec<u8>> {
        self.reader().split(b'\n').map_while(Result::ok)
    }
}

/// A reader with its own position in the shared file.
struct SpoolReader<'a> {
    file: &'a File,
    at: u64,
}

impl Read for SpoolReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(bytes, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_and_small_read_the_same() {
        for size in [0, 10, IN_MEMORY, IN_MEMORY + 1, 5 * IN_MEMORY] {
            let text: Vec<u8> = (0..size).map(|i| if i % 80 == 79 { b'\n' } else { (i % 251) as u8 }).collect();
            let (mut pieces, mut whole) = (Capture::default(), Capture::default());
            text.chunks(1000).for_each(|c| pieces.push(c).unwrap());
            whole.push(&text).unwrap();
            assert!(pieces.key() == whole.key() && pieces.len() == size as u64);
            let mut back = Vec::new();
            pieces.reader().read_to_end(&mut back).unwrap();
            assert!(back == text, "{size}");
        }
    }
}
