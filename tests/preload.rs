//! Libraries that a test puts below the program. Crates take this in by its path.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A source of `tests/`, built as a library in `dir`.
pub fn preload(dir: &Path, source: &str) -> PathBuf {
    let library = dir.join(source).with_extension("so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests").join(source);
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
    assert!(built.unwrap().success(), "cc builds the library, as it links every Rust program");
    library
}
