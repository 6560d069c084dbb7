//! Compares an image with the records of its making. The manifest is compared with the summary and the journal, the
//! tree with the manifest. It does not read the bytes of files.

use crate::attributes;
use crate::image::Image;
use crate::manifest::{self, ImageEntry, ManifestKind};
use crate::tree::FirstNames;
use crate::walk;
use homing_model::RawText;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::cmp::Ordering;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::path::Path;

/// The most flaws that are kept; all are counted.
const KEPT: usize = 100;

/// A difference between an image and its manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flaw {
    /// Its path below the source.
    pub path: RawText,
    /// The difference in plain words.
    pub what: String,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// Entries of the manifest.
    pub entries: u64,
    /// All differences.
    pub count: u64,
    /// The first differences.
    pub first: Vec<Flaw>,
    /// Whether hard links and attributes were compared, too: images of older versions have no record of them.
    pub attributes: bool,
}

impl Compared {
    fn add(&mut self, path: &RawText, what: &str) {
        self.count += 1;
        if self.first.len() < KEPT {
            self.first.push(Flaw { path: path.clone(), what: what.into() });
        }
    }
}

/// Returns why a manifest is not the one that was written with the image; `None`: it is. `noted`: its hash in the
/// vault's journal.
///
/// # Errors
/// The error of reading it.
pub fn of_manifest(path: &Path, image: &Image, noted: Option<&str>) -> io::Result<Option<String>> {
    let mut from = BufReader::with_capacity(1 << 16, File::open(path)?);
    let (mut hash, mut lines, mut line) = (Sha256::new(), 0_u64, Vec::new());
    while from.read_until(b'\n', &mut line)? > 0 {
        lines += 1;
        hash.update(&line);
        if serde_json::from_slice::<ImageEntry>(&line).is_err() {
            return Ok(Some(format!("line {lines} is damaged")));
        }
        line.clear();
    }
    let found = walk::hex(hash.finalize());
    let both = [("the summary", image.manifest.as_deref()), ("the journal", noted)];
    let other = both.iter().find(|(_, wanted)| wanted.is_some_and(|wanted| wanted != found));
    Ok(match (image.files, other) {
        (Some(files), _) if files != lines => {
            Some(format!("it has {lines} entries, but the image was made with {files}"))
        }
        (_, Some((of, _))) => Some(format!("its hash differs from the hash in {of}")),
        _ => None,
    })
}

/// Compares a tree with its manifest: names, kinds, owners, modes, times, sizes and targets of links. If `attributes`
/// is set, they were recorded: then it compares attributes and which names are of one file, too.
///
/// # Errors
/// The error of reading.
pub fn of_tree(tree: &Path, manifest: &Path, attributes: bool) -> io::Result<Compared> {
    let root = walk::folder(tree)?;
    let mut noted = manifest::read(BufReader::new(File::open(manifest)?)).peekable();
    let mut compared = Compared { attributes, ..Compared::default() };
    let mut links = FirstNames::default();
    walk::walk(&root, &mut |found, folder, name| {
        let wanted = loop {
            match noted
                .next_if(|next| next.as_ref().map_or(true, |next| manifest::order(&next.path, &found.path).is_le()))
            {
                None => break None,
                Some(next) => {
                    let next = next?;
                    compared.entries += 1;
                    if manifest::order(&next.path, &found.path) == Ordering::Equal {
                        break Some(next);
                    }
                    compared.add(&next.path, "is missing");
                }
            }
        };
        let Some(wanted) = wanted else {
            compared.add(&found.path, "is not in the manifest");
            return Ok(());
        };
        let line = compared.entries - 1;
        for what in differences(&wanted, &found, folder, name)? {
            compared.add(&found.path, what);
        }
        if attributes {
            if links.of(&found, line, folder, name)? != wanted.first_name {
                compared.add(&found.path, "is a hard link to another file than in the manifest");
            }
            if attributes::hash(folder, name)? != wanted.xattrs {
                compared.add(&found.path, "has other attributes or ACLs");
            }
        }
        Ok(())
    })?;
    for next in noted {
        let next = next?;
        compared.entries += 1;
        compared.add(&next.path, "is missing");
    }
    Ok(compared)
}

