//! The far side of the bootstrap, run by a fake ssh on this machine. It is a shell that passes the remote command to
//! `sh` with a home of its own.

#[path = "../../../../tests/skipped.rs"]
mod skipped;

use skipped::skipped;
#[path = "../../../../tests/script.rs"]
mod script;

use homing_launch::{Carried, Channel, FAN_OUT, HostEvent, HostPlan, LaunchError, Options, Via, open};
use script::{program, script};
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const FACTS: &str = r#"{"hostname":"far","aliases":[],"cores":2,"memory_bytes":1,"arch":"x","boot_id":"b","mounts":[],"nic_bytes_per_s":null,"now_ns":0}"#;

/// Returns a script that sends a hello like a worker and then copies its input to its output.
fn worker() -> String {
    greeting(&format!("homing-wire {} {} {FACTS}", homing_launch::wire::VERSION, homing_launch::wire::release()))
}

fn greeting(hello: &str) -> String {
    format!("#!/bin/sh\n[ \"$1\" = worker ] || exit 3\necho '{hello}'\nexec cat\n")
}

struct World {
    dir: TempDir,
    options: Options,
}

impl World {
    /// Makes a world whose fake ssh runs `before` ahead of the remote command.
    fn new(before: &str) -> World {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path();
        program(&at.join("worker"), &worker());
        fs::create_dir(at.join("home")).unwrap();
        // The last argument is the remote command, as sshd would hand it to the login shell.
        let ssh = format!(
            "#!/bin/sh\nfor c in \"$@\"; do :; done\necho \"$*\" > {0}/arguments\nunset XDG_CACHE_HOME\n\
             HOME={0}/home; TMPDIR={0}; export HOME TMPDIR\n{before}\nexec sh -c \"$c\"\n",
            at.display()
        );
        program(&at.join("ssh"), &ssh);
        let options = Options {
            exe: at.join("worker"),
            ssh: vec![at.join("ssh").into()],
            connect_timeout_s: 5,
            role: "worker",
            leased: false,
            carried: Carried::Worker,
            asleep: Default::default(),
            kept: |_| None,
        };
        World { dir, options }
    }

    fn open(&self) -> Result<Channel, LaunchError> {
        open("far", &Via::Ssh { target: "me@far".into() }, &self.options)
    }

    fn refusal(&self) -> String {
        let said = self.open().err().expect("must be refused").to_string();
        assert!(!said.contains('\n'), "{said}");
        said
    }

    /// Makes a folder `bin` in the home with the tools that a host needs, with gzip or without it.
    fn tools(&self, gzip: bool) -> PathBuf {
        let bin = self.dir.path().join("home/bin");
        fs::create_dir(&bin).unwrap();
        let needed = ["sh", "sha256sum", "head", "cat", "mkdir", "chmod", "mv", "rm", "ls", "id", "uname", "sync"];
        for tool in needed.iter().chain(gzip.then_some(&"gzip")) {
            let place = ["/bin", "/usr/bin"].map(|dir| Path::new(dir).join(tool)).into_iter().find(|at| at.exists());
            symlink(place.unwrap(), bin.join(tool)).unwrap();
        }
        bin
    }

    fn cache(&self) -> PathBuf {
        self.dir.path().join("home/.cache/homing")
    }

    fn fallback(&self) -> PathBuf {
        self.dir.path().join(format!("homing-{}", rustix::process::getuid().as_raw()))
    }

    fn cached(&self) -> Vec<PathBuf> {
        fs::read_dir(self.cache()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

fn echoes(channel: Channel) {
    let Channel { mut to, mut from, keeper, facts, .. } = channel;
    assert_eq!(facts.hostname, "far");
    to.write_all(b"\0frame\n").unwrap();
    to.flush().unwrap();
    drop(to);
    let mut back = Vec::new();
    from.read_to_end(&mut back).unwrap();
    assert_eq!(back, b"\0frame\n");
    assert!(keeper.end(Duration::from_secs(300)).unwrap().success());
}

#[test]
fn a_local_worker_needs_no_copy() {
    let world = World::new("");
    echoes(open("here", &Via::Local, &world.options).unwrap());
    assert!(!world.cache().exists());
}

#[test]
fn the_first_time_copies_and_the_second_finds() {
    let world = World::new("echo Welcome; printf 'no newline '");
    echoes(world.open().unwrap());
    let cached = world.cached();
    assert_eq!(cached.len(), 1, "{cached:?}");
    assert_eq!(fs::read(&cached[0]).unwrap(), worker().as_bytes());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&cached[0]), mode(&world.cache())), (0o700, 0o700));
    let before = fs::metadata(&cached[0]).unwrap().modified().unwrap();
    echoes(world.open().unwrap());
    assert_eq!(fs::metadata(&cached[0]).unwrap().modified().unwrap(), before, "copied again");
    let arguments = fs::read_to_string(world.dir.path().join("arguments")).unwrap();
    assert!(arguments.starts_with("-T -oRemoteCommand=none -oForwardAgent=no"), "{arguments}");
    assert!(arguments.contains("-- me@far exec /bin/sh -c"), "{arguments}");
}

