use super::*;
use crate::destination::{Presence, RestoreEntry};
use crate::place::ImagePart;
use crate::restore::tests::{Pairs, far_shell, is_same, make, no_rsync, restored, state};
use crate::restore::{Destination, LocalRecipient, Recipient, fetch, write_back};
use crate::rsync::HostFolder;
use crate::skipped::skipped;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// The limit for a restore that hangs.
const HANGS: Duration = Duration::from_secs(300);

fn folder(dir: &tempfile::TempDir, name: &str) -> PathBuf {
    let folder = dir.path().join(name);
    fs::create_dir(&folder).unwrap();
    folder
}

/// Returns the names that a restore has left behind.
fn leftovers(into: &Path) -> Vec<String> {
    state(into).into_keys().filter(|path| path.contains(HEAD)).collect()
}

/// Plants pipes and removes them, again and again. Returns the names whose pipe was replaced.
fn plant(into: &Path, names: &[String], ends: &AtomicBool) -> Vec<String> {
    let mut replaced = Vec::new();
    while fs::read_dir(into).unwrap().next().is_none() {}
    while !ends.load(Ordering::Relaxed) {
        for name in names {
            let path = into.join(name);
            if rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::RUSR, 0).is_err() {
                continue;
            }
            let own = fs::symlink_metadata(&path).unwrap().ino();
            std::thread::yield_now();
            match fs::symlink_metadata(&path) {
                Ok(meta) if meta.ino() == own => fs::remove_file(&path).unwrap(),
                _ => replaced.push(name.clone()),
            }
        }
    }
    replaced
}

#[test]
fn pipes_that_come_and_go_on_the_names_stop_nothing_and_none_is_replaced() {
    if no_rsync() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let ssh = dir.path().join("ssh");
    far_shell(&ssh);
    pipes_come_and_go(None);
    pipes_come_and_go(Some(&ssh));
}

fn pipes_come_and_go(far: Option<&Path>) {
    let dir = tempfile::tempdir().unwrap();
    let (tree, into) = (folder(&dir, "tree"), folder(&dir, "into"));
    let names: Vec<String> = (0..400).map(|number| format!("f{number}")).collect();
    names.iter().for_each(|name| fs::write(tree.join(name), name).unwrap());
    let odd: Vec<String> = names.iter().step_by(2).cloned().collect();
    let ends = AtomicBool::new(false);
    let (sender, receiver) = mpsc::channel();
    let (done, replaced) = std::thread::scope(|scope| {
        let planter = scope.spawn(|| plant(&into, &odd, &ends));
        scope.spawn(|| {
            let place = ImagePart::below(&tree, &"".into(), "image").unwrap();
            sender.send(restored(&place, &into, far, false)).unwrap();
        });
        let done = receiver.recv_timeout(HANGS);
        ends.store(true, Ordering::Relaxed);
        if done.is_err() {
            eprintln!("the restore does not end");
            std::process::abort();
        }
        (done.unwrap(), planter.join().unwrap())
    });
    assert_eq!(replaced, Vec::<String>::new());
    let back = |name: &&String| fs::read_to_string(into.join(name)).is_ok_and(|text| text == **name);
    let came = names.iter().filter(back).count() as u64;
    assert!(names.iter().skip(1).step_by(2).all(|name| back(&name)), "{done:?}");
    assert_eq!((done.written, done.left, done.failed.len()), (came, 400 - came, 0), "{done:?}");
    assert_eq!(leftovers(&into), Vec::<String>::new());
}

