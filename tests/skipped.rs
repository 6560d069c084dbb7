//! Names a test that is left out on this machine, for the reader and for `tests/run`. Crates include it by its path.

use std::io::Write;

/// Prints why this test is left out, and adds a line to the file that `$HOMING_LEFT_OUT` names.
pub fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
    if let Some(list) = std::env::var_os("HOMING_LEFT_OUT") {
        let test = std::thread::current().name().unwrap_or("a test").to_string();
        let mut list = std::fs::OpenOptions::new().create(true).append(true).open(list).unwrap();
        list.write_all(format!("{test}: {why}\n").as_bytes()).unwrap();
    }
}