#[test]
fn a_wrong_copy_is_replaced_not_run() {
    let world = World::new("");
    echoes(world.open().unwrap());
    let cached = world.cached().remove(0);
    program(&cached, "#!/bin/sh\necho evil > \"$HOME/evil\"\n");
    echoes(world.open().unwrap());
    assert_eq!(fs::read(&cached).unwrap(), worker().as_bytes());
    assert!(!world.dir.path().join("home/evil").exists());
}

#[test]
fn two_coordinators_may_copy_at_the_same_time() {
    let world = World::new("");
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| echoes(world.open().unwrap()));
        }
    });
    assert_eq!(world.cached().len(), 1);
}

#[test]
fn damage_on_the_way_is_seen_and_nothing_stays() {
    // `head` acts as the link: it loses the last 20 bytes, more than the checksum at the end of packed bytes.
    for gzip in [true, false] {
        let world = World::new("PATH=$HOME/bin");
        let bin = world.tools(gzip);
        fs::remove_file(bin.join("head")).unwrap();
        script(&bin.join("head"), "/usr/bin/head \"$@\" | /usr/bin/head -c -20");
        assert!(world.refusal().contains("damaged"));
        assert!(world.cached().is_empty());
    }
}

#[test]
fn it_is_packed_where_the_host_can_unpack_it() {
    let sent = |gzip: bool| {
        let world = World::new("PATH=$HOME/bin");
        let bin = world.tools(gzip);
        fs::remove_file(bin.join("head")).unwrap();
        script(&bin.join("head"), "/usr/bin/head \"$@\" | /usr/bin/tee \"$HOME/sent\"");
        let long = format!("{}\n#{}", worker(), "0123456789".repeat(1000));
        program(&world.dir.path().join("worker"), &long);
        echoes(world.open().unwrap());
        assert_eq!(fs::read_to_string(world.cached().remove(0)).unwrap(), long);
        (fs::metadata(world.dir.path().join("home/sent")).unwrap().len() as usize, long.len())
    };
    let (packed, size) = sent(true);
    assert!(packed < size / 3, "{packed} of {size}");
    let (plain, size) = sent(false);
    assert_eq!(plain, size);
}

#[test]
fn a_full_disk_says_so_and_nothing_stays() {
    let world = World::new("PATH=$HOME/bin:$PATH");
    let bin = world.dir.path().join("home/bin");
    fs::create_dir(&bin).unwrap();
    program(&bin.join("cat"), &full("/.worker-"));
    let said = world.refusal();
    assert!(said.contains("No space left"), "{said}");
    assert!(world.cached().is_empty());
}

/// Returns a `cat` whose disk is full if the path of its output contains `place`.
fn full(place: &str) -> String {
    format!("#!/bin/sh\ncase $(readlink /proc/$$/fd/1) in *{place}*) exec /bin/cat > /dev/full;; esac\nexec /bin/cat\n")
}

#[test]
fn a_full_home_leads_to_tmp() {
    let world = World::new("PATH=$HOME/bin:$PATH");
    let bin = world.dir.path().join("home/bin");
    fs::create_dir(&bin).unwrap();
    program(&bin.join("cat"), &full("/home/"));
    echoes(world.open().unwrap());
    assert!(world.cached().is_empty());
    let copies: Vec<PathBuf> = fs::read_dir(world.fallback()).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(copies.iter().map(|p| fs::read(p).unwrap()).collect::<Vec<_>>(), [worker().as_bytes()]);
}

#[test]
fn many_hosts_are_connected_to_in_turns() {
    let world = World::new("d=${0%/*}; : > $d/in.$$; ls $d | grep -c in. >> $d/counts; sleep 1; rm $d/in.$$; exit 255");
    let (tell, told) = std::sync::mpsc::channel();
    for host in 0..100 {
        let (options, tell) = (world.options.clone(), tell.clone());
        let name = format!("n{host}");
        let plan = HostPlan { via: Via::Ssh { target: name.clone() }, name, slots: None };
        homing_launch::attend(plan, options, move |heard| tell.send(heard).is_ok()).unwrap();
    }
    drop(tell);
    assert_eq!(told.iter().filter(|heard| matches!(heard, HostEvent::Refused(_))).count(), 100);
    let counts = fs::read_to_string(world.dir.path().join("counts")).unwrap();
    let most = counts.lines().map(|n| n.parse::<usize>().unwrap()).max().unwrap();
    assert!((2..=FAN_OUT).contains(&most), "{most} at once");
}

