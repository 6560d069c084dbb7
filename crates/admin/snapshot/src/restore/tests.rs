#[path = "../../../../../tests/script.rs"]
mod script;

use super::*;
use crate::place::itemized;
use crate::skipped::skipped;
use script::script;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;

#[test]
fn rsyncs_words_are_seen_from_the_image() {
    for (line, what, name) in [
        (">f+++++++++ a b", Some(ChangeKind::Gone), "a b"),
        ("cd+++++++++ d/", Some(ChangeKind::Gone), "d"),
        (">f.st...... a", Some(ChangeKind::Changed), "a"),
        (".f...p..... a", Some(ChangeKind::Touched), "a"),
        (".d..t...... d/", None, "d"),
        (".d..tp..... d/", Some(ChangeKind::Touched), "d"),
        ("*deleting   x/y", Some(ChangeKind::New), "x/y"),
        ("cLc.t...... l", Some(ChangeKind::Changed), "l"),
    ] {
        let (code, path) = itemized(line.as_bytes()).unwrap();
        assert_eq!((difference(&code), path.display().as_str()), (what, name), "{line}");
    }
    assert_eq!(itemized(b"sending incremental file list"), None);
}

/// Kinds of entries; a link to a folder and a non-empty folder are kinds of their own at the destination.
const KINDS: [&str; 9] =
    ["file", "other", "link", "link-to-folder", "empty-folder", "folder", "pipe", "socket", "device"];

/// Makes an entry of a kind; `false`: this user cannot.
pub(super) fn make(kind: &str, path: &Path) -> bool {
    let run = |words: &[&str]| Command::new(words[0]).args(&words[1..]).arg(path).status().unwrap().success();
    match kind {
        "file" => fs::write(path, "in the image\n").unwrap(),
        "other" => fs::write(path, "precious\n").unwrap(),
        "link" => symlink("/nowhere", path).unwrap(),
        "link-to-folder" => symlink("/tmp", path).unwrap(),
        "empty-folder" => fs::create_dir(path).unwrap(),
        "folder" => {
            fs::create_dir(path).unwrap();
            fs::write(path.join("inside"), "inside\n").unwrap();
        }
        "pipe" => return run(&["mkfifo"]),
        "socket" => drop(UnixListener::bind(path).unwrap()),
        _ => return Command::new("mknod").arg(path).args(["c", "1", "3"]).output().unwrap().status.success(),
    }
    true
}

/// Returns all entries of a folder, by lstat: inode, kind, size and bytes or target.
pub(super) fn state(folder: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let meta = fs::symlink_metadata(entry.path()).unwrap();
        let bytes = meta.is_file().then(|| fs::read_to_string(entry.path()).unwrap());
        let target = fs::read_link(entry.path()).ok();
        let name = entry.file_name().into_string().unwrap();
        all.insert(name.clone(), format!("{} {:o} {bytes:?} {target:?}", meta.ino(), meta.mode()));
        if meta.is_dir() {
            all.extend(state(&entry.path()).into_iter().map(|(below, what)| (format!("{name}/{below}"), what)));
        }
    }
    all
}

/// Returns the kind of an entry in an image, without its special forms.
fn plain(kind: &str) -> &str {
    match kind {
        "other" => "file",
        "link-to-folder" => "link",
        "empty-folder" => "folder",
        kind => kind,
    }
}

/// Whether an entry of this kind is the same as the other one, if both were made at different times.
pub(super) fn is_same(wanted: &str, there: &str) -> bool {
    match plain(wanted) {
        "file" => false,
        "link" => wanted == there,
        kind => kind == plain(there),
    }
}

/// A folder with images and destinations in which each pair of kinds has a name, `IMAGE.THERE`.
pub(super) struct Pairs {
    pub(super) dir: tempfile::TempDir,
    pub(super) pairs: Vec<(&'static str, &'static str)>,
}

impl Pairs {
    pub(super) fn new() -> Pairs {
        // A socket's path is short.
        let dir = tempfile::Builder::new().prefix("p").tempdir_in("/tmp").unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let able = |kind: &&&'static str| {
            let probe = dir.path().join("probe");
            let able = make(kind, &probe);
            let _ = fs::remove_dir_all(&probe).or_else(|_| fs::remove_file(&probe));
            able || {
                skipped(&format!("{kind}s need root"));
                false
            }
        };
        let kinds: Vec<&'static str> = KINDS.iter().filter(able).copied().collect();
        let pairs = kinds.iter().flat_map(|wanted| kinds.iter().map(|there| (*wanted, *there))).collect();
        let pairs = Pairs { dir, pairs };
        for (wanted, there) in &pairs.pairs {
            make(wanted, &tree.join(format!("{wanted}.{there}")));
        }
        for name in ["0-first", "zz-last"] {
            fs::write(tree.join(name), "restored\n").unwrap();
        }
        pairs
    }

    /// Makes a destination that has an entry under each name.
    pub(super) fn destination(&self, name: &str) -> PathBuf {
        let into = self.dir.path().join(name);
        fs::create_dir(&into).unwrap();
        for (wanted, there) in &self.pairs {
            make(there, &into.join(format!("{wanted}.{there}")));
        }
        into
    }
}

