//! Images of a folder on this machine. They are made, interrupted, listed, restored and tried.

use crate::skipped::skipped;
use crate::until::until;
use serde_json::Value;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const EXE: &str = env!("CARGO_BIN_EXE_homing");

/// A source, a bank and a place for wrappers of rsync.
struct World {
    dir: tempfile::TempDir,
}

impl World {
    /// Makes a world. Without rsync, prints a note and returns `None`.
    fn new() -> Option<World> {
        if Command::new("rsync").arg("--version").output().is_err() {
            skipped("images need rsync");
            return None;
        }
        let world = World { dir: tempfile::tempdir().unwrap() };
        ["src/d", "bank", "bin"].iter().for_each(|name| fs::create_dir_all(world.at(name)).unwrap());
        Some(world)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(EXE);
        let path = format!("{}:{}", self.at("bin").display(), std::env::var("PATH").unwrap());
        command.arg("snapshot").args(words).env("PATH", path).current_dir(self.dir.path()).env("TZ", "UTC");
        command.env_remove("HOMING_CLUSTER").env("HOME", self.dir.path()).env("XDG_STATE_HOME", self.at("state"));
        command.args(["--to", &format!("localhost:{}", self.at("bank").display())]);
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Runs a command that must end with 0, and returns its standard output.
    fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", text(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn source(&self) -> String {
        self.at("src").display().to_string()
    }

    fn make(&self) -> Output {
        // The name of an image has seconds, so the next one waits for another second.
        let words = [&self.source(), "--json"].map(String::from);
        let output = self.run(&words.each_ref().map(String::as_str));
        std::thread::sleep(Duration::from_millis(1100));
        output
    }

    fn made(&self) -> Value {
        let output = self.make();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["made"].clone()
    }

    fn list(&self) -> Value {
        let vaults: Value = serde_json::from_str(&self.ok(&["list", "src", "--json"])).unwrap();
        vaults["vaults"][0]["holds"].clone()
    }

