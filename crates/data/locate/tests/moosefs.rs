//! The contract suite and special cases on a real MooseFS. Master, chunkservers and mounts run in namespaces of their
//! own, which end with this test.

mod common;
#[path = "../../../../tests/until.rs"]
mod until;

use homing_locate::{Locator, contract};
use homing_model::FileLayout;
use homing_mounts::{FileSystemKind, network, read};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use until::until;

const CHUNK: u64 = 64 << 20;

fn host(n: usize) -> String {
    format!("10.98.0.{n}")
}

#[test]
fn real_volume() {
    let programs = ["mfsmaster", "mfschunkserver", "mfsmount", "mfscli", "mfsfileinfo"];
    common::with_daemons("real_volume", "moosefs.sh", &programs, inside);
}

fn inside(base: &Path) {
    let at = |path: &str| base.join("mnt").join(path);
    let locator = Locator::new().unwrap();
    let allowed: BTreeSet<String> = (1..=4).map(host).collect();
    let dir = at("contract");
    let found = locator.volume_of(&dir).unwrap();
    assert_eq!((found.kind, found.name.as_str()), (FileSystemKind::Moose, "moosefs:10.98.0.9:9421"));
    assert_eq!(locator.volume_of(&base.join("sub")).unwrap().name, "moosefs:10.98.0.9:9421/folder");
    contract::check(&locator, &dir, &allowed);
    assert!(network(read().unwrap()).iter().filter(|m| m.source.0.starts_with(b"mfs#")).count() >= 3);
    placed_where_it_is(&locator, base);
    chunks_and_holes(&locator, base);
    other_mounts(&locator, base);
    many_at_once(&locator, &at("goal1"));
    common::as_nobody(&at("contract"));
    disk_marked_for_removal(&locator, base);
    chunkserver_down(&locator, base);
}

/// Returns the true place: chunkservers with a chunk that begins with these bytes.
fn holding(base: &Path, mark: &[u8]) -> BTreeSet<String> {
    let holds = |n: &usize| {
        let folders = std::fs::read_dir(base.join(format!("cs{n}/disk"))).unwrap().flatten();
        let mut chunks = folders.filter_map(|f| std::fs::read_dir(f.path()).ok()).flatten().flatten();
        chunks.any(|chunk| {
            // The data follows a header of 5 or 8 KiB.
            let bytes = std::fs::read(chunk.path()).unwrap_or_default();
            bytes.iter().take(10_000).count() > 0
                && bytes[..bytes.len().min(10_000)].windows(mark.len()).any(|w| w == mark)
        })
    };
    (1..=4).filter(holds).map(host).collect()
}

fn hosts(layout: &FileLayout) -> BTreeSet<String> {
    layout.extents.iter().flat_map(|e| &e.replicas).map(|r| r.host.clone()).collect()
}

/// Writes a file that begins with its own path.
fn write(path: &Path) -> Vec<u8> {
    let mark = path.to_string_lossy().into_owned().into_bytes();
    std::fs::write(path, [&mark[..], &[b'x'; 5000]].concat()).unwrap();
    mark
}

fn placed_where_it_is(locator: &Locator, base: &Path) {
    for (dir, copies) in [("goal1", 1), ("goal2", 2), ("goal3", 3), ("both", 2), ("onlyb", 1)] {
        for name in ["f", "g", "a\tb:\n\tchunk 0: 1", "-h"] {
            let path = base.join("mnt").join(dir).join(name);
            let mark = write(&path);
            let layout = locator.locate(&path);
            assert_eq!(layout.reason, None, "{layout:?}");
            assert_eq!(hosts(&layout), holding(base, &mark), "{layout:?}");
            assert_eq!(hosts(&layout).len(), copies, "{layout:?}");
            let in_b = hosts(&layout).iter().filter(|h| [host(3), host(4)].contains(h)).count();
            assert!(dir.starts_with("goal") || in_b == 1, "the storage class says which chunkservers: {layout:?}");
        }
    }
}

