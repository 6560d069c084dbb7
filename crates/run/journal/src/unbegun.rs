//! Removes the folder of a run that never began: bad input is no run, and is not listed as one.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Guard that removes the folder of a new run if its journal holds no record at the end.
pub struct Unbegun(Option<PathBuf>);

impl Unbegun {
    /// Guards the folder of a new run. A resumed run keeps its folder.
    pub fn new(dir: &Path, resumed: bool) -> Unbegun {
        Unbegun((!resumed).then(|| dir.to_path_buf()))
    }

    /// Whether the run certainly has no record on the disk. A record is written before any task starts, so no task
    /// has run. A journal that cannot be read may have a record.
    pub fn is_certain(&self) -> bool {
        let Some(dir) = &self.0 else { return false };
        let journal = std::fs::File::open(dir.join(crate::FILE));
        let mut first = Vec::new();
        let read = journal.and_then(|file| BufReader::new(file).read_until(b'\n', &mut first));
        read.is_ok() && !first.ends_with(b"\n")
    }
}

impl Drop for Unbegun {
    fn drop(&mut self) {
        if let Some(dir) = self.0.as_ref().filter(|_| self.is_certain()) {
            // Failure to remove the folder leaves only an odd line of `homing runs`.
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}
