//! Builds libraries that a test preloads into the program. Crates include it by its path.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds a source of `tests/` as a library in `dir`. Returns its path.
pub fn preload(dir: &Path, source: &str) -> PathBuf {
    let library = dir.join(source).with_extension("so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests").join(source);
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
    assert!(built.unwrap().success(), "cc builds the library, as it links every Rust program");
    library
}
