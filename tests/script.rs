//! Makes scripts that replace a program in a test. Crates include it by its path.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes an executable script of `sh`.
pub fn script(path: &Path, text: &str) {
    program(path, &format!("#!/bin/sh\n{text}\n"));
}

/// Writes an executable program.
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