fn differences(
    wanted: &ImageEntry,
    found: &ImageEntry,
    folder: &OwnedFd,
    name: &[u8],
) -> io::Result<Vec<&'static str>> {
    if wanted.kind != found.kind {
        return Ok(vec!["is of another kind"]);
    }
    let target = wanted.kind == ManifestKind::Link && walk::hash(ManifestKind::Link, folder, name)? != wanted.sha256;
    let all = [
        (target, "has another target"),
        (wanted.size != found.size, "has another size"),
        (wanted.mtime_ns != found.mtime_ns, "has another time"),
        (wanted.mode != found.mode, "has another mode"),
        ((wanted.uid, wanted.gid) != (found.uid, found.gid), "has another owner"),
    ];
    Ok(all.into_iter().filter(|(differs, _)| *differs).map(|(_, what)| what).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{private, write_manifest};
    use rustix::fs::XattrFlags;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::{Duration, SystemTime};

    /// Makes a tree with its manifest, damages the tree, and returns the flaws.
    fn flaws(damage: &dyn Fn(&Path)) -> Vec<(String, String)> {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir_all(tree.join("d/e")).unwrap();
        for name in ["a", "d/b", "d/c", "z"] {
            fs::write(tree.join(name), name).unwrap();
        }
        fs::hard_link(tree.join("a"), tree.join("d/a too")).unwrap();
        symlink("/etc/passwd", tree.join("d/link")).unwrap();
        let kept = rustix::fs::setxattr(tree.join("z"), "user.note", b"kept", XattrFlags::empty());
        let manifest = dir.path().join("manifest");
        write_manifest(&tree, None, &manifest).unwrap();
        assert_eq!(of_tree(&tree, &manifest, true).unwrap().first, []);
        let times: Vec<_> = ["", "d"].map(|name| fs::metadata(tree.join(name)).unwrap().modified().unwrap()).into();
        damage(&tree);
        for (name, time) in ["", "d"].iter().zip(times) {
            fs::File::open(tree.join(name)).unwrap().set_modified(time).unwrap();
        }
        let found = of_tree(&tree, &manifest, true).unwrap();
        assert_eq!(found.count, found.first.len() as u64);
        let found = found.first.into_iter().map(|flaw| (flaw.path.display(), flaw.what)).collect::<Vec<_>>();
        if kept.is_err() {
            crate::skipped::skipped("this file system keeps no extended attributes");
        }
        found
    }

    #[test]
    fn each_kind_of_damage_to_a_tree_is_named() {
        let one = |path: &str, what: &str| vec![(path.to_string(), what.to_string())];
        let time = |path: &Path| {
            fs::File::open(path).unwrap().set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(9)).unwrap()
        };
        let other_target = |tree: &Path| {
            let link = tree.join("d/link");
            let was = rustix::fs::lstat(&link).unwrap();
            fs::remove_file(&link).unwrap();
            symlink("/etc/shadow", &link).unwrap();
            let at = rustix::fs::Timespec { tv_sec: was.st_mtime, tv_nsec: was.st_mtime_nsec as _ };
            let times = rustix::fs::Timestamps { last_access: at, last_modification: at };
            rustix::fs::utimensat(rustix::fs::CWD, &link, &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).unwrap();
        };
        let own_file = |tree: &Path| {
            let time = fs::metadata(tree.join("a")).unwrap().modified().unwrap();
            fs::remove_file(tree.join("d/a too")).unwrap();
            fs::write(tree.join("d/a too"), "a").unwrap();
            fs::File::open(tree.join("d/a too")).unwrap().set_modified(time).unwrap();
        };
        let mode = |tree: &Path| fs::set_permissions(tree.join("d/e"), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(flaws(&|_| {}), []);
        assert_eq!(flaws(&|tree| fs::write(tree.join("d/more"), "").unwrap()), one("d/more", "is not in the manifest"));
        assert_eq!(flaws(&|tree| fs::remove_file(tree.join("d/c")).unwrap()), one("d/c", "is missing"));
        assert_eq!(flaws(&|tree| fs::remove_file(tree.join("z")).unwrap()), one("z", "is missing"));
        assert_eq!(flaws(&other_target), one("d/link", "has another target"));
        assert_eq!(flaws(&own_file), one("d/a too", "is a hard link to another file than in the manifest"));
        assert_eq!(flaws(&|tree| time(&tree.join("d/b"))), one("d/b", "has another time"));
        assert_eq!(flaws(&mode), one("d/e", "has another mode"));
        let attribute = |tree: &Path| {
            let _ = rustix::fs::setxattr(tree.join("z"), "user.note", b"other", XattrFlags::empty());
        };
        let found = flaws(&attribute);
        assert!(found.is_empty() || found == one("z", "has other attributes or ACLs"), "{found:?}");
    }

    #[test]
    fn a_manifest_that_lacks_lines_or_has_other_bytes_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let (tree, path) = (dir.path().join("tree"), dir.path().join("manifest"));
        fs::create_dir(&tree).unwrap();
        (0..9).for_each(|n| fs::write(tree.join(n.to_string()), "x").unwrap());
        let tally = write_manifest(&tree, None, &path).unwrap();
        let noted =
            Image { name: "i".into(), files: Some(10), manifest: Some(tally.manifest.clone()), ..Image::default() };
        let of = |image: &Image, noted: Option<&str>| of_manifest(&path, image, noted).unwrap();
        assert_eq!(of(&noted, None), None);
        let whole = fs::read(&path).unwrap();
        let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        let write = |bytes: &[u8]| private(&path).unwrap().write_all(bytes).unwrap();
        let old = Image { manifest: None, ..noted.clone() };
        // An older version has noted the count alone: a missing line, a cut, and an empty file are found.
        for bytes in [
            [&lines[..3], &lines[4..]].concat().concat(),
            lines[..4].concat(),
            whole[..whole.len() - 9].to_vec(),
            Vec::new(),
        ] {
            write(&bytes);
            assert!(of(&noted, None).is_some() && of(&old, None).is_some(), "{} bytes", bytes.len());
        }
        // Any single bit, also one that leaves a line readable.
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            write(&bytes);
            assert!(of(&noted, None).is_some(), "byte {at}");
        }
        // If the summary was changed to match, the journal contradicts.
        let text = String::from_utf8(whole.clone()).unwrap().replacen("\"mode\":420", "\"mode\":511", 1);
        write(text.as_bytes());
        let fitting = Image { manifest: Some(walk::hex(Sha256::digest(text.as_bytes()))), ..noted };
        assert_eq!(of(&fitting, None), None);
        assert!(of(&fitting, Some(&tally.manifest)).unwrap().contains("the journal"));
    }
}
