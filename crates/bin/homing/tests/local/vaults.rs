//! Vaults must not lose images: wrong clocks, damaged images, banks without room, vaults of dirvish.

use crate::preload;
use crate::script::script;
use crate::skipped::skipped;
use crate::until::until;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Output};

/// A source, a bank, and a section for both in a cluster file.
struct World {
    dir: tempfile::TempDir,
    /// The shift of the clock of the next command, with the library for it.
    shift: Option<(PathBuf, i64)>,
}

impl World {
    /// Makes a world. Without rsync, prints a note and returns `None`.
    fn new(section: &str) -> Option<World> {
        if Command::new("rsync").arg("--version").output().is_err() {
            skipped("images need rsync");
            return None;
        }
        let world = World { dir: tempfile::tempdir().unwrap(), shift: None };
        ["src", "bank"].iter().for_each(|name| fs::create_dir(world.at(name)).unwrap());
        world.section(section);
        Some(world)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn section(&self, more: &str) {
        let (source, bank) = (self.at("src"), self.at("bank"));
        let head = format!("[snapshot.src]\nsource = {source:?}\nbank = \"localhost:{}\"\n", bank.display());
        fs::write(self.at("cluster.toml"), head + more).unwrap();
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
        command.arg("snapshot").args(words).current_dir(self.dir.path()).env("TZ", "UTC");
        command.env("HOMING_CLUSTER", self.at("cluster.toml"));
        command.env("HOME", self.dir.path()).env("XDG_STATE_HOME", self.at("state"));
        if let Some((library, seconds)) = &self.shift {
            command.env("LD_PRELOAD", library).env("CLOCK_SHIFT", seconds.to_string());
        }
        command.output().unwrap()
    }

    /// Runs a command that must end with 0, and returns its standard output.
    fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", text(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Tries to make an image, and returns the output. Names of images have seconds in them. If there is an image of
    /// this second, the function waits for the next second.
    fn tried(&self) -> Output {
        let mut output = self.run(&["src"]);
        until("the next second has come", || {
            let early = text(&output).contains(" already: image = ");
            if early {
                output = self.run(&["src"]);
            }
            !early
        });
        output
    }
    fn image(&self, content: &str) -> String {
        fs::write(self.at("src/f"), content).unwrap();
        let before = self.names();
        let output = self.tried();
        assert!(output.status.success(), "{}", text(&output));
        self.names().into_iter().find(|name| !before.contains(name)).unwrap()
    }

    fn list(&self) -> Value {
        if !self.at("bank/src").exists() {
            return Value::Null;
        }
        let vaults: Value = serde_json::from_str(&self.ok(&["list", "src", "--json"])).unwrap();
        vaults["vaults"][0]["holds"].clone()
    }

    /// Returns the names of the images, in the order of the list.
    fn names(&self) -> Vec<String> {
        let list = self.list();
        let images = list["images"].as_array().into_iter().flatten();
        images.map(|image| image["name"].as_str().unwrap().to_string()).collect()
    }

    /// Returns the content of the file in the newest image.
    fn newest(&self) -> String {
        self.ok(&["cat", "src:f"])
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

const YEAR: i64 = 31_536_000;

/// The line of a timer may have a mistake in the name.
#[test]
fn a_vault_that_is_not_there_is_bad_input() {
    let Some(world) = World::new("") else { return };
    for words in [&["list", "src"][..], &["verify", "src"], &["expire", "src", "--yes"], &["restore", "src"]] {
        let refused = world.run(words);
        let why = format!("there is no vault src in {}", world.at("bank").display());
        assert_eq!(refused.status.code(), Some(255), "{words:?}: {}", text(&refused));
        assert!(text(&refused).contains(&why), "{words:?}: {}", text(&refused));
    }
}

#[test]
fn a_wrong_clock_removes_no_image_and_does_not_decide_which_is_newest() {
    let Some(mut world) = World::new("expire = \"+15 days\"\n") else { return };
    let library = preload::preload(world.dir.path(), "clock_shift.c");
    let mut all: Vec<String> = ["0", "1", "2", "3"].iter().map(|content| world.image(content)).collect();
    world.shift = Some((library.clone(), YEAR));
    fs::write(world.at("src/f"), "wrong").unwrap();
    let output = world.run(&["src"]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("homing removed no expired image: "), "{}", text(&output));
    all.push(world.names().pop().unwrap());
    assert_eq!(world.names(), all);
    // By hand neither, with the reason and a remedy.
    let refused = world.run(&["expire", "src", "--yes"]);
    assert_eq!(refused.status.code(), Some(254), "{}", text(&refused));
    assert!(
        text(&refused).contains("this host's clock") && text(&refused).contains("--trust-clock"),
        "{}",
        text(&refused)
    );
    assert_eq!(world.names(), all);

    // Under the right clock, a clock an hour behind, and one a year behind, the newest image is the last one.
    for (content, shift) in [("new", 0), ("newer", -3600), ("newest", -YEAR)] {
        world.shift = Some((library.clone(), shift));
        all.push(world.image(content));
        world.shift = None;
        assert_eq!((world.newest().as_str(), world.names()), (content, all.clone()));
    }
    let out = world.at("out");
    world.ok(&["restore", "src", "--into", out.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(out.join("f")).unwrap(), "newest");
    let shown = world.ok(&["list", "src"]);
    assert!(shown.contains(&format!("{}: its date is wrong", all[4])), "{shown}");

    // With `--trust-clock` the last three remain.
    world.shift = Some((library, 2 * YEAR));
    world.ok(&["expire", "src", "--trust-clock", "--yes"]);
    assert_eq!(world.names(), all[all.len() - 3..]);
}

#[test]
fn a_vault_of_an_older_version_is_read_in_the_order_in_which_its_images_were_made() {
    let Some(mut world) = World::new("") else { return };
    let library = preload::preload(world.dir.path(), "clock_shift.c");
    let mut all = vec![world.image("one")];
    world.shift = Some((library, YEAR));
    all.push(world.image("wrong"));
    world.shift = None;
    all.push(world.image("two"));
    all.push(world.image("three"));
    for name in &all {
        let path = world.at("bank/src").join(name).join("summary");
        let summary = fs::read_to_string(&path).unwrap();
        let lines = summary.lines().filter(|line| !line.starts_with("Sequence:"));
        fs::write(path, lines.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    }
    fs::remove_file(world.at("bank/src/dirvish/homing.journal")).unwrap();
    // An older version took the image of the wrong clock as the newest one, and shared its files.
    let path = world.at("bank/src").join(&all[3]).join("summary");
    let summary = fs::read_to_string(&path)
        .unwrap()
        .replace(&format!("Reference: {}", all[2]), &format!("Reference: {}", all[1]));
    fs::write(path, summary).unwrap();
    assert_eq!((world.names(), world.newest().as_str()), (all.clone(), "three"));
    all.push(world.image("four"));
    assert_eq!((world.names(), world.newest().as_str()), (all.clone(), "four"));
    let summary = fs::read_to_string(world.at("bank/src").join(&all[4]).join("summary")).unwrap();
    assert!(summary.contains(&format!("Sequence: 1\nOlder:\n\t{}\n", all[0])), "{summary}");
}

#[test]
fn verify_finds_each_damage_of_an_image_and_of_its_manifest() {
    let Some(world) = World::new("") else { return };
    let src = world.at("src");
    fs::create_dir(src.join("d")).unwrap();
    symlink("/etc/passwd", src.join("d/link")).unwrap();
    fs::write(src.join("d/one"), "one").unwrap();
    fs::hard_link(src.join("d/one"), src.join("d/two")).unwrap();
    let image = world.at("bank/src").join(world.image("x"));
    let damaged = |what: &str, wanted: &str| {
        let output = world.run(&["verify", "src"]);
        assert_eq!(output.status.code(), Some(254), "{what}: {}", text(&output));
        assert!(text(&output).contains(wanted), "{what}: {}", text(&output));
        assert!(!world.list()["proved"].is_null(), "{what}");
    };
    let all = world.ok(&["verify", "src"]);
    assert!(all.contains("3 files of ") && all.contains("all identical, 6 entries as in the manifest"), "{all}");

    let manifest = image.join("manifest");
    let whole = fs::read_to_string(&manifest).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for (what, left) in
        [("a line is gone", lines[1..].concat()), ("it is cut", lines[..4].concat()), ("it is empty", String::new())]
    {
        fs::write(&manifest, left).unwrap();
        damaged(what, "its manifest is damaged");
    }
    fs::write(&manifest, whole.replacen("\"mode\":420", "\"mode\":421", 1)).unwrap();
    damaged("a bit", "its hash differs from the hash in the summary");
    fs::remove_file(&manifest).unwrap();
    damaged("none", "the manifest: it is missing");
    fs::write(&manifest, &whole).unwrap();

    fs::write(image.join("tree/d/more"), "").unwrap();
    damaged("an extra file", "d/more is not in the manifest");
    fs::remove_file(image.join("tree/d/more")).unwrap();
    fs::remove_file(image.join("tree/d/link")).unwrap();
    symlink("/etc/shadow", image.join("tree/d/link")).unwrap();
    damaged("a link", "d/link has another target");
}

/// Mounts a bank on a file system of its own. If that is impossible, prints a note and returns `None`.
fn bank(world: &World, mkfs: &[&str]) -> Option<Unmount> {
    let (image, bank) = (world.at("disk"), world.at("bank"));
    fs::File::create(&image).unwrap().set_len(16 << 20).unwrap();
    let made = Command::new("mkfs.ext4").args(["-q", "-F"]).args(mkfs).arg(&image).status().is_ok_and(|s| s.success());
    let mounted = made && Command::new("mount").args(["-o", "loop"]).args([&image, &bank]).status().unwrap().success();
    if !mounted {
        skipped("a bank on a file system of its own needs root, mkfs.ext4 and a loop device");
    }
    mounted.then(|| Unmount(bank))
}

struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_bank_without_inodes_goes_on_when_the_source_has_shrunk() {
    let Some(world) = World::new("") else { return };
    let Some(_unmount) = bank(&world, &["-N", "256"]) else { return };
    world.image("first");
    for n in 0..400 {
        fs::write(world.at("src").join(n.to_string()), "small").unwrap();
    }
    let full = world.tried();
    assert!(full.status.code() == Some(254) && text(&full).contains("is full"), "{}", text(&full));
    // Without those files the next image is made, and nothing unfinished is left.
    for n in 0..400 {
        fs::remove_file(world.at("src").join(n.to_string())).unwrap();
    }
    let name = world.image("second");
    assert_eq!(world.newest(), "second");
    assert_eq!(world.names().last(), Some(&name));
    assert_eq!(world.list()["unfinished"], Value::Array(Vec::new()));

    // Where nothing of a vault can be removed, homing prints a command that shows the use of inodes.
    let others = world.at("bank/others");
    fs::create_dir(&others).unwrap();
    let filled = (0..).take_while(|n: &u32| fs::write(others.join(n.to_string()), "").is_ok()).count();
    assert!(filled > 0);
    let stuck = world.tried();
    assert!(stuck.status.code() == Some(254) && text(&stuck).contains("try: df -i "), "{}", text(&stuck));
}

#[test]
fn keys_of_dirvish_act_or_are_refused_and_its_host_by_name_is_read_without_ssh() {
    let Some(world) = World::new("") else { return };
    fs::write(world.at("cluster.toml"), "").unwrap();
    fs::write(world.at("src/f"), "x").unwrap();
    let own = world.at("bank/old/dirvish");
    fs::create_dir_all(&own).unwrap();
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let conf = |more: &str| {
        let text = format!(
            "client: {}\ntree: {} /known\nimage-default: %Y%m%d\n{more}",
            name.trim(),
            world.at("src").display()
        );
        fs::write(own.join("default.conf"), text).unwrap();
    };
    let to = format!("localhost:{}", world.at("bank").display());
    let words = ["old", "--to", &to];
    for line in ["pre-client: false", "rsync-option:\n\t--fake-super", "exlude:\n\t*.o"] {
        conf(line);
        let refused = world.run(&words);
        let key = line.split(':').next().unwrap();
        let told = text(&refused);
        assert!(refused.status.code() == Some(254) && told.contains(key) && told.contains("default.conf"), "{told}");
        assert!(!world.at("bank/old").read_dir().unwrap().any(|e| e.unwrap().file_name() != "dirvish"), "{line}");
    }
    // Without ssh: the script fails whenever it is called.
    script(&world.at("no-ssh"), "exit 77");
    conf(&format!(
        "rsh: {}\nindex: gzip\nimage-perm: 0750\nexpire: +5 days\nSET zxfer\n",
        world.at("no-ssh").display()
    ));
    world.ok(&words);
    let vaults: Value = serde_json::from_str(&world.ok(&["list", "old", "--to", &to, "--json"])).unwrap();
    let image = vaults["vaults"][0]["holds"]["images"][0].clone();
    let folder = world.at("bank/old").join(image["name"].as_str().unwrap());
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o7777, 0o750);
    assert!(folder.join("index.gz").exists() && folder.join("tree/f").exists() && !image["expires"].is_null());
    // This is the second image of a day.
    let second = world.run(&words);
    let told = text(&second);
    assert!(
        second.status.code() == Some(254) && told.contains(" already: image = ") && told.contains("\n  try: image = "),
        "{told}"
    );

    // The reason is ssh's own message, not rsync's error.
    conf(&format!("rsh: {}\n", world.at("no-ssh").display()));
    script(&world.at("no-ssh"), "echo 'ssh: connect to host elsewhere port 22: Connection refused' >&2; exit 255");
    let text_of =
        fs::read_to_string(own.join("default.conf")).unwrap().replace(name.trim(), "elsewhere").replace("%Y%m%d", "%s");
    fs::write(own.join("default.conf"), text_of).unwrap();
    let lost = world.run(&words);
    assert!(text(&lost).contains("port 22: Connection refused"), "{}", text(&lost));
}

#[test]
fn names_that_mean_something_else_are_refused_and_holes_are_not_new_bytes() {
    let Some(world) = World::new("") else { return };
    for form in ["%Y.expired", "%Y.partial", "dirvish"] {
        world.section(&format!("image = \"{form}\"\n"));
        let refused = world.run(&["src"]);
        assert!(refused.status.code() != Some(0) && text(&refused).contains("image = "), "{form}: {}", text(&refused));
        assert!(!world.at("bank/src").exists(), "{form}");
    }
    world.section("");
    fs::File::create(world.at("src/sparse")).unwrap().set_len(64 << 20).unwrap();
    let made: Value = serde_json::from_str(&world.ok(&["src", "--json"])).unwrap();
    assert_eq!((&made["made"]["bytes"], &made["made"]["own_bytes"]), (&Value::from(64_u64 << 20), &Value::from(0)));
}

#[test]
fn what_is_of_another_kind_now_has_changed_and_is_not_gone() {
    let Some(world) = World::new("") else { return };
    let src = world.at("src");
    for name in ["kept", "gone", "linked"] {
        fs::create_dir(src.join(name)).unwrap();
        fs::write(src.join(name).join("in"), name).unwrap();
    }
    world.image("x");
    fs::remove_dir_all(src.join("gone")).unwrap();
    fs::remove_dir_all(src.join("linked")).unwrap();
    symlink("/nowhere", src.join("linked")).unwrap();
    fs::remove_file(src.join("f")).unwrap();
    symlink("/nowhere", src.join("f")).unwrap();
    let diff = world.run(&["diff", "src"]);
    let mut lines: Vec<String> = text(&diff).lines().map(String::from).collect();
    lines.sort();
    assert_eq!(lines, ["changed  f", "changed  linked", "gone     gone", "gone     gone/in", "gone     linked/in"]);
}
