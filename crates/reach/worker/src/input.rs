//! The standard input of a task, received ahead into a file in memory. No thread has to write while the task reads. A
//! task that reads only the beginning ends like any other.

use rustix::fs::{Timespec, Timestamps};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The file as it grows, or the error that stopped it.
pub(crate) struct GrowingFile {
    file: io::Result<File>,
    length: u64,
}

/// One second after the beginning of time. gzip takes zero for a time out of range, and warns.
const TIME: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

impl GrowingFile {
    /// Makes an empty input.
    pub fn new() -> GrowingFile {
        let made = rustix::fs::memfd_create("stdin", rustix::fs::MemfdFlags::CLOEXEC);
        GrowingFile { file: made.map(File::from).map_err(io::Error::from), length: 0 }
    }

    /// Appends bytes. The task still reads from the beginning.
    pub fn add(&mut self, bytes: &[u8]) {
        let Ok(file) = &self.file else { return };
        match file.write_all_at(bytes, self.length) {
            Ok(()) => self.length += bytes.len() as u64,
            Err(error) => self.file = Err(error),
        }
    }

    /// Returns the whole file. Its time is the same for equal bytes: programs such as gzip write the time of their
    /// input into their output.
    pub fn file(&self) -> Result<&File, String> {
        if let Ok(file) = &self.file {
            let times = Timestamps { last_access: TIME, last_modification: TIME };
            // Without the time the bytes are the same ones.
            let _ = rustix::fs::futimens(file, &times);
        }
        self.file.as_ref().map_err(|e| format!("cannot hold its standard input in memory: {e}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn it_is_read_from_its_beginning_whole_and_in_order() {
        let mut input = GrowingFile::new();
        input.add(b"a\nb");
        input.add(b"c\n");
        let mut text = String::new();
        input.file().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "a\nbc\n");
        let time = input.file().unwrap().metadata().unwrap().modified().unwrap();
        assert_eq!(time.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs(), 1, "gzip writes the time");
    }
}
