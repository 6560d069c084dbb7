//! Ends the processes of a job whose keeper was killed together with its guard.

use std::fs;
use std::path::Path;

/// The variable that marks a job's processes, for the case that their keeper has ended.
pub(crate) const MARK: &str = "HOMING_JOB_FOLDER";

/// Returns its value.
pub(crate) fn mark(dir: &Path, index: u32) -> String {
    format!("{}:{index}", dir.display())
}

/// Kills the processes that a killed keeper has left; they would run without slots. Only the first process of a job
/// dies with its keeper by itself.
pub(crate) fn kill_descendants(dir: &Path, index: u32) {
    let line = format!("{MARK}={}", mark(dir, index)).into_bytes();
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in numbers.filter_map(|e| e.file_name().to_str()?.parse::<libc::pid_t>().ok()) {
        // The environment of other users' processes cannot be read.
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        if pid != std::process::id() as libc::pid_t && environ.split(|b| *b == 0).any(|v| v == line) {
            // SAFETY: kill with plain numbers.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
}
