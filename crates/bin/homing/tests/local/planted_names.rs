//! Names that homing makes beside those of other users. Each command of a table runs in a folder that all may write,
//! under strace, which gives the list of paths. Then a stranger plants links, a pipe and a folder at each of them.
//! homing must follow none, and wait for none. Root runs the table as root and as an ordinary user.

use crate::skipped::skipped;
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Owner of the folder and of the planted files, and the ordinary user; both are in no password file.
const STRANGER: u32 = 61184;
const USER: u32 = 61185;
/// Seconds. Only a process that waits for a pipe takes so long.
const HANGS: &str = "100";
/// A command with more names than these gets all of them planted at once.
const ONE_BY_ONE: usize = 12;

/// Lines for a shell in the folder of all; `$H` is homing, `$B` its commands of LSF.
const TABLE: [&str; 15] = [
    "$H run -q --output 'out.{}' 'echo hi > out.{}' ::: 1",
    "$H run -q --output 'bad.{}' 'echo hi > bad.{}; false' ::: 1",
    "printf '{\"command\":\"echo hi > listed\",\"outputs\":[\"listed\"]}\\n' | $H run -q --tasks -",
    "$H run -q --results res 'echo hi' ::: 1",
    "$H run -q --results 'tree/{}' 'echo hi' ::: 1",
    "$H run -q --joblog log true ::: 1",
    "$H run -q true ::: 1; $H report last --html page.html",
    "$H run -q true ::: 1; $H usage --prometheus usage.prom",
    "$H sub -q -K -o job.out -e job.err 'echo hi'",
    "$B/bsub -K -oo over.out 'echo hi'",
    "$H lsf install bin",
    "$H man pages",
    "seq 100 | $H run -q --pipe -N 7 cat",
    "printf 'all:\\n\\ttrue\\n' > \"$HOME/Makefile\"; $H make --trace-file trace.json -f \"$HOME/Makefile\"",
    "mkdir -p \"$HOME/src\" && echo hi > \"$HOME/src/f\" && $H snapshot \"$HOME/src\" --to localhost:$HOME/bank; \
     $H snapshot restore src --to localhost:$HOME/bank --into \"$PWD/back\"",
];

/// A folder that all may write, one with the sticky bit, and a home.
struct World {
    dir: tempfile::TempDir,
    user: Option<u32>,
}

