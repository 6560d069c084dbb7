//! Writes to a standard error that may be gone: a log on a full disk, or a closed connection.

use std::fmt::Arguments;
use std::io::{Write, stderr};

/// Works as `eprintln!`, but does not panic if standard error cannot be written. The message is lost then, and the
/// work continues.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => { $crate::process::write_error(format_args!($($words)*), "\n") };
}

/// Writes to standard error in one call, if it can be written.
pub fn write_error(words: Arguments, end: &str) {
    let _ = stderr().write_all(format!("{words}{end}").as_bytes());
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// Runs this test again, in a process of its own.
    #[test]
    fn a_full_disk_under_its_log_ends_nobody() {
        if std::env::var_os("HOMING_TEST_SAY").is_some() {
            crate::say!("there is no room {}", "for this");
            return;
        }
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "process::say::tests::a_full_disk_under_its_log_ends_nobody", "--nocapture"]);
        assert!(again.env("HOMING_TEST_SAY", "1").stderr(full).output().unwrap().status.success());
    }
}
