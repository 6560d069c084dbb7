//! Passes on the commit of the tree that is built, for `--version`. `HOMING_COMMIT` takes its place in packages.

use std::process::Command;

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_string())
}

/// Whether the sources are the tree of their repository, and no copy inside that of another project.
fn has_own_repository() -> bool {
    git(&["ls-files", "--error-unmatch", "build.rs"]).is_some()
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=HOMING_COMMIT");
    if !has_own_repository() {
        return;
    }
    // Git adds a line to this file with each commit and checkout.
    if let Some(log) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo:rustc-env=HOMING_TREE={commit}");
    }
}