impl World {
    fn new(user: Option<u32>) -> World {
        let world = World { dir: tempfile::tempdir().unwrap(), user };
        let make = |name: &str, mode| {
            fs::create_dir(world.at(name)).unwrap();
            fs::set_permissions(world.at(name), Permissions::from_mode(mode)).unwrap();
        };
        fs::set_permissions(world.dir.path(), Permissions::from_mode(0o755)).unwrap();
        [("shared", 0o777), ("tmp", 0o1777), ("home", 0o700), ("home/victim", 0o700), ("home/bank", 0o700)]
            .into_iter()
            .for_each(|(name, mode)| make(name, mode));
        fs::write(world.at("home/kept"), "kept").unwrap();
        if is_root() {
            chown(world.at("shared"), Some(STRANGER), Some(STRANGER)).unwrap();
            for name in ["home", "home/victim", "home/bank", "home/kept"] {
                chown(world.at(name), user, user).unwrap();
            }
        }
        world
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs a line of the table. `before` are the words that start its shell.
    fn run(&self, line: &str, before: &[&str]) -> Output {
        let user = self.user.map(|user| user.to_string());
        let mut words: Vec<String> = ["timeout", "-s", "KILL", HANGS].map(String::from).into();
        words.extend(before.iter().map(|word| word.to_string()));
        if let Some(user) = user {
            words.extend(["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"].map(String::from));
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(["/bin/sh", "-c", line]).current_dir(self.at("shared"));
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C").env("SHELL", "/bin/sh");
        command.env("H", env!("CARGO_BIN_EXE_homing")).env("HOME", self.at("home")).env("TMPDIR", self.at("tmp"));
        command.env("HOMING_QUEUE", self.at("tmp")).env("HOMING_ENGINE", "local").env("B", commands().path());
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// Returns the paths that homing makes in the two folders of all, below this world's folder. Also returns the
    /// calls among them that would have followed a link.
    fn traced(&self, line: &str) -> (BTreeSet<PathBuf>, Vec<String>) {
        let calls = "trace=execve,open,openat,creat,mkdir,mkdirat,symlink,symlinkat,link,linkat,rename,renameat,\
                     renameat2,mknod,mknodat";
        let logs = self.at("home/trace");
        let strace = ["strace", "-ff", "-qq", "-y", "-s", "4096", "-e", calls, "-o", logs.to_str().unwrap()];
        let ran = self.run(line, &strace);
        assert_ne!(ran.status.code(), Some(137), "{line}: {ran:?}");
        let (mut made, mut followed) = (BTreeSet::new(), Vec::new());
        for log in fs::read_dir(self.at("home")).unwrap().map(|entry| entry.unwrap().path()) {
            if log.extension().is_none() || !log.file_name().unwrap().to_string_lossy().starts_with("trace.") {
                continue;
            }
            // A process is homing until it becomes another program.
            let mut is_homing = true;
            for call in String::from_utf8_lossy(&fs::read(&log).unwrap()).lines() {
                if call.starts_with("execve(") && call.ends_with("= 0") {
                    is_homing = call.contains("/homing") || call.contains("/bsub");
                } else if let Some(path) = is_homing.then(|| self.made(call)).flatten() {
                    if call.contains("O_CREAT") && !call.contains("O_EXCL") {
                        followed.push(call.to_string());
                    }
                    made.insert(path);
                }
            }
        }
        (made, followed)
    }

    /// Returns the path that a call has made, if others may plant there. It is below this world's folder: in the
    /// folder of all, or directly in the one with the sticky bit.
    fn made(&self, call: &str) -> Option<PathBuf> {
        let (name, rest) = call.split_once('(')?;
        let opens = ["open", "openat"].contains(&name);
        if rest.contains(") = -1") || opens && !rest.contains("O_CREAT") {
            return None;
        }
        // The last name of the call; its folder comes before it in angle brackets.
        let quoted: Vec<&str> = rest.split('"').collect();
        let at = if opens { 1 } else { quoted.len().checked_sub(2)? };
        let folder = quoted.get(at - 1)?.rsplit_once('<').and_then(|(_, path)| path.split_once('>'));
        let folder = folder.map_or_else(|| self.at("shared"), |(path, _)| path.into());
        let whole = plain(&folder.join(quoted.get(at)?));
        let path = whole.strip_prefix(self.dir.path()).ok()?;
        let planted = path.starts_with("shared") || path.starts_with("tmp") && path.components().count() == 2;
        planted.then(|| path.to_path_buf())
    }

    /// Plants something at a name, as a stranger.
    fn plant(&self, name: &Path, kind: &str) {
        let path = self.dir.path().join(name);
        let mut parents: Vec<&Path> = path.parent().unwrap().ancestors().take_while(|p| !p.exists()).collect();
        parents.reverse();
        for parent in parents {
            fs::create_dir(parent).unwrap();
            fs::set_permissions(parent, Permissions::from_mode(0o777)).unwrap();
            chown(parent, Some(STRANGER), Some(STRANGER)).unwrap();
        }
        match kind {
            "link" => symlink(self.at("home/kept"), &path).unwrap(),
            "dangling link" => symlink(self.at("home/victim/made"), &path).unwrap(),
            "link to a folder" => symlink(self.at("home/victim"), &path).unwrap(),
            "pipe" => {
                let pipe = rustix::fs::FileType::Fifo;
                rustix::fs::mknodat(rustix::fs::CWD, &path, pipe, 0o666.into(), 0).unwrap();
            }
            _ => fs::create_dir(&path).unwrap(),
        }
        lchown(&path, Some(STRANGER), Some(STRANGER)).unwrap();
    }

    /// Returns the kind of harm to this user's own files.
    fn harm(&self) -> Option<&'static str> {
        let kept = fs::read(self.at("home/kept")).ok();
        match fs::read_dir(self.at("home/victim")).unwrap().count() {
            _ if kept.as_deref() != Some(b"kept") => Some("a file was written through a link"),
            0 => None,
            _ => Some("a file or folder was made behind a link"),
        }
    }
}

/// Returns a folder with homing under the names of LSF's commands.
fn commands() -> &'static tempfile::TempDir {
    static MADE: std::sync::OnceLock<tempfile::TempDir> = std::sync::OnceLock::new();
    MADE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        symlink(env!("CARGO_BIN_EXE_homing"), dir.path().join("bsub")).unwrap();
        dir
    })
}

