//! Real daemons of a file system for one test. A script starts them in namespaces of their own, which end daemons and
//! mounts when the test ends.

#[path = "../../../../../tests/skipped.rs"]
mod skipped;

pub use skipped::skipped;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set in the process that runs inside the namespaces: its folder.
const INSIDE: &str = "HOMING_TEST_BASE";
/// Set in the process that an ordinary user runs: the path for its test.
const USER: &str = "HOMING_TEST_USER";

/// Runs `test` of this program inside namespaces in which `tests/SCRIPT` has started the daemons: `check` receives
/// the folder that contains everything. If root or one of `programs` is missing, prints that and does nothing.
pub fn with_daemons(test: &str, script: &str, programs: &[&str], check: impl FnOnce(&Path)) {
    if let Some(base) = std::env::var_os(INSIDE) {
        return check(Path::new(&base));
    }
    if !rustix::process::geteuid().is_root() || !programs.iter().all(|program| installed(program)) {
        skipped(&format!("{script} needs root and {}", programs.join(", ")));
        return;
    }
    let base = tempfile::Builder::new().prefix("homing-locate").tempdir().unwrap();
    let status = Command::new("timeout")
        .args(["--kill-after=5", "400", "unshare", "-n", "-m", "-u", "-i", "-p", "--fork", "--kill-child"])
        .args(["--mount-proc", "sh"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script))
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(INSIDE, base.path())
        .status()
        .unwrap();
    assert!(status.success(), "inside the namespaces: {status}");
}

pub fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // An ordinary user's PATH lacks the folder of daemons.
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.into_iter().any(|dir| dir.join(program).is_file())
}

/// Runs the test `as_an_ordinary_user` of this program as nobody, in a process of its own.
pub fn as_nobody(about: &Path) {
    let status = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "as_an_ordinary_user", "--nocapture"])
        .env(USER, about)
        .status()
        .unwrap();
    assert!(status.success(), "as an ordinary user: {status}");
}

/// Returns the path for `as_an_ordinary_user`; `None` if it runs by itself.
pub fn about() -> Option<PathBuf> {
    std::env::var_os(USER).map(PathBuf::from)
}
