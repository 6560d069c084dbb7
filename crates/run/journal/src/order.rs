//! The order in which the runs of a folder began. The file has one name a line, added when a run begins. Thus no
//! clock decides which run is the last.

use homing_os::folder::open_plain_as;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The file in the folder of runs.
const NAME: &str = ".order";

/// Adds a run that begins. The first run of a folder needs no note, because runs without a note count as older.
pub(crate) fn note(root: &Path, run: &str) -> io::Result<()> {
    if !std::fs::read_dir(root)?.flatten().any(|entry| entry.file_name() != run) {
        return Ok(());
    }
    let options = &mut File::options();
    let mut file = open_plain_as(&root.join(NAME), options.append(true).create(true).mode(0o600))?;
    // A process that was killed here may have left a part of a line.
    file.write_all(format!("\n{run}\n").as_bytes())
}

/// Returns the position of each noted run. Runs of older versions and the first run of the folder have none, and are
/// older.
pub(crate) fn places(root: &Path) -> HashMap<String, usize> {
    let text = std::fs::read(root.join(NAME)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().filter(|line| !line.is_empty()).enumerate().map(|(at, name)| (name.to_string(), at)).collect()
}