    /// Returns the report of a check of volumes with `cluster.toml`, which writes `metrics`, too.
    fn check(&self) -> Value {
        let words = ["check", "--only", "volumes", "--json", "--prometheus"];
        let mut command = Command::new(EXE);
        command.args(words).arg(self.at("metrics")).current_dir(self.dir.path());
        let output = command.env("HOMING_CLUSTER", self.at("cluster.toml")).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&output)))
    }

    /// Writes a `cluster.toml` with one section for the source.
    fn section(&self, more: &str) {
        let (source, bank) = (self.source(), self.at("bank"));
        let text = format!("[snapshot.src]\nsource = \"{source}\"\nbank = \"localhost:{}\"\n{more}", bank.display());
        fs::write(self.at("cluster.toml"), text).unwrap();
    }

    fn tree(&self, image: &Value) -> PathBuf {
        self.at("bank/src").join(image.as_str().unwrap()).join("tree")
    }

    /// Makes an rsync that runs this script before the real one, or instead of it.
    fn rsync(&self, script: &str) {
        let real =
            ["/usr/bin/rsync", "/usr/local/bin/rsync"].into_iter().find(|path| Path::new(path).exists()).unwrap();
        // homing reads the version of rsync before it copies.
        let version = "[ \"$1\" != --version ] || exec \"$real\" --version";
        crate::script::script(&self.at("bin/rsync"), &format!("real={real}\n{version}\n{script}"));
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Returns all changes that rsync would make to `b` to make it equal to `a`, folders' times aside.
fn differences(a: &Path, b: &Path) -> String {
    let slash = |path: &Path| format!("{}/", path.display());
    let words = ["-aHAXnci", "--numeric-ids", "--delete", "--omit-dir-times"];
    let output = Command::new("rsync").args(words).args([slash(a), slash(b)]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Makes names and kinds that are hard to copy.
fn fill(src: &Path) {
    fs::write(src.join("a"), "one\n").unwrap();
    fs::write(src.join("new\nline"), "two\n").unwrap();
    fs::write(src.join(std::ffi::OsStr::from_bytes(b"inv\xffalid")), "three\n").unwrap();
    fs::write(src.join("y".repeat(255)), "four\n").unwrap();
    fs::write(src.join("#hash"), "five\n").unwrap();
    fs::write(src.join("o\\#012"), "six\n").unwrap();
    fs::write(src.join("d/big"), vec![7; 300_000]).unwrap();
    fs::hard_link(src.join("a"), src.join("d/a too")).unwrap();
    symlink("/etc/passwd", src.join("d/link")).unwrap();
    fs::set_permissions(src.join("d/big"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::File::create(src.join("d/holes")).unwrap().set_len(10 << 20).unwrap();
    assert!(Command::new("mkfifo").arg(src.join("d/pipe")).status().unwrap().success());
}

#[test]
fn images_share_what_did_not_change_and_come_back_as_they_were() {
    let Some(world) = World::new() else { return };
    let src = world.at("src");
    fill(&src);
    let first = world.made();
    assert_eq!((first["reference"].is_null(), first["network"].is_null()), (true, true), "{first}");
    fs::write(src.join("d/big"), vec![8; 300_001]).unwrap();
    fs::remove_file(src.join("#hash")).unwrap();
    let second = world.made();
    assert_eq!((&second["read_files"], &second["read"]), (&1.into(), &300_001.into()), "{second}");
    let trees = [&first, &second].map(|made| world.tree(&made["image"]));
    assert_eq!(differences(&src, &trees[1]), "");
    let inode = |tree: &Path, name: &str| fs::symlink_metadata(tree.join(name)).unwrap().ino();
    assert_eq!(inode(&trees[0], "new\nline"), inode(&trees[1], "new\nline"));
    assert_ne!(inode(&trees[0], "d/big"), inode(&trees[1], "d/big"));
    assert_eq!(inode(&trees[1], "a"), inode(&trees[1], "d/a too"));
    assert!(fs::metadata(trees[1].join("d/holes")).unwrap().blocks() < 1000);

    // Existing files are not touched; missing files come back.
    let out = world.at("out").display().to_string();
    let image = first["image"].as_str().unwrap();
    world.ok(&["restore", "src", "--at", image, "--into", &out]);
    assert_eq!(differences(&trees[0], &world.at("out")), "");
    fs::write(world.at("out/a"), "mine\n").unwrap();
    fs::remove_file(world.at("out/#hash")).unwrap();
    fs::remove_dir_all(world.at("out/d")).unwrap();
    let again = world.run(&["restore", "src", "--at", image, "--into", &out]);
    assert_eq!(again.status.code(), Some(1), "{}", text(&again));
    assert!(text(&again).contains("\n  a\n"), "{}", text(&again));
    assert_eq!(fs::read_to_string(world.at("out/a")).unwrap(), "mine\n");
    assert_eq!(fs::read_to_string(world.at("out/#hash")).unwrap(), "five\n");
    world.ok(&["restore", "src", "--at", image, "--into", &out, "--overwrite", "--yes"]);
    assert_eq!(differences(&trees[0], &world.at("out")), "");

    let diff = world.run(&["diff", "src", "--at", image, "--with", second["image"].as_str().unwrap()]);
    assert_eq!((diff.status.code(), text(&diff).as_str()), (Some(1), "gone     #hash\nchanged  d/big\n"));
    assert_eq!(world.ok(&["cat", "src:new\nline", "--at", "now"]), "two\n");
    let verified = world.ok(&["verify", "src", "--files", "1000"]);
    assert!(verified.contains("all identical"), "{verified}");
    assert_eq!(world.list()["proved"]["image"], second["image"]);
}

/// Returns the folders that trials of restores leave in the vault.
fn trials(world: &World) -> Vec<String> {
    let entries = fs::read_dir(world.at("bank/src/dirvish")).unwrap().map(|entry| entry.unwrap().file_name());
    entries.filter_map(|name| name.into_string().ok()).filter(|name| name.starts_with("verify-")).collect()
}

#[test]
fn what_a_killed_trial_leaves_goes_with_the_next_use_of_the_vault() {
    let Some(world) = World::new() else { return };
    fill(&world.at("src"));
    let made = world.made();
    let mark = world.at("mark");
    world.rsync(&format!("\"$real\" \"$@\"; touch {}; exec sleep 600", mark.display()));
    let trial = || {
        let mut command = world.command(&["verify", "src", "--files", "1000"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("files were restored", || mark.exists());
        fs::remove_file(&mark).unwrap();
        child
    };
    let image = made["image"].as_str().unwrap().to_string();
    let uses: [&[&str]; 3] = [&["list", "src"], &["cat", "src:a", "--at", &image], &["expire", "src", "--yes"]];
    for words in uses {
        let mut child = trial();
        assert_eq!(trials(&world).len(), 1);
        world.ok(words);
        assert_eq!(trials(&world).len(), 1, "{words:?}: one that is under way stays");
        kill_far(child.id());
        child.wait().unwrap();
        assert_eq!(trials(&world).len(), 1);
        until("no process of it is left", || {
            world.ok(words);
            trials(&world).is_empty()
        });
    }
    fs::remove_file(world.at("bin/rsync")).unwrap();
    assert!(world.ok(&["verify", "src", "--files", "1000"]).contains("all identical"));
    assert_eq!(trials(&world), Vec::<String>::new());
}

#[test]
fn lists_of_who_may_and_attributes_come_back() {
    let Some(world) = World::new() else { return };
    let (src, out) = (world.at("src"), world.at("out"));
    fs::write(src.join("d/file"), "x").unwrap();
    let shell = |script: &str, at: &Path| {
        let output = Command::new("sh").args(["-ec", script]).current_dir(at).output().unwrap();
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    // The values that the kernel keeps after `setfacl -m u:12345:r,g:54321:rw d/file; setfacl -m d:u:12345:rwx d`.
    let (nobody, user, group) = ("ffffffff", "39300000", "31d40000");
    let of_file = format!(
        "0200000001000600{nobody}02000400{user}04000400{nobody}08000600{group}10000600{nobody}20000400{nobody}"
    );
    let of_new = format!("0200000001000700{nobody}02000700{user}04000500{nobody}10000700{nobody}20000500{nobody}");
    let set = format!(
        "setfattr -n system.posix_acl_access -v 0x{of_file} d/file; setfattr -n system.posix_acl_default -v 0x{of_new} d
         setfattr -n user.note -v 'as it was' d/file; setfattr -n user.note -v folder d"
    );
    if shell(&set, &src).is_none() {
        skipped("setfattr is missing, or the file system keeps neither");
        return;
    }
    let told = "getfattr -d -m - -e hex -R d; stat -c '%a %u %g %n' d d/file";
    let was = shell(told, &src).unwrap();
    assert!(
        was.contains(&format!("posix_acl_access=0x{of_file}")) && was.contains(&format!("default=0x{of_new}")),
        "{was}"
    );
    let first = world.made()["image"].as_str().unwrap().to_string();
    // Only the lists and attributes change. The next image must not share the file with the first one.
    shell(
        "setfattr -x system.posix_acl_access d/file; setfattr -x user.note d/file; setfattr -n user.note -v new d",
        &src,
    )
    .unwrap();
    let second = world.made()["image"].as_str().unwrap().to_string();
    let into = out.display().to_string();
    for (image, wanted) in [(&first, was.clone()), (&second, shell(told, &src).unwrap())] {
        world.ok(&["restore", "src", "--at", image, "--into", &into]);
        assert_eq!(shell(told, &out).unwrap(), wanted, "{image}");
        fs::remove_dir_all(&out).unwrap();
    }
    // The destination has the file with other attributes: the file is left, then replaced.
    world.ok(&["restore", "src", "--at", &second, "--into", &into]);
    world.ok(&["restore", "src", "--at", &first, "--into", &into, "--overwrite", "--yes"]);
    assert_eq!(shell(told, &out).unwrap(), was);
}

/// Returns the private folders of restores in a folder.
fn stagings(into: &Path) -> Vec<String> {
    let names = fs::read_dir(into).unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    names.filter(|name| name.starts_with(".homing-restore-")).collect()
}

#[test]
fn a_file_that_somebody_makes_while_a_restore_writes_one_of_that_name_stays() {
    let Some(world) = World::new() else { return };
    fill(&world.at("src"));
    world.made();
    let into = world.at("into");
    fs::create_dir_all(into.join("d")).unwrap();
    world.rsync(&format!(
        "\"$real\" --bwlimit=200 \"$@\" & rsync=$!
         until find {0} -name '.big.*' | grep -q .; do kill -0 $rsync || exit 99; done
         echo theirs >{0}/d/big; wait $rsync",
        into.display()
    ));
    let output = world.run(&["restore", "src", "--into", into.to_str().unwrap()]);
    assert!(fs::read(into.join("d/big")).unwrap() == b"theirs\n", "{}", text(&output));
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("not replaced") && text(&output).contains("d/big"), "{}", text(&output));
    assert_eq!(fs::read_to_string(into.join("a")).unwrap(), "one\n");
    assert_eq!(stagings(&into), Vec::<String>::new());
}

#[test]
fn a_restore_whose_caller_is_killed_removes_what_has_no_place_yet() {
    let Some(world) = World::new() else { return };
    fill(&world.at("src"));
    world.made();
    let (into, mark) = (world.at("into"), world.at("mark"));
    fs::create_dir(&into).unwrap();
    world.rsync(&format!("\"$real\" \"$@\"; touch {}; exec sleep 600", mark.display()));
    let mut command = world.command(&["restore", "src", "--into", into.to_str().unwrap()]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("files were restored", || mark.exists());
    assert_eq!(stagings(&into).len(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    until("the private folder is gone", || stagings(&into).is_empty());
    assert_eq!(fs::read_dir(&into).unwrap().count(), 0);
    // A folder that could not be removed does not stop the next restore.
    fs::create_dir(into.join(".homing-restore-0")).unwrap();
    fs::remove_file(world.at("bin/rsync")).unwrap();
    world.ok(&["restore", "src", "--into", into.to_str().unwrap()]);
    assert_eq!(stagings(&into), [".homing-restore-0"]);
    fs::remove_dir(into.join(".homing-restore-0")).unwrap();
    assert_eq!(differences(&world.at("src"), &into), "");
}

#[test]
fn what_came_back_otherwise_is_named() {
    let Some(world) = World::new() else { return };
    fill(&world.at("src"));
    let made = world.made();
    let file = world.tree(&made["image"]).join("d/big");
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, vec![9; 300_000]).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
    let verified = world.run(&["verify", "src", "--files", "1000"]);
    assert_eq!(verified.status.code(), Some(254), "{}", text(&verified));
    assert!(text(&verified).contains("differs after the restore: d/big"), "{}", text(&verified));
}

/// Kills this snapshot's processes that serve the bank, but not the coordinator.
fn kill_far(coordinator: u32) {
    let children = fs::read_to_string(format!("/proc/{coordinator}/task/{coordinator}/children")).unwrap_or_default();
    for child in children.split_whitespace() {
        let _ = Command::new("kill").args(["-9", child]).status();
    }
}

#[test]
fn whoever_is_killed_nothing_unfinished_looks_finished_and_the_next_one_goes_on() {
    let Some(world) = World::new() else { return };
    let src = world.at("src");
    fill(&src);
    for (moment, far) in [("before", false), ("before", true), ("after", false), ("after", true)] {
        let files = world.list_or_none().map_or(0, |list| list["images"].as_array().unwrap().len());
        fs::write(src.join("d/big"), format!("{moment} {far}").repeat(1000)).unwrap();
        let real = "\"$real\" \"$@\"";
        let mark = world.at("mark").display().to_string();
        let wait = format!("touch {mark}; exec sleep 600");
        world.rsync(&if moment == "before" { wait } else { format!("{real}; {wait}") });
        let mut child = world.command(&[&world.source()]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("rsync was begun", || world.at("mark").exists());
        // homing refuses a second image of the same vault while the first is at work.
        if moment == "before" && !far {
            let busy = world.run(&[&world.source()]);
            assert!(
                busy.status.code() == Some(254) && text(&busy).contains("another process makes a snapshot"),
                "{}",
                text(&busy)
            );
        }
        if far {
            kill_far(child.id())
        } else {
            child.kill().unwrap()
        }
        child.wait().unwrap();
        fs::remove_file(&mark).unwrap();
        fs::remove_file(world.at("bin/rsync")).unwrap();
        let list = world.list();
        assert_eq!(list["images"].as_array().unwrap().len(), files, "{moment} {far}: {list}");
        assert_eq!(list["unfinished"].as_array().unwrap().len(), 1, "{moment} {far}: {list}");
        let made = world.made();
        assert_eq!(made["resumed"], true, "{made}");
        assert_eq!(differences(&src, &world.tree(&made["image"])), "");
        assert!(world.list()["unfinished"].as_array().unwrap().is_empty());
    }
    assert!(world.ok(&["verify", "src", "--files", "1000"]).contains("all identical"));
}

impl World {
    fn list_or_none(&self) -> Option<Value> {
        self.at("bank/src").exists().then(|| self.list())
    }
}

#[test]
fn an_image_that_lacks_files_is_no_reference_and_not_the_one_that_stays() {
    let Some(world) = World::new() else { return };
    fill(&world.at("src"));
    let good = world.made()["image"].clone();
    world.rsync("\"$real\" \"$@\"; echo 'rsync: [sender] send_files failed to open \"/s/x\": Permission denied (13)' >&2; exit 23");
    let poor = world.make();
    assert_eq!(poor.status.code(), Some(1), "{}", text(&poor));
    let poor: Value = serde_json::from_slice(&poor.stdout).unwrap();
    assert!(poor["made"]["unreadable"][0].as_str().unwrap().contains("/s/x"), "{poor}");
    fs::remove_file(world.at("bin/rsync")).unwrap();
    assert_eq!(world.made()["reference"], good);
    assert!(world.list()["images"][1]["status"].as_str().unwrap().starts_with("error"));
}

#[test]
fn the_last_good_images_stay_and_removal_follows_no_link() {
    let Some(world) = World::new() else { return };
    fill(&world.at("src"));
    world.section("expire = \"+1 second\"\nwindow = \"1 hour\"\n");
    let first = world.made()["image"].clone();
    // A user of the bank's host plants a link in an image that is about to be removed.
    fs::create_dir(world.at("precious")).unwrap();
    fs::write(world.at("precious/file"), "x").unwrap();
    symlink(world.at("precious"), world.tree(&first).join("d/planted")).unwrap();
    let looked = world.run(&["cat", "src:d/planted/file", "--at", first.as_str().unwrap()]);
    assert!(!looked.status.success() && text(&looked).contains("homing follows no links"), "{}", text(&looked));
    // The last three good images stay.
    for _ in 0..2 {
        assert_eq!(world.made()["expired"], Value::from(Vec::<Value>::new()));
    }
    let second = world.made();
    assert_eq!(second["expired"], Value::from(vec![first.clone()]), "{second}");
    until("the removal ends", || !world.at("bank/src").join(format!("{}.expired", first.as_str().unwrap())).exists());
    assert!(world.at("precious/file").exists());
    let check = || world.check().to_string();
    let vault = &world.check()["vaults"][0];
    assert_eq!((&vault["last_good"], &vault["overdue"]), (&second["image"], &false.into()), "{vault}");
    assert_eq!(vault["space"]["taken_bytes"], second["bytes"], "the oldest that is left counts whole: {vault}");
    assert!(!check().contains("HC-VOL-04"), "{}", check());
    let said = fs::read_to_string(world.at("cluster.toml")).unwrap();
    fs::write(world.at("cluster.toml"), said.replace("1 hour", "1 second")).unwrap();
    assert!(check().contains("HC-VOL-04") && check().contains("homing snapshot src"), "{}", check());
    assert!(world.ok(&["expire", "src", "--yes"]).contains("nothing has expired"), "the last good ones have, too");
    assert!(world.tree(&second["image"]).exists());

    // The source was not mounted: its empty image would become the one that stays.
    fs::rename(world.at("src"), world.at("unmounted")).unwrap();
    fs::create_dir(world.at("src")).unwrap();
    let empty = world.make();
    assert!(empty.status.code() == Some(254) && text(&empty).contains("is it mounted?"), "{}", text(&empty));
    assert_eq!(world.list()["images"].as_array().unwrap().len(), 3);
    let partial =
        |entry: std::io::Result<fs::DirEntry>| entry.unwrap().path().extension().is_some_and(|e| e == "partial");
    assert!(!fs::read_dir(world.at("bank/src")).unwrap().any(partial), "nothing of it is kept");

    // homing refuses a vault that somebody else could have put there.
    fs::rename(world.at("bank/src"), world.at("elsewhere")).unwrap();
    symlink(world.at("elsewhere"), world.at("bank/src")).unwrap();
    let planted = world.make();
    assert!(planted.status.code() == Some(254) && text(&planted).contains("symbolic link"), "{}", text(&planted));
}

#[test]
fn a_vault_of_dirvish_goes_on() {
    let Some(world) = World::new() else { return };
    fill(&world.at("src"));
    let image = world.at("bank/old/20260101");
    fs::create_dir_all(image.join("tree/d")).unwrap();
    fs::create_dir_all(world.at("bank/old/dirvish")).unwrap();
    let sync = Command::new("rsync").arg("-a").arg(format!("{}/", world.source())).arg(image.join("tree")).status();
    assert!(sync.unwrap().success());
    let summary = format!(
        "client: localhost\ntree: {}\nServer: b\nBank: /b\nvault: old\nbranch: default\nImage: 20260101\nReference: -\n\
         Image-now: 2026-01-01 02:00:00\nExpire: +15 days == 2126-01-16 02:00:00\nSET xdev stats \nUNSET init \n\n\n\
         ACTION: rsync -vrltH /x/ /y\nBackup-begin: 2026-01-01 02:00:00\nBackup-complete: 2026-01-01 02:01:00\nStatus: success\n",
        world.source()
    );
    fs::write(image.join("summary"), summary).unwrap();
    let conf = format!(
        "client: localhost\ntree: {}\nxdev: 1\nimage-default: day-%Y%m%d%H%M%S\nexclude:\n\t/d/big # not this\n\
         expire-default: +15 days\nexpire-rule:\n\t*  *  *  *  *  +3 months\n",
        world.source()
    );
    fs::write(world.at("bank/old/dirvish/default.conf"), conf).unwrap();
    world.ok(&["old"]);
    let vaults: Value = serde_json::from_str(&world.ok(&["list", "old", "--json"])).unwrap();
    let images = vaults["vaults"][0]["holds"]["images"].as_array().unwrap().clone();
    assert_eq!(images.len(), 2, "{images:?}");
    let name = images[1]["name"].as_str().unwrap();
    assert!(name.starts_with("day-"), "{name}");
    let new = world.at("bank/old").join(name);
    let inode = |path: PathBuf| fs::metadata(path).unwrap().ino();
    assert_eq!(inode(new.join("tree/new\nline")), inode(image.join("tree/new\nline")));
    assert!(!new.join("tree/d/big").exists());
    assert!(fs::read_to_string(new.join("summary")).unwrap().contains("Expire: +3 months == "));
    let history = fs::read_to_string(world.at("bank/old/dirvish/default.hist")).unwrap();
    assert!(history.lines().last().unwrap().starts_with(&format!("{name}\t")), "{history}");
    // While dirvish uses the vault, homing refuses to.
    fs::write(world.at("bank/old/dirvish/lock_file"), "1").unwrap();
    let busy = world.run(&["old"]);
    assert!(busy.status.code() == Some(254) && text(&busy).contains("dirvish works on this vault"), "{}", text(&busy));
}

#[test]
fn a_full_bank_is_said_and_leaves_nothing_that_looks_finished() {
    let Some(world) = World::new() else { return };
    fill(&world.at("src"));
    let (image, bank) = (world.at("disk"), world.at("bank"));
    fs::File::create(&image).unwrap().set_len(4 << 20).unwrap();
    let made = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image).status().is_ok_and(|s| s.success());
    let mounted = made && Command::new("mount").args(["-o", "loop"]).args([&image, &bank]).status().unwrap().success();
    if !mounted {
        skipped("a bank on a file system of its own needs root, mkfs.ext4 and a loop device");
        return;
    }
    let _unmount = Unmount(bank.clone());
    let small = world.made()["image"].clone();
    fs::write(world.at("src/large"), vec![1; 8 << 20]).unwrap();
    let full = world.make();
    assert!(full.status.code() == Some(254) && text(&full).contains("is full"), "{}", text(&full));
    let list = world.list();
    assert_eq!(list["images"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(list["images"][0]["name"], small);
    fs::remove_file(world.at("src/large")).unwrap();
    let made = world.made();
    assert_eq!(differences(&world.at("src"), &world.tree(&made["image"])), "");

    // A check reports it before the bank is full.
    world.section("");
    let short = |found: &Value| found["findings"].as_array().unwrap().iter().any(|one| one["code"] == "HC-VOL-07");
    let found = world.check();
    assert!(!short(&found), "{found}");
    fs::write(world.at("src/d/big"), vec![2; 1 << 20]).unwrap();
    let made = world.made();
    let found = world.check();
    assert!(short(&found), "{found}");
    let metrics = fs::read_to_string(world.at("metrics")).unwrap();
    let taken =
        format!("homing_snapshot_taken_bytes{{vault=\"src\"}} {}\n", found["vaults"][0]["space"]["taken_bytes"]);
    assert!(metrics.contains(&taken) && metrics.contains("homing_check_hosts_answered"), "{made} {metrics}");
}

/// Mounts a file system of its own in the world. If that is impossible, prints a note and returns `None`.
fn volume(world: &World, mkfs: &str) -> Option<Unmount> {
    let (image, point) = (world.at(&format!("{mkfs}.img")), world.at("vol"));
    fs::create_dir_all(&point).unwrap();
    // XFS wants 300 MB at the least.
    fs::File::create(&image).unwrap().set_len(400 << 20).unwrap();
    let made = Command::new(mkfs).arg("-q").arg(&image).output().is_ok_and(|output| output.status.success());
    let mounted = made && Command::new("mount").args(["-o", "loop"]).args([&image, &point]).status().unwrap().success();
    if !mounted {
        skipped(&format!("a volume of {mkfs} needs root, that program and a loop device"));
    }
    mounted.then_some(Unmount(point))
}

#[test]
fn an_instant_copy_is_what_is_read_and_nothing_of_it_stays() {
    for (mkfs, kind, way) in [("mkfs.btrfs", "auto", "btrfs"), ("mkfs.xfs", "any", "reflink")] {
        let Some(world) = World::new() else { return };
        let Some(_unmount) = volume(&world, mkfs) else { continue };
        let src = world.at("vol/src");
        fs::create_dir_all(src.join("d")).unwrap();
        fill(&src);
        let kept = world.at("kept");
        let copied = Command::new("cp").arg("-a").args([&src, &kept]).status().unwrap();
        assert!(copied.success());
        let path = src.display().to_string();
        let words = [path.as_str(), "--vault", way, "--instant", kind, "--json"];
        let left = || fs::read_dir(world.at("vol/.homing-instant")).map_or(0, |entries| entries.count());

        // An image is killed while its source is read. The next image removes the remains.
        let mark = world.at("mark");
        world.rsync(&format!("touch {}; exec sleep 600", mark.display()));
        let mut child = world.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("rsync was begun", || mark.exists());
        kill_far(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(left(), 2, "{way}: a copy and its lock");

        // The source changes when the copy of it begins.
        world.rsync(&format!("echo later >{path}/a; rm -f {path}/d/big; touch {path}/late; exec \"$real\" \"$@\""));
        let output = world.run(&words);
        assert_eq!(output.status.code(), Some(0), "{way}: {}", text(&output));
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(told["instant"], way, "{told}");
        let tree = world.at("bank").join(way).join(told["made"]["image"].as_str().unwrap()).join("tree");
        assert_eq!(differences(&kept, &tree), "", "{way}");
        assert!(!world.at("vol/.homing-instant").exists(), "{way}: {}", left());
        assert_eq!(fs::read_to_string(src.join("a")).unwrap(), "later\n");
    }
}

#[test]
fn a_file_that_is_written_twice_in_one_second_is_copied_twice() {
    let Some(world) = World::new() else { return };
    let file = world.at("src/f");
    let write = |content: &str, ms: u64| {
        fs::write(&file, content).unwrap();
        let time = std::time::UNIX_EPOCH + Duration::from_millis(1_700_000_000_000 + ms);
        fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
    };
    write("one", 100);
    let first = world.made();
    write("two", 900);
    let second = world.made();
    let read = |made: &Value| fs::read_to_string(world.tree(&made["image"]).join("f")).unwrap();
    assert_eq!((read(&first), read(&second)), ("one".into(), "two".into()));

    // Nor does a restore take the file for equal.
    let words = ["restore", &world.source(), "--at", first["image"].as_str().unwrap()];
    let left = world.run(&words);
    assert_eq!((left.status.code(), fs::read_to_string(&file).unwrap()), (Some(1), "two".into()), "{}", text(&left));
    world.ok(&[&words[..], &["--overwrite", "--yes"]].concat());
    assert_eq!(fs::read_to_string(&file).unwrap(), "one");
}

#[test]
fn a_repository_of_restic_is_made_listed_expired_tried_and_given_back() {
    let Some(world) = World::new() else { return };
    if Command::new("restic").arg("version").output().is_err() {
        skipped("images in a repository need restic");
        return;
    }
    let src = world.at("src");
    fill(&src);
    fs::write(src.join("d/x.o"), "left out").unwrap();
    let key = world.at("key");
    fs::write(&key, "secret\n").unwrap();
    let file = key.display().to_string();
    let path = world.source();
    let restic = ["--engine", "restic", "--password-file", &file];
    let ok = |words: &[&str]| world.ok(&[words, &restic[..]].concat());
    let make = || {
        let made: Value = serde_json::from_str(&ok(&[&path, "--exclude", "*.o", "--json"])).unwrap();
        std::thread::sleep(Duration::from_millis(1100));
        made["made"].clone()
    };

    // A user who can read the password can read all images.
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let open = world.run(&[&[path.as_str()], &restic[..]].concat());
    assert!(open.status.code() == Some(254) && text(&open).contains("other users may read it"), "{}", text(&open));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();

    let first = make();
    assert!(first["reference"].is_null() && first["read"].is_null(), "{first}");
    fs::write(src.join("a"), "newer\n").unwrap();
    let second = make();
    assert_eq!((&second["reference"], &second["read_files"]), (&first["image"], &Value::from(2)), "{second}");
    let listed: Value = serde_json::from_str(&ok(&["list", &path, "--json"])).unwrap();
    let images = listed["vaults"][0]["holds"]["images"].as_array().unwrap().clone();
    assert_eq!(images.iter().map(|i| &i["name"]).collect::<Vec<_>>(), [&first["image"], &second["image"]], "{listed}");
    assert!(images.iter().all(|image| image["status"] == "success"), "{listed}");

    let name = first["image"].as_str().unwrap();
    // Uses the section, since a path below a folder names a vault of its own.
    let section = format!(
        "[snapshot.src]\nsource = {path:?}\nbank = \"localhost:{}\"\nengine = \"restic\"\npassword_file = {file:?}\n",
        world.at("bank").display()
    );
    fs::write(world.at("c.toml"), section).unwrap();
    let cluster = world.at("c.toml").display().to_string();
    let cat = world.ok(&["cat", &format!("{path}/a"), "--at", name, "--cluster", &cluster]);
    assert_eq!(cat, "one\n");
    let diff =
        world.run(&[&["diff", &path, "--at", name, "--with", second["image"].as_str().unwrap()], &restic[..]].concat());
    assert!(diff.status.code() == Some(1) && text(&diff).contains("changed  a\n"), "{}", text(&diff));

    // All comes back, and existing files are not touched.
    let out = world.at("out");
    fs::create_dir_all(&out).unwrap();
    ok(&["restore", &path, "--into", out.to_str().unwrap()]);
    fs::remove_file(src.join("d/x.o")).unwrap();
    let found = differences(&src, &out);
    assert_eq!(found, "");
    fs::write(out.join("a"), "mine\n").unwrap();
    fs::remove_file(out.join("#hash")).unwrap();
    let kept = world.run(&[&["restore", &path, "--into", out.to_str().unwrap()], &restic[..]].concat());
    assert_eq!(kept.status.code(), Some(1), "{}", text(&kept));
    assert_eq!(fs::read_to_string(out.join("a")).unwrap(), "mine\n");
    assert_eq!(fs::read_to_string(out.join("#hash")).unwrap(), "five\n");
    assert!(!fs::read_dir(&out).unwrap().any(|e| e.unwrap().file_name().to_string_lossy().starts_with(".homing")));

    assert!(ok(&["verify", &path, "--files", "1000"]).contains("all identical"));
    assert!(ok(&["list", &path]).contains("last trial restore:"));
    assert!(ok(&["expire", &path, "--yes"]).contains("nothing has expired"));
}

struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