#[test]
fn the_end_of_a_worker_is_told_as_far_as_it_is_known() {
    let world = World::new("");
    let reason = |via: Via, last: &str| {
        let (tell, told) = std::sync::mpsc::channel();
        let exe = world.dir.path().join(last.replace(' ', "-"));
        program(&exe, &worker().replace("exec cat", last));
        let options = Options { exe, ..world.options.clone() };
        let plan = HostPlan { name: "far".into(), via, slots: None };
        homing_launch::attend(plan, options, move |heard| tell.send(heard).is_ok()).unwrap();
        // Dropping the keeper would end the child.
        let mut kept = Vec::new();
        let end = |heard| match heard {
            HostEvent::Cut { reason } => Some(("cut", reason)),
            HostEvent::Gone { reason, .. } => Some(("gone", reason)),
            other => {
                kept.push(other);
                None
            }
        };
        told.iter().find_map(end).expect("its end is told")
    };
    let far = || Via::Ssh { target: "far".into() };
    let is = |how, reason: &str| (how, reason.to_string());
    // No guard has reported that the tasks have ended.
    assert_eq!(reason(Via::Local, "kill -9 $$"), is("cut", "the guard of its worker was killed by signal 9"));
    assert_eq!(reason(far(), "exit 255"), is("cut", "the connection was lost, or its worker was killed"));
    assert_eq!(reason(far(), "exit 7"), is("cut", "its worker ended with status 7"));
    let all_ended = format!("exit {}", homing_launch::wire::ALL_ENDED);
    for via in [Via::Local, far()] {
        assert_eq!(reason(via, &all_ended), is("gone", "its worker ended"));
    }
}

#[test]
fn another_architecture_is_one_clear_line() {
    let world = World::new("PATH=$HOME/bin:$PATH");
    let bin = world.dir.path().join("home/bin");
    fs::create_dir(&bin).unwrap();
    script(&bin.join("uname"), "echo pdp11");
    let said = world.refusal();
    assert!(said.contains("host far is pdp11") && said.contains("/worker-pdp11 is missing"), "{said}");
    // The program for that machine is now there, of this release.
    program(&world.dir.path().join("worker-pdp11"), &worker().replace("exec cat", "exec cat #"));
    for _ in 0..2 {
        echoes(world.open().unwrap());
    }
    let cached = world.cached();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    assert!(cached.len() == 1 && name(&cached[0]).starts_with("worker-pdp11-"), "{cached:?}");
    assert!(fs::read_to_string(&cached[0]).unwrap().ends_with("exec cat #\n"));
}

#[test]
fn the_worker_alone_is_carried_unless_all_of_the_program_is_asked_for() {
    let mut world = World::new("");
    let alone = world.dir.path().join(format!("worker-{}", std::env::consts::ARCH));
    program(&alone, &worker().replace("exec cat", "exec cat #"));
    let carried = |world: &World| {
        echoes(world.open().unwrap());
        let text = fs::read_to_string(&world.cached()[0]).unwrap();
        fs::remove_dir_all(world.cache()).unwrap();
        text
    };
    assert!(carried(&world).ends_with("exec cat #\n"));
    world.options.carried = Carried::Program;
    assert!(carried(&world).ends_with("exec cat\n"));
}

#[test]
fn a_worker_of_another_release_is_refused_by_name() {
    let world = World::new("");
    for (hello, theirs) in [
        (format!("homing-wire 1 {FACTS}"), "its worker is homing of an older version"),
        (format!("homing-wire {} 0.0.9 {FACTS}", homing_launch::wire::VERSION), "its worker is homing 0.0.9"),
        (format!("homing-wire 0 {} {FACTS}", homing_launch::wire::release()), "with frames 0 and not"),
    ] {
        program(&world.dir.path().join("worker"), &greeting(&hello));
        let refused = open("here", &Via::Local, &world.options).err().expect("must be refused").to_string();
        assert!(refused.contains(theirs) && refused.contains(homing_launch::wire::release()), "{refused}");
    }
}

#[test]
fn the_last_two_versions_stay_on_a_host() {
    let world = World::new("");
    let mut versions = Vec::new();
    for round in 0..4 {
        let exe = world.dir.path().join(format!("version-{round}"));
        program(&exe, &format!("{}# {round}\n", worker()));
        let options = Options { exe, ..world.options.clone() };
        echoes(open("far", &Via::Ssh { target: "far".into() }, &options).unwrap());
        versions.push(format!("{}# {round}\n", worker()));
    }
    fs::write(world.cache().join("notes"), "somebody else's").unwrap();
    let mut kept: Vec<String> = world.cached().iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    kept.sort();
    assert_eq!(kept, [&versions[2], &versions[3], "somebody else's"]);
}