/// Returns the path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The users that run the table.
fn users() -> Vec<Option<u32>> {
    if is_root() { vec![None, Some(USER)] } else { vec![None] }
}

/// The result of a line of the table.
#[derive(Default)]
struct Tried {
    paths: BTreeSet<PathBuf>,
    bad: Vec<String>,
    planted: usize,
}

fn tried(line: &str, user: Option<u32>) -> Tried {
    // A name that differs between two runs cannot be planted. The way it is opened counts all the same.
    let [(first, followed), (second, _)] = [(); 2].map(|()| World::new(user).traced(line));
    let bad = followed.into_iter().map(|call| format!("{line}: no O_EXCL: {call}")).collect();
    let mut tried = Tried { bad, planted: 0, paths: BTreeSet::new() };
    let names: Vec<&PathBuf> = first.intersection(&second).collect();
    let is_last = |name: &&PathBuf| !names.iter().any(|n| n.starts_with(name) && n != name);
    let sets: Vec<Vec<&PathBuf>> = match names.len() {
        _ if !is_root() => Vec::new(),
        0..=ONE_BY_ONE => names.iter().map(|name| vec![*name]).collect(),
        // Planting makes the folders above these names.
        _ => vec![names.iter().copied().filter(|name| is_last(name)).collect()],
    };
    for kind in ["link", "dangling link", "link to a folder", "pipe", "folder"] {
        for set in &sets {
            let world = World::new(user);
            set.iter().for_each(|name| world.plant(name, kind));
            let ran = world.run(line, &[]);
            let harm = world.harm().or(ran.status.code().is_none().then_some("it waits"));
            tried.bad.extend(harm.map(|harm| format!("{line} as {user:?}, a {kind} at {set:?}: {harm}")));
            tried.planted += set.len();
        }
    }
    Tried { paths: first, ..tried }
}

#[test]
fn what_others_plant_at_the_names_that_homing_makes_is_not_followed() {
    if Command::new("strace").arg("-V").output().is_err() {
        return skipped("strace is not there (tests/packages)");
    }
    if !is_root() {
        skipped("only root can plant as another user: names are listed, and how they are opened is looked at");
    }
    let all: Vec<Tried> = std::thread::scope(|scope| {
        let rows = users().into_iter().flat_map(|user| TABLE.map(|line| (line, user)));
        let threads: Vec<_> = rows.map(|(line, user)| scope.spawn(move || tried(line, user))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let paths: BTreeSet<&PathBuf> = all.iter().flat_map(|tried| &tried.paths).collect();
    let bad: Vec<&str> = all.iter().flat_map(|tried| &tried.bad).map(String::as_str).collect();
    let planted: usize = all.iter().map(|tried| tried.planted).sum();
    paths.iter().for_each(|path| println!("{}", path.display()));
    println!("{} paths, {planted} times something planted, {} followed", paths.len(), bad.len());
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    assert!(paths.len() > 20, "the table makes files: {paths:?}");
}
