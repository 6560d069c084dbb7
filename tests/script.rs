//! Scripts that a test puts in the place of a program. Crates take this in by its path.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Puts a script of `sh` there, which may be executed.
pub fn script(path: &Path, text: &str) {
    program(path, &format!("#!/bin/sh\n{text}\n"));
}

/// Puts a program there.
///
/// A process of its own writes it. Otherwise a child that another test's thread forks in that moment would have the
/// file open for writing until it executes. Linux refuses to execute such a file ("text file busy").
pub fn program(path: &Path, text: &str) {
    let mut write = Command::new("sh");
    write.args(["-c", ": >\"$0\" && chmod 755 \"$0\" && exec cat >\"$0\""]).arg(path).stdin(Stdio::piped());
    let mut child = write.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{} is written", path.display());
}