fn chunks_and_holes(locator: &Locator, base: &Path) {
    use std::os::unix::fs::FileExt;
    let path = base.join("mnt/goal1/long");
    let file = std::fs::File::create(&path).unwrap();
    file.write_all_at(b"first chunk", 0).unwrap();
    file.write_all_at(b"third chunk", 2 * CHUNK).unwrap();
    drop(file);
    let layout = locator.locate(&path);
    let offsets: Vec<(u64, u64)> = layout.extents.iter().map(|e| (e.offset, e.length)).collect();
    assert_eq!(offsets, [(0, CHUNK), (2 * CHUNK, 11)], "{layout:?}");
    assert!(layout.reason.as_deref().is_some_and(|r| r.contains("hole")), "{layout:?}");
    for (extent, mark) in layout.extents.iter().zip([b"first chunk", b"third chunk"]) {
        let told: BTreeSet<String> = extent.replicas.iter().map(|r| r.host.clone()).collect();
        assert_eq!(told, holding(base, mark));
    }
}

/// A mount of a folder, a bind mount, and a mount whose port is closed, so that `mfsfileinfo` is used.
fn other_mounts(locator: &Locator, base: &Path) {
    let mark = write(&base.join("sub/f"));
    for seen in ["sub/f", "mnt/folder/f", "shut/folder/f", "closed/folder/f"] {
        let layout = locator.locate(&base.join(seen));
        assert_eq!((layout.reason.as_deref(), hosts(&layout)), (None, holding(base, &mark)), "{seen}");
    }
}

fn many_at_once(locator: &Locator, dir: &Path) {
    let dir = dir.join("many");
    std::fs::create_dir(&dir).unwrap();
    for n in 0..1500 {
        // Every tenth file is empty and needs no query.
        std::fs::write(dir.join(format!("{n:04}")), if n % 10 == 0 { "" } else { "x" }).unwrap();
    }
    let tree = locator.locate_tree(&dir, 10_000);
    assert_eq!(tree.files.len(), 1500);
    for layout in &tree.files {
        let alone = locator.locate(layout.path.as_path());
        assert_eq!(&alone, layout, "in its place among the others");
    }
}

#[test]
fn as_an_ordinary_user() {
    let Some(dir) = common::about() else { return };
    let layout = Locator::new().unwrap().locate(&dir.join("plain"));
    assert!(layout.reason.is_none() && hosts(&layout).len() == 2, "{layout:?}");
}

/// A chunkserver whose disk is being emptied is named only if it holds the only copy.
fn disk_marked_for_removal(locator: &Locator, base: &Path) {
    let (sole, shared) = (base.join("mnt/onlyb/sole"), base.join("mnt/both/shared"));
    write(&sole);
    write(&shared);
    let on_b =
        |path: &Path| hosts(&locator.locate(path)).into_iter().rfind(|h| [host(3), host(4)].contains(h)).unwrap();
    for n in [3, 4] {
        std::fs::write(
            base.join(format!("cs{n}/hdd.cfg")),
            format!("*{}\n", base.join(format!("cs{n}/disk")).display()),
        )
        .unwrap();
        assert!(command("mfschunkserver", base, n, "reload"));
    }
    let held_by = on_b(&sole);
    until("the master marks the copies", || hosts(&locator.locate(&shared)).len() == 1);
    assert!([host(1), host(2)].contains(hosts(&locator.locate(&shared)).first().unwrap()));
    assert_eq!(hosts(&locator.locate(&sole)), BTreeSet::from([held_by]));
}

fn command(program: &str, base: &Path, n: usize, verb: &str) -> bool {
    let config = base.join(format!("cs{n}/cs.cfg"));
    Command::new(program).arg("-c").arg(config).arg(verb).output().unwrap().status.success()
}

fn chunkserver_down(locator: &Locator, base: &Path) {
    let (sole, shared) = (base.join("mnt/goal1/f"), base.join("mnt/goal3/f"));
    let gone = hosts(&locator.locate(&sole)).pop_first().unwrap();
    let n = (1..=4).find(|n| host(*n) == gone).unwrap();
    assert!(command("mfschunkserver", base, n, "kill"));
    until("the master notices", || locator.locate(&sole).reason.is_some());
    let layout = locator.locate(&sole);
    assert!(layout.extents.is_empty() && layout.reason.as_deref().unwrap().contains("no chunkserver"), "{layout:?}");
    let layout = locator.locate(&shared);
    assert!(layout.reason.is_none() && !hosts(&layout).contains(&gone) && !hosts(&layout).is_empty(), "{layout:?}");
}
