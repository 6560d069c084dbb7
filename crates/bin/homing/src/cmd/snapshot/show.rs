//! Writes reports of snapshots, to standard output or to a file.

use homing_model::Failure;
use homing_snapshot::ask::Listed;
use homing_snapshot::metrics;
use homing_snapshot::target::Target;
use jiff::Timestamp;
use std::io::{self, Write};
use std::path::Path;

/// Writes to standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|e| Failure::unwritten("writing to standard output", &e))
}

/// Writes the whole file, which all users may read, because the node exporter is another user. Unknown values have no
/// sample.
pub fn prometheus(file: &Path, vaults: &[(Target, Listed)]) -> Result<(), Failure> {
    let rows: Vec<(&str, &Listed)> = vaults.iter().map(|(target, listed)| (target.name.as_str(), listed)).collect();
    let text = metrics::of_rows(&rows, Timestamp::now());
    let written = homing_os::folder::write_whole(file, text.as_bytes(), Some(0o644));
    written.map_err(|e| Failure::system(format!("writing {}: {e}", file.display())))
}
