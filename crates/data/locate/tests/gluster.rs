//! The contract suite and special cases on a real GlusterFS. A glusterd, its bricks and mounts run in namespaces of
//! their own, which end with this test.

mod common;

use homing_locate::{Locator, contract};
use homing_model::FileLayout;
use homing_mounts::{FileSystemKind, network, read};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the host of brick `n` in the volumes' definitions; the brick servers all have another name for themselves.
fn host(n: usize) -> String {
    format!("g{n}.cluster")
}

#[test]
fn real_volumes() {
    common::with_daemons("real_volumes", "gluster.sh", &["glusterd", "glusterfs", "gluster"], inside);
}

fn inside(base: &Path) {
    let at = |volume: &str| base.join("mnt").join(volume);
    let locator = Locator::new().unwrap();
    let allowed: BTreeSet<String> = (1..=6).map(host).collect();
    for volume in ["rep", "arb", "dis", "di2", "sh", "shrep", "shdis"] {
        let dir = at(volume).join("contract");
        std::fs::create_dir(&dir).unwrap();
        let found = locator.volume_of(&dir).unwrap();
        assert_eq!((found.kind, found.name), (FileSystemKind::Gluster, format!("gluster:{}:/{volume}", host(1))));
        contract::check(&locator, &dir, &allowed);
    }
    assert_eq!(network(read().unwrap()).iter().filter(|m| m.fstype == "fuse.glusterfs").count(), 10);
    for volume in ["rep", "arb", "alone"] {
        placed_where_it_is(&locator, base, volume);
    }
    placed_where_it_is(&locator, base, "di2");
    dispersed(&locator, &at("dis"), &at("di2"));
    for volume in ["sh", "shrep", "shdis"] {
        sharded(&locator, base, volume);
    }
    shards_moved(&locator, base);
    odd_names(&locator, base);
    linked_and_bound(&locator, base);
    renamed(&locator, base);
    // A mount of a folder, used through a symbolic link.
    std::os::unix::fs::symlink(at("sub"), base.join("link")).unwrap();
    std::fs::write(base.join("link/f"), "hello").unwrap();
    assert_placed(&locator.locate(&base.join("link/f")), &holding(base, "rep", Path::new("folder/f")));
    layers(&locator, base);
    image(&locator, base);
    snap(&locator, base);
    branches(&locator, base);
    unreadable(&at("rep"));
    brick_down(&locator, base, &at("alone"));
    one_of_several_down(base, "shrep", "big");
    one_of_several_down(base, "di2", "f");
    one_of_several_down(base, "arb", "f");
}

/// Returns the true place: hosts of the bricks on which the file's bytes are.
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

fn mount(words: &[&str], at: &Path) {
    std::fs::create_dir_all(at).unwrap();
    let status = Command::new("mount").args(words).arg(at).status().unwrap();
    assert!(status.success(), "mount {words:?}: {status}");
}

/// An overlay shows its lower layer's files, which a volume holds, and files of its upper one, on this host's disk.
fn layers(locator: &Locator, base: &Path) {
    let at = |name: &str| base.join("overlay").join(name);
    for name in ["up", "work", "low:er", "moved"] {
        std::fs::create_dir_all(at(name)).unwrap();
    }
    std::fs::write(base.join("mnt/rep/folder/layered"), "content").unwrap();
    std::fs::write(at("low:er").join("own"), "content").unwrap();
    let (volume, here) = (base.join("mnt/rep/folder").display().to_string(), at("").display().to_string());
    let folders = format!("lowerdir={volume}:{here}low\\:er,upperdir={here}up,workdir={here}work");
    mount(&["-t", "overlay", "overlay", "-o", &folders], &at("shown"));
    std::fs::write(at("shown/new"), "content").unwrap();
    let truth = holding(base, "rep", Path::new("folder/layered"));
    let layout = locator.locate(&at("shown/layered"));
    assert_placed(&layout, &truth);
    assert_eq!(
        (layout.path, layout.volume),
        (at("shown/layered").as_path().into(), format!("gluster:{}:/rep", host(1)))
    );
    let own = BTreeSet::from([rustix::system::uname().nodename().to_string_lossy().into_owned()]);
    for name in ["new", "own"] {
        assert_placed(&locator.locate(&at("shown").join(name)), &own);
    }
    // Through a bind mount of one of its folders, and after a change has copied the file up.
    std::fs::create_dir(at("shown/sub")).unwrap();
    std::fs::write(at("shown/sub/f"), "content").unwrap();
    mount(&["--bind", &at("shown/sub").display().to_string()], &at("bound"));
    assert_placed(&locator.locate(&at("bound/f")), &own);
    std::fs::write(at("shown/layered"), "changed").unwrap();
    assert_placed(&locator.locate(&at("shown/layered")), &own);
    // In a container the layers' paths do not exist, or lead to other files.
    std::fs::rename(at("low:er"), at("moved/there")).unwrap();
    std::fs::create_dir(at("low:er")).unwrap();
    std::fs::write(at("low:er").join("own"), "another").unwrap();
    let layout = locator.locate(&at("shown/own"));
    assert!(layout.extents.is_empty() && layout.reason.as_ref().is_some_and(|r| r.contains("layers")), "{layout:?}");
}

