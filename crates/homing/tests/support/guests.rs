//! Hosts of a lab with a kernel of their own.

use crate::support::EXE;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program without what only a debugger reads, which guests would hash and carry too: three times smaller.
pub struct Program(pub PathBuf);

impl Program {
    /// For the lab of this name, with which it goes.
    pub fn new(lab: &str) -> Program {
        let path = Path::new(EXE).with_file_name(format!("homing-{lab}{}", std::process::id()));
        let stripped = Command::new("strip").arg("-o").args([path.as_path(), Path::new(EXE)]).status();
        if !stripped.is_ok_and(|s| s.success()) {
            std::fs::copy(EXE, &path).unwrap();
        }
        Program(path)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The faster kind that starts here.
pub fn best_kind() -> &'static str {
    if processors_have_amx() { "qemu" } else { "uml" }
}

/// Debian's user-mode Linux 6.1 does not start on these.
fn processors_have_amx() -> bool {
    std::fs::read_to_string("/proc/cpuinfo").unwrap().contains(" amx_tile")
}
