//! Checks which mounts `locate` takes for a network file system. `probe` reports them, and a run on this machine
//! needs no more knowledge of them. Uses a real bindfs, which like many others has the type `fuse` and no more.

use crate::skipped::skipped;
use homing_locate::Locator;
use homing_mounts::{FileSystemKind, holding, read};
use std::path::Path;
use std::process::Command;

/// A folder mounted at another place; unmounted when dropped.
struct Shown(tempfile::TempDir);

impl Shown {
    fn new() -> Option<Shown> {
        if !rustix::process::geteuid().is_root() || !Path::new("/usr/bin/bindfs").exists() {
            skipped("it needs root and bindfs");
            return None;
        }
        let base = tempfile::tempdir().unwrap();
        for folder in ["from", "at"] {
            std::fs::create_dir(base.path().join(folder)).unwrap();
        }
        std::fs::write(base.path().join("from/f"), "content\n").unwrap();
        let mounted = Command::new("bindfs").args(["from", "at"]).current_dir(base.path()).status().unwrap();
        assert!(mounted.success(), "bindfs: {mounted}");
        Some(Shown(base))
    }

    fn at(&self) -> std::path::PathBuf {
        self.0.path().join("at")
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.at()).status();
    }
}

fn kind_in_the_table(path: &Path) -> FileSystemKind {
    FileSystemKind::of(&holding(&read().unwrap(), &path.canonicalize().unwrap()).unwrap().mount)
}

#[test]
fn a_file_system_that_nobody_knows_is_one_to_locate_and_probe_and_runs_here() {
    let Some(shown) = Shown::new() else { return };
    let at = shown.at();
    assert_eq!(kind_in_the_table(&at), FileSystemKind::Other);
    assert_eq!(Locator::new().unwrap().volume_of(&at).unwrap().kind, FileSystemKind::Other);
    let reported = homing_probe::facts().mounts;
    assert!(reported.iter().any(|m| m.point.as_path() == at.canonicalize().unwrap()), "{reported:?}");
    assert!(homing_fence::Fence::at(&at.join("f")).0.is_none());
    let mut run = Command::new(env!("CARGO_BIN_EXE_homing"));
    run.current_dir(&at).env("HOMING_RUNS", shown.0.path().join("runs")).env_remove("HOMING_CLUSTER");
    let out = run.args(["run", "--on", "local", "cat {}", ":::", "f"]).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && out.stdout == b"content\n", "{said}");
}

/// Checks each kind of network file system by the one `FileSystemKind`: its mount in the table that hosts exchange, and
/// the answer of the fence.
#[test]
fn each_kind_is_reported_and_has_an_answer_of_the_fence() {
    let rows = [
        ("fuse.glusterfs", "n1:/data", true),
        ("fuse", "mfs#n1:9421", true),
        ("fuse.mfs", "n1:9421", true),
        ("nfs", "nas:/x", true),
        ("nfs4", "nas:/x", true),
        ("lustre", "10.0.0.1@tcp:/lfs1", false),
        ("ceph", "n1:/", false),
        ("gpfs", "gpfs0", false),
        ("virtiofs", "shared", false),
        ("fuse.sshfs", "a@b:", true),
        ("fuse.sshfs", "localhost:/x", false),
    ];
    for (nth, (fstype, source, fenced)) in rows.into_iter().enumerate() {
        let lines = homing_mounts::parse(format!("{nth} 0 0:{nth} / /d rw - {fstype} {source} rw\n").as_bytes());
        let kind = FileSystemKind::of(&lines[0].mount);
        assert!(kind.is_network(), "{fstype}");
        assert_eq!(homing_mounts::network(lines).len(), 1, "{fstype}");
        assert_eq!(homing_fence::Fence::of(kind).is_some(), fenced, "{fstype}");
    }
    assert!(!FileSystemKind::Local.is_network() && homing_fence::Fence::of(FileSystemKind::Local).is_none());
}