/// A file system on an image: the bytes are where the image is.
fn image(locator: &Locator, base: &Path) {
    let (small, large) = (base.join("mnt/rep/disk.img"), base.join("mnt/sh/disk.img"));
    for (file, size, at) in [(&small, 2 << 20, base.join("small")), (&large, 136 << 20, base.join("large"))] {
        // Written out, so that its shards are on more than one host. With 5 shards one test in 16 had all on one
        // host, with 17 it is one in 65,536.
        std::fs::write(file, vec![7; size]).unwrap();
        assert!(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(file).status().unwrap().success());
        mount(&["-o", "loop", &file.display().to_string()], &at);
        std::fs::write(at.join("f"), "content").unwrap();
    }
    assert_placed(&locator.locate(&base.join("small/f")), &holding(base, "rep", Path::new("disk.img")));
    let layout = locator.locate(&base.join("large/f"));
    assert!(
        layout.reason.as_ref().is_some_and(|r| r.contains("at an unknown offset") && r.contains("mnt/sh/disk.img")),
        "{layout:?}"
    );
    for at in ["small", "large"] {
        assert!(Command::new("umount").arg(base.join(at)).status().unwrap().success());
    }
}

/// A snap, or an image of Apptainer's, is a squashfs on such a device: its bytes are where the image is.
fn snap(locator: &Locator, base: &Path) {
    let kernels = std::fs::read_to_string("/proc/filesystems").unwrap();
    if !common::installed("mksquashfs") || !kernels.contains("squashfs") {
        return common::skipped("snaps need mksquashfs, and a kernel that mounts what it makes");
    }
    let (image, at, content) = (base.join("mnt/rep/a.snap"), base.join("snap"), base.join("content"));
    std::fs::create_dir(&content).unwrap();
    std::fs::write(content.join("f"), "content").unwrap();
    let made = Command::new("mksquashfs").args([&content, &image]).args(["-quiet", "-no-progress"]).status();
    assert!(made.unwrap().success());
    mount(&["-t", "squashfs", "-o", "loop,ro", &image.display().to_string()], &at);
    assert_placed(&locator.locate(&at.join("f")), &holding(base, "rep", Path::new("a.snap")));
    assert!(Command::new("umount").arg(&at).status().unwrap().success());
}

/// A mergerfs reports the branch of each file.
fn branches(locator: &Locator, base: &Path) {
    if !common::installed("mergerfs") {
        return common::skipped("branches need mergerfs");
    }
    let (volume, own) = (base.join("mnt/rep/folder"), base.join("branch"));
    std::fs::create_dir(&own).unwrap();
    std::fs::write(volume.join("far"), "content").unwrap();
    std::fs::write(own.join("near"), "content").unwrap();
    std::fs::create_dir(base.join("merged")).unwrap();
    let branches = format!("{}:{}", volume.display(), own.display());
    assert!(Command::new("mergerfs").arg(branches).arg(base.join("merged")).status().unwrap().success());
    let here = BTreeSet::from([rustix::system::uname().nodename().to_string_lossy().into_owned()]);
    assert_placed(&locator.locate(&base.join("merged/far")), &holding(base, "rep", Path::new("folder/far")));
    assert_placed(&locator.locate(&base.join("merged/near")), &here);
    assert!(Command::new("umount").arg(base.join("merged")).status().unwrap().success());
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
    // The mount may report another name of a hard link. Then only one copy is certain.
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
    let layout = locator.locate(&two.join("f"));
    assert!(layout.extents[0].replicas.len() == 3 && layout.extents[0].replicas[0].share == 0.5, "{layout:?}");
}

