//! Hosts of a lab with a kernel of their own.
#![allow(dead_code, reason = "each test file takes what it needs")]

use crate::support::{EXE, Lab, missing};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program without debug symbols, which guests would hash and carry too: three times smaller.
pub struct Program(pub PathBuf);

impl Program {
    /// Makes the program for the lab of this name. The file is removed with the value.
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

/// Raises guests on `kind`, of which n1 serves, with the program for them. Returns `None` where the guests or the
/// programs `also` are impossible.
pub fn serving(name: &str, kind: &str, hosts: &str, also: &[&str]) -> Option<(Program, Lab)> {
    serving_by("vers=4.2", name, kind, hosts, also)
}

/// Raises the same with this shape of NFS.
pub fn serving_by(nfs: &str, name: &str, kind: &str, hosts: &str, also: &[&str]) -> Option<(Program, Lab)> {
    let program = if kind == "uml" { "linux.uml" } else { "qemu-system-x86_64" };
    if missing(&[&[program, "exportfs", "mount.nfs", "rpcbind", "busybox", "setpriv"], also].concat()) {
        return None;
    }
    Some((Program::new(name), Lab::up(name, &["--hosts", hosts, "--disk", "512M", "--nfs", nfs, "--guests", kind])))
}

/// Returns the faster kind that starts here.
pub fn best_kind() -> &'static str {
    if processors_have_amx() { "qemu" } else { "uml" }
}

/// Debian's user-mode Linux 6.1 does not start on these processors.
fn processors_have_amx() -> bool {
    std::fs::read_to_string("/proc/cpuinfo").unwrap().contains(" amx_tile")
}
