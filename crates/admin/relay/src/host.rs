//! The process of a leader.

use crate::{Passed, folder};
use std::io::BufReader;

/// `tree-host`: serves as a leader, on standard input and output.
pub fn host() -> Result<(), String> {
    let made = folder::make(&folder::room());
    // The guard holds its lock as well.
    let (folder, _lock) = made.map_err(|e| format!("making a folder in {}: {e}", folder::room().display()))?;
    // The guard removes the folder, however this process ends.
    let left = folder.clone();
    let guarded = homing_os::process::guarded_to_the_end(true, move || drop(std::fs::remove_dir_all(&left)));
    guarded.map_err(|e| format!("starting the process that removes {}: {e}", folder.display()))?;
    let mut out = std::io::stdout();
    homing_launch::wire::send_hello(&mut out, &homing_probe::facts()).map_err(|e| e.to_string())?;
    match homing_exec::serve::<Passed>(BufReader::new(std::io::stdin()), out, &folder) {
        // A daemon that was started here goes on, as on the other hosts.
        Ok(true) => Ok(()),
        Ok(false) => Err("the homing that started this leader has ended".into()),
        Err(e) => Err(e.to_string()),
    }
}