#[test]
fn a_missing_tool_is_named() {
    let world = World::new("PATH=$HOME/bin");
    let bin = world.dir.path().join("home/bin");
    fs::create_dir(&bin).unwrap();
    symlink("/bin/sh", bin.join("sh")).unwrap();
    assert!(world.refusal().contains("no sha256sum"));
}

#[test]
fn a_home_that_cannot_be_written_leads_to_tmp() {
    let world = World::new("");
    // A file in the place of the folder stops root as well.
    fs::write(world.dir.path().join("home/.cache"), "").unwrap();
    echoes(world.open().unwrap());
    let folder = world.fallback();
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    // When others may look into it, it is no longer private: refused, not repaired.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let said = world.refusal();
    assert!(said.contains("no folder"), "{said}");
}

#[test]
fn a_folder_that_others_may_write_is_not_trusted() {
    let world = World::new("");
    fs::create_dir_all(world.cache()).unwrap();
    fs::set_permissions(world.cache(), fs::Permissions::from_mode(0o777)).unwrap();
    let linked = World::new("");
    fs::create_dir_all(linked.dir.path().join("home/.cache")).unwrap();
    fs::create_dir(linked.dir.path().join("elsewhere")).unwrap();
    symlink(linked.dir.path().join("elsewhere"), linked.cache()).unwrap();
    for world in [world, linked] {
        echoes(world.open().unwrap());
        assert!(world.cached().is_empty(), "it was used");
        assert_eq!(fs::read_dir(world.fallback()).unwrap().count(), 1);
    }
}

#[test]
fn a_target_cannot_become_an_option() {
    let world = World::new("");
    for target in ["-oProxyCommand=touch evil", "", "a b", "a\nb"] {
        let refused = open("x", &Via::Ssh { target: target.into() }, &world.options);
        assert!(matches!(refused.err(), Some(LaunchError::BadTarget { .. })), "{target:?}");
    }
    assert!(!world.dir.path().join("arguments").exists());
}

#[test]
fn last_words_are_kept_and_a_silent_end_is_told() {
    let world = World::new("echo 'the roof is on fire' >&2; exit 7");
    let said = world.refusal();
    assert!(said.contains("the roof is on fire") && said.contains('7'), "{said}");
    let missing = Options { ssh: vec![OsString::from("/nonexistent/ssh")], ..world.options.clone() };
    let refused = open("x", &Via::Ssh { target: "x".into() }, &missing).err().unwrap();
    assert!(matches!(refused, LaunchError::Start { .. }));
}

/// The script has to be one word of each of these shells; missing ones are reported as skipped.
#[test]
fn csh_and_fish_as_login_shells_carry_the_script() {
    for shell in ["bash", "tcsh", "fish"] {
        if Command::new(shell).args(["-c", "true"]).stdin(Stdio::null()).status().is_err() {
            skipped(&format!("{shell} is not installed"));
            continue;
        }
        let world = World::new(&format!("exec {shell} -c \"$c\""));
        echoes(world.open().unwrap_or_else(|e| panic!("{shell}: {e}")));
        assert_eq!(world.cached().len(), 1, "{shell}");
    }
}

#[test]
fn what_is_started_has_the_umask_of_the_login_and_the_copy_is_nobody_elses() {
    for mask in ["0022", "0002", "0077"] {
        let world = World::new(&format!("umask {mask}"));
        let told = world.dir.path().join("mask");
        let text = worker().replacen('\n', &format!("\numask > {}\n", told.display()), 1);
        program(&world.options.exe, &text);
        // The first round copies, the second finds.
        for _ in 0..2 {
            echoes(world.open().unwrap());
            assert_eq!(fs::read_to_string(&told).unwrap().trim(), mask);
            fs::remove_file(&told).unwrap();
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&world.cached()[0]), mode(&world.cache())), (0o700, 0o700));
    }
}

#[test]
fn a_home_that_is_not_there_is_not_made() {
    for cache in ["", "XDG_CACHE_HOME=$HOME/cache; export XDG_CACHE_HOME"] {
        let world = World::new(&format!("HOME=$TMPDIR/none\n{cache}"));
        echoes(world.open().unwrap());
        assert!(!world.dir.path().join("none").exists(), "{cache}");
        assert_eq!(fs::read_dir(world.fallback()).unwrap().count(), 1);
    }
    // `XDG_CACHE_HOME` is made, wherever the home is.
    let world = World::new("XDG_CACHE_HOME=$TMPDIR/cache HOME=$TMPDIR/none; export XDG_CACHE_HOME");
    echoes(world.open().unwrap());
    assert!(world.dir.path().join("cache/homing").is_dir() && !world.dir.path().join("none").exists());
}
