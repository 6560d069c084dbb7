//! Checks on real files the rules that every file system must keep. A new file system needs ten lines: make a
//! directory on it, name the hosts that may appear, call [`check`].

use crate::Locator;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Names that may confuse parsers.
const NAMES: [&[u8]; 6] =
    [b"plain", b"a b>c<d(e):f)", b"new\nline", b"quo'te\"s", b"\xff\xfe", b"x> <POSIX(b):evil:> "];

/// Runs the suite in `dir`, which must be empty; `allowed` are the hosts of the volume.
///
/// # Panics
/// If a rule is broken; the message names it.
pub fn check(locator: &Locator, dir: &Path, allowed: &BTreeSet<String>) {
    for name in NAMES {
        let path = dir.join(OsStr::from_bytes(name));
        fs::write(&path, vec![b'x'; 10_000]).expect("the suite writes its files");
        let layout = locator.locate(&path);
        assert_eq!(layout.size, 10_000, "{layout:?}");
        assert!(!layout.extents.is_empty() || layout.reason.is_some(), "placed, or a reason: {layout:?}");
        let mut end = 0;
        for extent in &layout.extents {
            assert!(extent.offset >= end && extent.length > 0, "in order, without overlap: {layout:?}");
            end = extent.offset + extent.length;
            assert!(!extent.replicas.is_empty(), "an extent has a place: {layout:?}");
            for replica in &extent.replicas {
                assert!(allowed.contains(&replica.host), "{} is no host of this volume: {layout:?}", replica.host);
                assert!(replica.share > 0.0 && replica.share <= 1.0, "{layout:?}");
            }
        }
        assert!(
            end <= layout.size && (end == layout.size || layout.reason.is_some()),
            "no byte is left out: {layout:?}"
        );
    }
    let empty = dir.join("empty");
    fs::write(&empty, b"").expect("the suite writes its files");
    let layout = locator.locate(&empty);
    assert!(layout.extents.is_empty() && layout.reason.is_none(), "an empty file lies nowhere: {layout:?}");
    assert!(locator.locate(&dir.join("missing")).reason.is_some(), "a missing file has a reason");
    let tree = locator.locate_tree(dir, 3);
    assert!(tree.truncated && tree.files.len() == 3, "a walk ends at its bound");
    assert_eq!(locator.locate_tree(dir, 100).files.len(), NAMES.len() + 1);
    many(locator, dir);
}

/// Checks enough files for several threads: each file's layout, in the order of the walk.
fn many(locator: &Locator, dir: &Path) {
    let below = dir.join("many");
    fs::create_dir(&below).expect("the suite writes its files");
    let names: Vec<_> = (100..200).map(|n| below.join(n.to_string())).collect();
    for (n, name) in names.iter().enumerate() {
        fs::write(name, vec![7; n]).expect("the suite writes its files");
    }
    let tree = locator.locate_tree(&below, 90);
    assert!(tree.truncated && tree.files.len() == 90, "a walk ends at its bound");
    for ((n, name), layout) in names.iter().enumerate().zip(&tree.files) {
        assert!(layout.path == name.as_path().into() && layout.size == n as u64, "{name:?}: {layout:?}");
        assert_eq!(layout.extents.is_empty() && layout.reason.is_none(), n == 0, "{layout:?}");
    }
}
