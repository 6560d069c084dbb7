//! `--on-exit`: a command of the user after the end of a run, however it ended.

use homing_journal::Counts;
use homing_model::Failure;
use std::ffi::OsStr;
use std::process::Command;

/// Runs the command. Its failure is reported and changes nothing.
pub fn run(line: &OsStr, name: &str, label: Option<&str>, counts: &Counts, ended: &Result<i32, Failure>) {
    let status = ended.as_ref().map_or_else(|failure| failure.status, |status| *status);
    let mut shell = Command::new("/bin/sh");
    shell.env("HOMING_RUN", name).env("HOMING_NAME", label.unwrap_or_default()).env("HOMING_EXIT", status.to_string());
    shell.env("HOMING_DONE", counts.done.to_string()).env("HOMING_FAILED", counts.failed().to_string());
    if let Err(why) = homing_os::process::run_hook(shell, line, None) {
        eprintln!("homing: --on-exit {}: {why}", homing_model::text::shown(&line.to_string_lossy()));
    }
}