/// Compares the hosts of each 4 MiB block of a file with the bricks' own folders.
fn assert_blocks(locator: &Locator, base: &Path, volume: &str, name: &str) {
    let file = base.join("mnt").join(volume).join(name);
    let layout = locator.locate(&file);
    assert_eq!(layout.reason, None, "{layout:?}");
    let mut text = [0; 64];
    let length = rustix::fs::getxattr(&file, c"glusterfs.gfid.string", &mut text[..]).unwrap();
    let id = std::str::from_utf8(&text[..length]).unwrap().trim_end_matches('\0');
    for block in 0..layout.size.div_ceil(4 << 20) {
        let below = match block {
            0 => PathBuf::from(name),
            n => PathBuf::from(format!(".shard/{id}.{n}")),
        };
        let at = |e: &&homing_model::Extent| (e.offset..e.offset + e.length).contains(&(block * (4 << 20)));
        let extent = layout.extents.iter().find(at);
        let told: BTreeSet<String> = extent.iter().flat_map(|e| &e.replicas).map(|r| r.host.clone()).collect();
        assert_eq!(told, holding(base, volume, &below), "block {block} of {name} on {volume}: {layout:?}");
    }
}

fn sharded(locator: &Locator, base: &Path, volume: &str) {
    let dir = base.join("mnt").join(volume);
    std::fs::write(dir.join("small"), vec![7; 4 << 20]).unwrap();
    assert_blocks(locator, base, volume, "small");
    std::fs::write(dir.join("big"), vec![7; (70 << 20) + 5]).unwrap();
    let layout = locator.locate(&dir.join("big"));
    assert_eq!(layout.extents.iter().map(|e| e.length).sum::<u64>(), (70 << 20) + 5, "{layout:?}");
    // Block by block, because the hashes of the shards' names select the bricks.
    assert_blocks(locator, base, volume, "big");
    // Blocks 1 and 2 are a hole, and lie nowhere.
    use std::os::unix::fs::FileExt;
    let sparse = std::fs::File::create(dir.join("sparse")).unwrap();
    sparse.write_all_at(&[7; 4096], 0).unwrap();
    sparse.write_all_at(&[7; 4096], 13 << 20).unwrap();
    drop(sparse);
    assert_blocks(locator, base, volume, "sparse");
    assert!(
        locator
            .locate(&dir.join("sparse"))
            .extents
            .iter()
            .all(|e| e.offset + e.length <= 4 << 20 || e.offset >= 12 << 20)
    );
}

/// Runs a command of glusterd, which rejects one while another is in progress.
fn gluster(words: &str) -> String {
    let mut last = None;
    for _ in 0..120 {
        let args = words.split_ascii_whitespace();
        let done = Command::new("gluster").args(["--mode=script", "--log-file=/dev/null"]).args(args).output().unwrap();
        if done.status.success() {
            return String::from_utf8_lossy(&done.stdout).into_owned();
        }
        last = Some(done);
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    panic!("gluster {words}: {last:?}");
}

/// The hash selects one brick, a rebalance another: the shard is at its real place. Each file keeps the shard size
/// with which it was created.
fn shards_moved(before: &Locator, base: &Path) {
    gluster("volume set sh features.shard-block-size 8MB");
    gluster(&format!("volume add-brick sh g3.cluster:{}/bricks/3/sh force", base.display()));
    gluster("volume rebalance sh start force");
    let ended = (0..600).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        gluster("volume rebalance sh status").contains("completed")
    });
    assert!(ended, "rebalancing has not ended");
    let fresh = Locator::new().unwrap();
    // A locator that read the volume's definition before the brick was added reads it again.
    for (locator, name) in [&fresh, before].into_iter().flat_map(|l| ["big", "sparse", "small"].map(|name| (l, name))) {
        assert_blocks(locator, base, "sh", name);
    }
    // Some of so many files are on the new brick.
    for n in 0..40 {
        let name = format!("grown {n}");
        let file = base.join("mnt/sh").join(&name);
        std::fs::write(&file, vec![7; 5000]).unwrap();
        assert_placed(&before.locate(&file), &holding(base, "sh", Path::new(&name)));
    }
}

