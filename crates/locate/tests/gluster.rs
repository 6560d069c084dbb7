//! The contract suite and the odd cases on a real GlusterFS: a glusterd, its
//! bricks and mounts in namespaces of their own, which end with this test.

use homing_locate::{Kind, Locator, contract, network_mounts};
use homing_model::FileLayout;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set in the process that runs inside the namespaces: its folder.
const INSIDE: &str = "HOMING_TEST_GLUSTER";

/// Host of brick `n` in the volumes' definitions; the brick servers all call themselves otherwise.
fn host(n: usize) -> String {
    format!("g{n}.cluster")
}

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
    let allowed: BTreeSet<String> = (1..=6).map(host).collect();
    for volume in ["rep", "arb", "dis", "di2", "sh"] {
        let dir = at(volume).join("contract");
        std::fs::create_dir(&dir).unwrap();
        let found = locator.volume_of(&dir).unwrap();
        assert_eq!((found.kind, found.name), (Kind::Gluster, format!("gluster:{}:/{volume}", host(1))));
        contract::check(&locator, &dir, &allowed);
    }
    assert_eq!(network_mounts().unwrap().iter().filter(|m| m.fstype == "fuse.glusterfs").count(), 7);
    for volume in ["rep", "arb", "alone"] {
        placed_where_it_is(&locator, base, volume);
    }
    dispersed(&locator, &at("dis"), &at("di2"));
    sharded(&locator, &at("sh"));
    odd_names(&locator, base);
    // A mount of a folder, seen through a symbolic link.
    std::os::unix::fs::symlink(at("sub"), base.join("link")).unwrap();
    std::fs::write(base.join("link/f"), "hello").unwrap();
    assert_placed(&locator.locate(&base.join("link/f")), &holding(base, "rep", Path::new("folder/f")));
    unreadable(&at("rep"));
    brick_down(&locator, base, &at("alone"));
}

/// The truth: hosts of the bricks on which the file's bytes are.
fn holding(base: &Path, volume: &str, below: &Path) -> BTreeSet<String> {
    let file = |n: usize| base.join(format!("bricks/{n}/{volume}")).join(below);
    let size = |n: usize| std::fs::metadata(file(n)).map_or(0, |meta| meta.len());
    (1..=6).filter(|n| size(*n) > 0).map(host).collect()
}

fn assert_placed(layout: &FileLayout, truth: &BTreeSet<String>) {
    assert_eq!(layout.reason, None, "{layout:?}");
    assert!(!truth.is_empty() && layout.extents.len() == 1, "{layout:?}");
    let told: BTreeSet<String> = layout.extents[0].replicas.iter().map(|r| r.host.clone()).collect();
    assert_eq!(&told, truth, "{layout:?}");
}

fn placed_where_it_is(locator: &Locator, base: &Path, volume: &str) {
    for name in ["f", "g", "h", "i", "a b>c<d(e):f)", "two\nlines"] {
        let file = base.join("mnt").join(volume).join(name);
        std::fs::write(&file, vec![7; 100_000]).unwrap();
        assert_placed(&locator.locate(&file), &holding(base, volume, Path::new(name)));
    }
}

fn odd_names(locator: &Locator, base: &Path) {
    let dir = base.join("mnt/rep");
    // The real path imitates the entry of another subvolume's brick, and of its own.
    for n in 1..=4 {
        let brick = format!("{}/bricks/{n}/rep", base.display());
        let below = format!("x> <POSIX({brick}):gxhost:{brick}/x");
        std::fs::create_dir_all(dir.join(&below).parent().unwrap()).unwrap();
        std::fs::write(dir.join(&below), "evil").unwrap();
        assert_placed(&locator.locate(&dir.join(&below)), &holding(base, "rep", Path::new(&below)));
    }
    // A hard link may be told by its other name: then one copy is certain.
    std::fs::write(dir.join("first"), "linked").unwrap();
    std::fs::hard_link(dir.join("first"), dir.join("second")).unwrap();
    let layout = locator.locate(&dir.join("second"));
    let truth = holding(base, "rep", Path::new("first"));
    assert!(layout.extents[0].replicas.iter().all(|r| truth.contains(&r.host)), "{layout:?}");
}

fn dispersed(locator: &Locator, one: &Path, two: &Path) {
    std::fs::write(one.join("f"), vec![7; 100_000]).unwrap();
    let layout = locator.locate(&one.join("f"));
    assert_placed(&layout, &(1..=3).map(host).collect());
    assert!(layout.extents[0].replicas.iter().all(|r| r.share == 0.5), "{layout:?}");
    std::fs::write(two.join("f"), vec![7; 100_000]).unwrap();
    let layout = locator.locate(&two.join("f"));
    assert!(layout.extents.is_empty() && layout.reason.is_some(), "{layout:?}");
}

fn sharded(locator: &Locator, dir: &Path) {
    std::fs::write(dir.join("small"), vec![7; 4 << 20]).unwrap();
    assert_eq!(locator.locate(&dir.join("small")).reason, None);
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
    let layout = locator.locate(&dir.join("f"));
    assert!(layout.reason.is_none() && layout.extents[0].replicas.len() == 2, "{layout:?}");
    let secret = locator.locate(&dir.join("secret"));
    assert!(
        secret.extents.is_empty() && secret.reason.as_deref().is_some_and(|r| r.contains("permission")),
        "{secret:?}"
    );
}

/// On a volume of one brick: `f` is there, then its brick is not.
fn brick_down(locator: &Locator, base: &Path, dir: &Path) {
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