#[test]
fn what_takes_a_name_while_files_come_is_left_and_named_as_if_it_had_been_there() {
    if no_rsync() {
        return;
    }
    let pairs = Pairs::new();
    let expected = restored(
        &ImagePart::below(&pairs.dir.path().join("tree"), &"".into(), "image").unwrap(),
        &pairs.destination("before"),
        None,
        false,
    );
    for is_there in [true, false] {
        let into = pairs.dir.path().join(format!("into-{is_there}"));
        if is_there {
            fs::create_dir(&into).unwrap();
            // A killed restore has left it.
            fs::create_dir(into.join(".homing-restore-0")).unwrap();
        }
        let place = ImagePart::below(&pairs.dir.path().join("tree"), &"".into(), "image").unwrap();
        let (at, reins) = (HostFolder { host: None, path: into.as_path().into() }, Reins::default());
        let mut done = Restored::default();
        let mut stagings = Stagings::new(&into, &Examiner::open(&into).unwrap(), &reins).unwrap();
        let mut each = |entry: RestoreEntry| {
            if !is_there || !entry.path.0.is_empty() {
                stagings.add(&entry.path).unwrap();
            }
            Ok(())
        };
        place.entries(&mut each, &mut Vec::new()).unwrap();
        let write = Destination { into: &at, overwrite: false, trial: false, ssh: None };
        for folder in stagings.ready("self").unwrap().folders {
            fetch(&place, &write, &folder, &stagings.tops.leading, &reins, &mut done).unwrap();
        }
        if !is_there {
            fs::create_dir(&into).unwrap();
        }
        for (wanted, there) in &pairs.pairs {
            make(there, &into.join(format!("{wanted}.{there}")));
        }
        let before = state(&into);
        stagings.place(&mut done).unwrap();
        drop(stagings);
        let mut after = state(&into);
        before.iter().filter(|(path, _)| !path.contains(HEAD)).for_each(|(path, what)| {
            assert_eq!(after.remove(path).as_ref(), Some(what), "{path}");
        });
        after.retain(|path, _| !path.contains(HEAD));
        let same = pairs.pairs.iter().filter(|(wanted, there)| is_same(wanted, there)).count();
        assert!(same > 0);
        assert_eq!(done.failed, Vec::<String>::new());
        assert_eq!(
            (done.left, done.beneath, done.written, &done.obstacles),
            (expected.left, expected.beneath, expected.written, &expected.obstacles),
            "{is_there}"
        );
        assert_eq!(done.written, after.len() as u64, "{after:?}");
        assert_eq!(leftovers(&into).len(), usize::from(is_there));
    }
}

#[test]
fn a_destination_that_is_not_there_is_made_as_the_image_has_it_and_counted() {
    if no_rsync() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let tree = folder(&dir, "tree");
    fs::create_dir(tree.join("d")).unwrap();
    fs::write(tree.join("d/x"), "x").unwrap();
    fs::set_permissions(&tree, Permissions::from_mode(0o711)).unwrap();
    for (below, entries, mode) in [("", 3, Some(0o711)), ("d", 2, None)] {
        let into = dir.path().join(format!("not/there{below}"));
        let place = ImagePart::below(&tree, &below.into(), "image").unwrap();
        let trial = restored(&place, &into, None, true);
        assert!(!into.exists());
        let done = restored(&place, &into, None, false);
        assert_eq!((trial.written, done.written), (entries, entries), "{below}");
        assert_eq!(fs::read_to_string(into.join("d/x")).unwrap(), "x");
        let meta = fs::metadata(&into).unwrap();
        assert!(mode.is_none_or(|mode| meta.mode() & 0o7777 == mode), "{:o}", meta.mode());
        assert_eq!(leftovers(into.parent().unwrap()), Vec::<String>::new());
    }
}

/// A destination whose private folders rsync cannot reach: it logs in as another user.
struct OtherLogin(LocalRecipient);

impl Recipient for OtherLogin {
    fn examine(&mut self, entries: Vec<RestoreEntry>) -> Result<Vec<Presence>, String> {
        self.0.examine(entries)
    }

    fn stage(&mut self) -> Result<Staging, String> {
        let mut staging = self.0.stage()?;
        staging.folders.iter_mut().for_each(|folder| folder.list = "/dev/null/none".into());
        Ok(staging)
    }

    fn place(&mut self, _: Restored) -> Result<Restored, String> {
        panic!("nothing was written there")
    }
}

#[test]
fn where_rsync_has_another_login_on_the_other_host_it_writes_to_the_destination_itself() {
    if no_rsync() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (tree, into, ssh) = (folder(&dir, "tree"), folder(&dir, "into"), dir.path().join("ssh"));
    far_shell(&ssh);
    fs::write(tree.join("x"), "x").unwrap();
    let (reins, at) = (Reins::default(), HostFolder { host: Some("elsewhere".into()), path: into.as_path().into() });
    let ssh = ssh.display().to_string();
    let write = Destination { into: &at, overwrite: false, trial: false, ssh: Some(&ssh) };
    let mut far = OtherLogin(LocalRecipient::open(&into, true, true, &reins).unwrap());
    let place = ImagePart::below(&tree, &"".into(), "image").unwrap();
    let done = write_back(&place, "image".into(), &write, &mut far, &reins).unwrap();
    assert_eq!((done.written, done.failed.len()), (1, 0), "{done:?}");
    assert_eq!(fs::read_to_string(into.join("x")).unwrap(), "x");
    drop(far);
    assert_eq!(leftovers(&into), Vec::<String>::new());
}

/// A file system below a destination, unmounted when dropped.
struct TestMount(PathBuf);

impl TestMount {
    fn new(at: &Path) -> Option<TestMount> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| TestMount(at.into()))
    }
}

