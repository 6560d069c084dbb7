//! A user's command at the end of something.

use super::ended_within;
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Runs a line by `/bin/sh` with further variables, and waits for its end. Its output goes to standard error: the
/// standard output belongs to the tasks. It has no input. Returns why it did not succeed. After `limit` it is ended.
pub fn run_hook(mut shell: Command, line: &OsStr, limit: Option<Duration>) -> Result<(), String> {
    let to_error = std::io::stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from);
    shell.arg("-c").arg(line).stdin(Stdio::null()).stdout(to_error);
    let mut child = shell.spawn().map_err(|error| format!("cannot start /bin/sh: {error}"))?;
    let ended = match limit {
        None => child.wait().map(Some),
        Some(limit) => ended_within(&mut child, limit),
    };
    match ended.map_err(|error| error.to_string())? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(status.to_string()),
        None => {
            let _ = child.kill();
            let _ = child.wait();
            Err(format!("it was ended after {} s", limit.unwrap_or_default().as_secs()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_variables_and_its_failure_is_reported() {
        let run = |line: &str, limit: Option<Duration>| {
            let mut shell = Command::new("/bin/sh");
            shell.env("HOMING_EXIT", "3");
            run_hook(shell, OsStr::new(line), limit)
        };
        assert_eq!(run("test $HOMING_EXIT = 3", None), Ok(()));
        assert_eq!(run("exit 4", Some(Duration::from_secs(60))).unwrap_err(), "exit status: 4");
        assert!(run("exec sleep 600", Some(Duration::from_millis(50))).unwrap_err().contains("was ended"));
    }
}
