//! The folder of a run that never began: bad input is no run, and is not listed as one.

use std::path::{Path, PathBuf};

/// Takes the folder away unless the run begins.
pub struct Unbegun(Option<PathBuf>);

impl Unbegun {
    /// Of a new run; one that is resumed keeps its folder.
    pub fn new(dir: &Path, resumed: bool) -> Unbegun {
        Unbegun((!resumed).then(|| dir.to_path_buf()))
    }
    /// From here on its journal tells what happens.
    pub fn begins(mut self) {
        self.0 = None;
    }
}

impl Drop for Unbegun {
    fn drop(&mut self) {
        if let Some(dir) = &self.0 {
            // Left behind it would only be an odd line of `homing runs`.
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}