impl Drop for TestMount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn what_is_missing_on_other_mounts_below_the_destination_comes_back_with_its_hard_links() {
    if no_rsync() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (tree, into) = (folder(&dir, "tree"), folder(&dir, "into"));
    for name in ["a", "m", "m/p", "m/q", "m/q/new"] {
        fs::create_dir(tree.join(name)).unwrap();
    }
    for (first, second) in [("top", "a/top"), ("m/p/x", "m/q/x"), ("m/q/new/y", "m/y")] {
        fs::write(tree.join(first), first).unwrap();
        fs::hard_link(tree.join(first), tree.join(second)).unwrap();
    }
    fs::set_permissions(tree.join("m/q/new"), Permissions::from_mode(0o2751)).unwrap();
    fs::create_dir_all(into.join("m")).unwrap();
    let Some(_mount) = TestMount::new(&into.join("m")) else { return skipped("a mount needs root") };
    ["a", "m/p", "m/q"].into_iter().for_each(|name| fs::create_dir(into.join(name)).unwrap());
    let place = ImagePart::below(&tree, &"".into(), "image").unwrap();
    let trial = restored(&place, &into, None, true);
    let done = restored(&place, &into, None, false);
    assert_eq!((done.written, done.left, done.failed.len()), (7, 0, 0), "{done:?}");
    assert_eq!(trial.written, done.written);
    for (first, second) in [("top", "a/top"), ("m/p/x", "m/q/x"), ("m/q/new/y", "m/y")] {
        let [first, second] = [first, second].map(|name| fs::metadata(into.join(name)).unwrap());
        assert_eq!((first.ino(), first.nlink()), (second.ino(), 2));
    }
    let [was, is] = [&tree, &into].map(|root| fs::metadata(root.join("m/q/new")).unwrap());
    assert_eq!((was.mode(), was.mtime_nsec()), (is.mode(), is.mtime_nsec()));
    assert_eq!(leftovers(&into), Vec::<String>::new());
}

/// Runs in a thread of an ordinary user.
fn as_user(work: impl FnOnce() + Send) {
    const USER: u32 = 61_187;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if rustix::process::geteuid().is_root() {
                let (user, group) = (rustix::process::Uid::from_raw(USER), rustix::process::Gid::from_raw(USER));
                rustix::thread::set_thread_groups(&[]).unwrap();
                rustix::thread::set_thread_res_gid(group, group, group).unwrap();
                rustix::thread::set_thread_res_uid(user, user, user).unwrap();
            }
            work();
        });
        thread.join().unwrap();
    });
}

#[test]
fn a_user_gets_folders_back_that_their_owner_may_not_write_and_what_may_not_be_written_is_named() {
    if no_rsync() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let (tree, into) = (folder(&dir, "tree"), folder(&dir, "into"));
    for name in ["open", "closed"] {
        fs::create_dir(tree.join(name)).unwrap();
        fs::create_dir(tree.join(name).join("fixed")).unwrap();
        fs::write(tree.join(name).join("fixed/x"), "x").unwrap();
        symlink("x", tree.join(name).join("fixed/link")).unwrap();
        fs::set_permissions(tree.join(name).join("fixed"), Permissions::from_mode(0o555)).unwrap();
        let there = into.join(name);
        fs::create_dir(&there).unwrap();
        fs::set_permissions(&there, Permissions::from_mode(if name == "open" { 0o777 } else { 0o555 })).unwrap();
    }
    // The destination itself cannot be written: the private folder must be in the folder with missing entries.
    fs::set_permissions(&into, Permissions::from_mode(0o555)).unwrap();
    if rustix::process::geteuid().is_root() {
        chown(&into, Some(0), Some(0)).unwrap();
    }
    as_user(|| {
        let place = ImagePart::below(&tree, &"".into(), "image").unwrap();
        let done = restored(&place, &into, None, false);
        assert_eq!((done.written, done.left, done.failed.len()), (3, 0, 1), "{done:?}");
        assert!(done.failed[0].contains("closed") && done.failed[0].contains("Permission denied"), "{done:?}");
    });
    let fixed = into.join("open/fixed");
    assert_eq!(fs::metadata(&fixed).unwrap().mode() & 0o7777, 0o555);
    assert_eq!(fs::read_to_string(fixed.join("x")).unwrap(), "x");
    assert_eq!(leftovers(&into), Vec::<String>::new());
    // A user who is not root must be able to remove the folders of this test.
    for name in ["tree/open/fixed", "tree/closed/fixed", "into/open/fixed", "into/closed", "into"] {
        let _ = fs::set_permissions(dir.path().join(name), Permissions::from_mode(0o755));
    }
}
