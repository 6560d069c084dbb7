//! Writes files that other users read, such as the node exporter.

use homing_model::Failure;
use std::path::Path;

/// Writes a file that all users may read. A reader sees the old text or the new one.
pub fn write_whole(file: &Path, text: &str) -> Result<(), Failure> {
    let written = homing_os::folder::write_whole(file, text.as_bytes(), Some(0o644));
    written.map_err(|e| Failure::system(format!("writing {}: {e}", file.display())))
}