fn linked_and_bound(locator: &Locator, base: &Path) {
    let dir = base.join("mnt/rep");
    let truth = |name: &str| holding(base, "rep", Path::new(name));
    std::fs::write(dir.join("one name"), "linked").unwrap();
    std::fs::hard_link(dir.join("one name"), dir.join("other name")).unwrap();
    std::os::unix::fs::symlink("other name", dir.join("by symlink")).unwrap();
    for name in ["one name", "other name", "by symlink"] {
        assert_placed(&locator.locate(&dir.join(name)), &truth("one name"));
    }
    std::os::unix::fs::symlink("nothing", dir.join("dangling")).unwrap();
    let dangling = locator.locate(&dir.join("dangling"));
    assert!(dangling.extents.is_empty() && dangling.reason.is_some(), "{dangling:?}");
    // A folder of the volume, bound to another place.
    std::fs::write(dir.join("folder/bound file"), "hello").unwrap();
    assert_placed(&locator.locate(&base.join("bound/bound file")), &truth("folder/bound file"));
}

/// A file that is being renamed has its true place, or a reason. Afterwards, DHT's pointers are no copies: the file
/// stays at its place.
fn renamed(locator: &Locator, base: &Path) {
    for volume in ["di2", "sh"] {
        let dir = base.join("mnt").join(volume);
        let name = |n: usize| dir.join(format!("renamed {n}"));
        std::fs::write(name(0), vec![7; 50_000]).unwrap();
        let truth = holding(base, volume, Path::new("renamed 0"));
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..60).for_each(|n| std::fs::rename(name(n), name(n + 1)).unwrap());
                done.store(true, std::sync::atomic::Ordering::Relaxed);
            });
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                for layout in (0..60).map(|n| locator.locate(&name(n))) {
                    if layout.reason.is_none() {
                        assert_placed(&layout, &truth);
                    }
                }
            }
        });
        assert_placed(&locator.locate(&name(60)), &truth);
    }
}

/// Runs as an ordinary user, in a process of its own. A readable file is placed without configuration, and an
/// unreadable one has a reason.
fn unreadable(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(dir.join("secret"), "s").unwrap();
    std::fs::set_permissions(dir.join("secret"), std::fs::Permissions::from_mode(0o600)).unwrap();
    common::as_nobody(dir);
}

#[test]
fn as_an_ordinary_user() {
    let Some(dir) = common::about() else { return };
    let locator = Locator::new().unwrap();
    let layout = locator.locate(&dir.join("f"));
    assert!(layout.reason.is_none() && layout.extents[0].replicas.len() == 2, "{layout:?}");
    for volume in ["shrep/big", "di2/f"] {
        let layout = locator.locate(&dir.with_file_name(volume));
        assert!(layout.reason.is_none() && !layout.extents.is_empty(), "{layout:?}");
    }
    let secret = locator.locate(&dir.join("secret"));
    assert!(
        secret.extents.is_empty() && secret.reason.as_deref().is_some_and(|r| r.contains("permission")),
        "{secret:?}"
    );
}

/// On a volume of one brick, `f` exists, then its brick is killed.
fn brick_down(locator: &Locator, base: &Path, dir: &Path) {
    let pid = std::fs::read_to_string(base.join("alone.pid")).unwrap();
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    // The client notices the broken connection some moments later.
    let gone = (0..1200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        locator.locate(&dir.join("f")).reason.is_some()
    });
    let layout = locator.locate(&dir.join("f"));
    assert!(gone && layout.extents.is_empty(), "{layout:?}");
}

/// Kills a brick that holds a part of a file. The places on other bricks stay true, and the killed brick is not
/// named.
fn one_of_several_down(base: &Path, volume: &str, name: &str) {
    let before = Locator::new().unwrap().locate(&base.join("mnt").join(volume).join(name));
    let gone = before.bytes_per_host().into_keys().next().unwrap();
    let n = (1..=6).find(|n| host(*n) == gone).unwrap();
    let brick = format!("{}/bricks/{n}/{volume}", base.display());
    let text = gluster(&format!("volume status {volume} --xml"));
    let pid = text.split("<node>").find(|n| n.contains(&format!("<path>{brick}</path>"))).unwrap();
    let pid: i32 = pid.split("<pid>").nth(1).unwrap().split('<').next().unwrap().parse().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL).unwrap();
    let mut layout = before.clone();
    let learnt = (0..1200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        layout = Locator::new().unwrap().locate(&base.join("mnt").join(volume).join(name));
        !layout.bytes_per_host().contains_key(&gone)
    });
    assert!(learnt, "{before:?} {layout:?}");
    assert_eq!(layout.reason, None, "{layout:?}");
    let total = |layout: &FileLayout| layout.extents.iter().map(|e| e.length).sum::<u64>();
    assert_eq!(total(&layout), total(&before), "{layout:?}");
}