pub(super) fn restored(place: &ImagePart, into: &Path, far: Option<&Path>, trial: bool) -> Restored {
    let at = HostFolder { host: far.map(|_| "elsewhere".into()), path: into.into() };
    let ssh = far.map(|ssh| ssh.display().to_string());
    let write = Destination { into: &at, overwrite: false, trial, ssh: ssh.as_deref() };
    // The host of the destination does it in this way.
    let reins = Reins::default();
    let mut far = LocalRecipient::open(into, far.is_some() && !trial, true, &reins).unwrap();
    write_back(place, "image".into(), &write, &mut far, &reins).unwrap()
}

/// Makes an ssh that rsync takes for one to another host.
pub(super) fn far_shell(ssh: &Path) {
    script(ssh, "while [ \"$1\" != elsewhere ]; do shift; done; shift; exec sh -c \"$*\"");
}

/// Whether restores cannot be tested here; prints that they are skipped.
pub(super) fn no_rsync() -> bool {
    let missing = Command::new("rsync").arg("--version").output().is_err();
    if missing {
        skipped("restores need rsync");
    }
    missing
}

#[test]
fn of_all_pairs_of_kinds_none_is_replaced_each_is_named_and_the_rest_is_restored() {
    if no_rsync() {
        return;
    }
    let pairs = Pairs::new();
    let tree = pairs.dir.path().join("tree");
    let ssh = pairs.dir.path().join("ssh");
    far_shell(&ssh);
    let whole = ImagePart::below(&tree, &"".into(), "image").unwrap();
    for (name, far) in [("here", None), ("far", Some(ssh.as_path()))] {
        let into = pairs.destination(name);
        let before = state(&into);
        let trial = restored(&whole, &into, far, true);
        assert_eq!(state(&into), before, "{name}: a trial writes nothing");
        let done = restored(&whole, &into, far, false);
        assert_eq!((trial.written, trial.left), (done.written, done.left), "{name}");
        assert_eq!(done.failed, Vec::<String>::new(), "{name}");
        let after = state(&into);
        before.iter().for_each(|(path, what)| assert_eq!(after.get(path), Some(what), "{name}: {path}"));
        // A folder of the image is completed if the destination has that folder.
        for (wanted, there) in &pairs.pairs {
            let inside = after.contains_key(&format!("{wanted}.{there}/inside"));
            assert_eq!(
                inside,
                *there == "folder" || *wanted == "folder" && *there == "empty-folder",
                "{wanted} {there}"
            );
        }
        assert!(after.contains_key("0-first") && after.contains_key("zz-last"), "{name}");
        let left = pairs.pairs.iter().filter(|(wanted, there)| !is_same(wanted, there)).count() as u64;
        // In two folders with the same file, made at different times, that file is left.
        let files = pairs.pairs.iter().filter(|pair| **pair == ("folder", "folder")).count() as u64;
        assert_eq!(done.left, left + files, "{name}: {:?}", done.obstacles);
        assert!(done.obstacles.len() == TOLD && done.beneath > 0, "{name}");
    }
}

#[test]
fn a_part_that_has_something_else_in_its_place_is_named_and_left() {
    if no_rsync() {
        return;
    }
    let pairs = Pairs::new();
    let into = pairs.destination("into");
    let before = state(&into);
    for (wanted, there) in &pairs.pairs {
        let part = format!("{wanted}.{there}");
        let place = ImagePart::below(&pairs.dir.path().join("tree"), &part.as_str().into(), "image").unwrap();
        let done = restored(&place, &into, None, false);
        let what = (there != &"folder" || wanted != &"folder").then(|| u64::from(!is_same(wanted, there)));
        assert_eq!(done.left, what.unwrap_or(1), "{part}: {done:?}");
        assert_eq!(done.written, u64::from(*wanted == "folder" && *there == "empty-folder"), "{part}: {done:?}");
    }
    let after = state(&into);
    before.iter().for_each(|(path, what)| assert_eq!(after.get(path), Some(what), "{path}"));
}

#[test]
fn what_takes_a_name_after_it_was_examined_is_left_too() {
    if no_rsync() {
        return;
    }
    let pairs = Pairs::new();
    let into = pairs.destination("into");
    let before = state(&into);
    let place = ImagePart::below(&pairs.dir.path().join("tree"), &"".into(), "image").unwrap();
    let at = HostFolder { host: None, path: into.as_path().into() };
    // As if the destination had been empty a moment ago: the whole list is passed to rsync.
    let mut list = tempfile::NamedTempFile::new().unwrap();
    for (wanted, there) in &pairs.pairs {
        list.write_all(format!("./{wanted}.{there}\0").as_bytes()).unwrap();
    }
    let words = rsync::restore_words(RestoreList::Here(list.path()), &place.name, &at, SSH, false);
    place.run(words, &at, &Reins::default(), &mut |_, _| Ok(())).unwrap();
    assert_eq!(state(&into), before);
}
