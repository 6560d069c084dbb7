//! The contract suite and the odd cases on a real GlusterFS: a glusterd, its
//! bricks and mounts in namespaces of their own, which end with this test.

use homing_locate::{Kind, Locator, contract, network_mounts};
use homing_model::FileLayout;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set in the process that runs inside the namespaces: its folder.
const INSIDE: &str = "HOMING_TEST_GLUSTER";
/// The name in the volumes' definitions; the brick server calls itself otherwise.
const HOST: &str = "gx.cluster";

#[test]
fn real_volumes() {
    if let Some(base) = std::env::var_os(INSIDE) {
        return inside(Path::new(&base));
    }
    if !rustix::process::geteuid().is_root() || which("glusterd").is_none() || which("glusterfs").is_none() {
        eprintln!("SKIPPED: a real GlusterFS needs root, glusterd and glusterfs");
        return;
    }
    let base = tempfile::Builder::new().prefix("homing-gluster").tempdir().unwrap();
    // The process namespace takes glusterd, bricks and mounts with it.
    let status = Command::new("timeout")
        .args(["--kill-after=5", "120", "unshare", "-n", "-m", "-u", "-i", "-p", "--fork", "--kill-child"])
        .args(["--mount-proc", "sh"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gluster.sh"))
        .arg(std::env::current_exe().unwrap())
        .env(INSIDE, base.path())
        .status()
        .unwrap();
    assert!(status.success(), "inside the namespaces: {status}");
}

fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

fn inside(base: &Path) {
    let at = |volume: &str| base.join("mnt").join(volume);
    let locator = Locator::new().unwrap();
    let allowed = BTreeSet::from([HOST.to_string()]);
    for volume in ["rep", "arb", "dis", "di2", "sh"] {
        let dir = at(volume).join("contract");
        std::fs::create_dir(&dir).unwrap();
        let found = locator.volume_of(&dir).unwrap();
        assert_eq!((found.kind, found.name), (Kind::Gluster, format!("gluster:{HOST}:/{volume}")));
        contract::check(&locator, &dir, &allowed);
    }
    assert_eq!(network_mounts().unwrap().iter().filter(|m| m.fstype == "fuse.glusterfs").count(), 7);
    placed_whole(&locator, &at("rep"));
    placed_whole(&locator, &at("arb"));
    dispersed(&locator, &at("dis"));
    sharded(&locator, &at("sh"));
    odd_names(&locator, &at("rep"));
    // A mount of a folder, seen through a symbolic link.
    std::os::unix::fs::symlink(at("sub"), base.join("link")).unwrap();
    std::fs::write(base.join("link/f"), "hello").unwrap();
    assert_whole(&locator.locate(&base.join("link/f")));
    unreadable(&at("rep"));
    brick_down(&locator, base, &at("alone"));
}

fn assert_whole(layout: &FileLayout) {
    assert_eq!(layout.reason, None, "{layout:?}");
    assert_eq!(layout.bytes_per_host().get(HOST), Some(&layout.size), "{layout:?}");
}

fn placed_whole(locator: &Locator, dir: &Path) {
    std::fs::write(dir.join("f"), vec![7; 100_000]).unwrap();
    assert_whole(&locator.locate(&dir.join("f")));
}

fn odd_names(locator: &Locator, dir: &Path) {
    // `b):gxhost:` needs a directory before it: the real path imitates a second entry.
    let imitation = dir.join("x> <POSIX(").join("bricks").join("1):gxhost:").join("x");
    std::fs::create_dir_all(imitation.parent().unwrap()).unwrap();
    std::fs::write(&imitation, "evil").unwrap();
    assert_whole(&locator.locate(&imitation));
    std::fs::write(dir.join("first"), "linked").unwrap();
    std::fs::hard_link(dir.join("first"), dir.join("second")).unwrap();
    assert_whole(&locator.locate(&dir.join("second")));
}

fn dispersed(locator: &Locator, dir: &Path) {
    std::fs::write(dir.join("f"), vec![7; 100_000]).unwrap();
    let layout = locator.locate(&dir.join("f"));
    assert_eq!(layout.reason, None, "{layout:?}");
    assert_eq!(layout.extents.len(), 1);
    // All three bricks are on this one host, so it can serve all of it.
    assert_eq!(layout.extents[0].replicas.len(), 1, "{layout:?}");
}

fn sharded(locator: &Locator, dir: &Path) {
    std::fs::write(dir.join("small"), vec![7; 4 << 20]).unwrap();
    assert_whole(&locator.locate(&dir.join("small")));
    std::fs::write(dir.join("big"), vec![7; 10 << 20]).unwrap();
    let layout = locator.locate(&dir.join("big"));
    assert_eq!(layout.extents[0].length, 4 << 20, "{layout:?}");
    assert!(layout.reason.as_deref().is_some_and(|r| r.contains("shards")), "{layout:?}");
}

/// As an ordinary user, in a process of its own: a file that he may read is
/// placed without configuration, and one that he may not has a reason.
fn unreadable(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(dir.join("secret"), "s").unwrap();
    std::fs::set_permissions(dir.join("secret"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let status = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "as_an_ordinary_user", "--nocapture"])
        .env("HOMING_TEST_USER", dir)
        .status()
        .unwrap();
    assert!(status.success(), "as an ordinary user: {status}");
}

#[test]
fn as_an_ordinary_user() {
    let Some(dir) = std::env::var_os("HOMING_TEST_USER").map(PathBuf::from) else { return };
    let locator = Locator::new().unwrap();
    assert_whole(&locator.locate(&dir.join("f")));
    let secret = locator.locate(&dir.join("secret"));
    assert!(
        secret.extents.is_empty() && secret.reason.as_deref().is_some_and(|r| r.contains("permission")),
        "{secret:?}"
    );
}

fn brick_down(locator: &Locator, base: &Path, dir: &Path) {
    std::fs::write(dir.join("f"), "on the only brick").unwrap();
    assert_whole(&locator.locate(&dir.join("f")));
    let pid = std::fs::read_to_string(base.join("alone.pid")).unwrap();
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    // The client learns it with the broken connection, some moments later.
    let gone = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        locator.locate(&dir.join("f")).reason.is_some()
    });
    let layout = locator.locate(&dir.join("f"));
    assert!(gone && layout.extents.is_empty(), "{layout:?}");
}
