//! Compares `homing exec` over real OpenSSH with `clush`, where that is installed. It needs no port and no root: one
//! machine has many names.

use crate::skipped::skipped;
use crate::sshd::Sshd;
use crate::until::until;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

struct World(Sshd);

/// Returns a configuration in which all hosts are one machine. The machine knows by which name it was called.
fn hosts(server: &Sshd, environment: &str) -> String {
    // "dead" is a port without a listener. `environment` replaces the server's own environment.
    format!(
        "Match originalhost dead\n  Hostname 127.0.0.1\n  Port 1\n\
         Match originalhost n*\n  ProxyCommand {} -o 'SetEnv=WHO=%n SHLVL=1 {environment}'",
        server.proxy()
    )
}

impl World {
    fn new() -> Option<World> {
        let world = World(Sshd::new()?);
        let hosts = hosts(&world.0, "");
        world.0.client("user", &hosts);
        Some(world)
    }

    /// Lets hosts reach each other from now on.
    fn leads(&self) {
        let at = self.0.0.path().display();
        let environment = format!("XDG_CACHE_HOME={at}/cache \"HOMING_SSH=ssh -F {at}/user_config\"");
        self.0.client("user", &hosts(&self.0, &environment));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    fn ssh_options(&self) -> String {
        format!("-F {}", self.path("user_config").display())
    }

    fn homing(&self, verb: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
        // The connection is kept long enough for a test, and short enough to leave nothing behind. The timeout suits
        // a slow machine.
        command.args([verb, "--persist", "5", "-t", "120", "-o", &self.ssh_options()]).args(args);
        command.env("XDG_RUNTIME_DIR", self.0.0.path()).env("SHELL", "/bin/sh").env_remove("HOMING_SSH");
        command.stdin(Stdio::null()).current_dir(self.0.0.path());
        command
    }

    fn exec(&self, args: &[&str]) -> Output {
        self.homing("exec", args).output().unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn equal_ends_are_one_line_whether_output_is_gathered_or_not() {
    let Some(world) = World::new() else { return };
    for gather in [&["-b"][..], &[]] {
        let output = world.exec(&[gather, &["-w", "n[1-3]", "test $WHO = n2 && exit 4; exit 3"]].concat());
        let told = "homing: n[1,3] (2): exited with exit code 3\nhoming: n2: exited with exit code 4\n";
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(1), told), "{gather:?}");
    }
}

#[test]
fn gathers_as_clush_does() {
    let Some(world) = World::new() else { return };
    if Command::new("clush").arg("--version").output().is_err() {
        skipped("clush is missing; install clustershell");
        return;
    }
    let scripts = [
        "echo same; echo lines".to_string(),
        "printf 'no end'".into(),
        "exit 3".into(),
        // All are one machine, but each knows its name.
        "i=${WHO#n}; echo group $((i / 3)); echo second $((i % 2))".into(),
        "i=${WHO#n}; echo $((i % 2)); exit $((i / 4))".into(),
        "test ${WHO#n} -lt 4 && seq 1 20 || seq 1 3 25".into(),
    ];
    let all = [&["-b"][..], &["-B", "-N"], &["-L"], &["-b", "-L"], &["--diff"]];
    for (nth, script) in scripts.iter().enumerate() {
        // Output that is equal on all hosts looks the same with most flags, so one is enough for it.
        for flags in if nth < 3 { &all[..1] } else { &all[..] } {
            let run = |mut command: Command| {
                command.args(*flags).args(["-w", "n[1-5]", script]);
                let output = command.output().unwrap();
                let said = text(&output.stderr).replace("clush: ", "homing: ");
                // clush prints a count of hosts also without a terminal, each count over the last one.
                let lines = said.lines().map(|l| l.rsplit('\r').next().unwrap_or("").to_string());
                let mut said: Vec<String> = lines.filter(|l| !l.is_empty()).collect();
                said.sort();
                (text(&output.stdout), said)
            };
            let mut clush = Command::new("clush");
            clush.args(["-n", "--color=never", "-o", &world.ssh_options()]);
            assert_eq!(run(world.homing("exec", &[])), run(clush), "{flags:?} {script}");
        }
    }
}

#[test]
fn exit_statuses_tell_what_happened() {
    let Some(world) = World::new() else { return };
    for (args, status) in [
        (&["-w", "n[1-3]", "true"][..], 0),
        (&["-w", "n[1-3]", "exit 7"], 1),
        (&["-S", "-w", "n[1-3]", "exit 7"], 7),
        (&["-u", "0.3", "-w", "n[1-2]", "sleep 4"], 124),
        (&["-w", "n1,dead", "exit 7"], 254),
        (&["-S", "-w", "n1,dead", "exit 7"], 255),
        (&["-S", "-u", "0.3", "-w", "n[1-2]", "sleep 4"], 255),
        (&["-w", "n[1-", "true"], 255),
        (&["true"], 255),
    ] {
        let output = world.exec(args);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {}", text(&output.stderr));
    }
    // The dead host does not delay the others.
    let output = world.exec(&["-b", "-w", "n[1-2],dead", "echo here"]);
    assert!(text(&output.stdout).contains("n[1-2] (2)\n---------------\nhere\n"));
    assert!(text(&output.stderr).contains("host dead cannot be reached"), "{}", text(&output.stderr));
}

#[test]
fn sixty_four_hosts_one_input_and_json() {
    let Some(world) = World::new() else { return };
    fs::write(world.path("input"), "given to all\n").unwrap();
    let mut command = world.homing("exec", &["-f", "16", "-w", "n[1-64]!n7", "-x", "n8", "-b", "cat"]);
    let output = command.stdin(fs::File::open(world.path("input")).unwrap()).output().unwrap();
    let expected = "---------------\nn[1-6,9-64] (62)\n---------------\ngiven to all\n";
    assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
    let output = world.exec(&["--json", "-w", "n[1-2],dead", "echo out; printf '\\377' >&2"]);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = told["hosts"].as_array().unwrap();
    let of = |host: &str| rows.iter().find(|r| r["host"] == host).unwrap();
    let no_text = serde_json::json!({ "b64": "/w==" });
    assert_eq!((&of("n1")["stdout"], &of("n2")["stderr"]), (&"out\n".into(), &no_text));
    assert_eq!((&of("dead")["outcome"], &told["exit"]), (&"unreachable".into(), &254.into()));
    let output = world.exec(&["--dry-run", "-w", "n[1-3]", "rm -rf", "/"]);
    assert_eq!(text(&output.stdout), "n[1-3] (3): rm -rf /\n");
}

#[test]
fn an_interrupt_ends_it_and_says_who_is_missing() {
    let Some(world) = World::new() else { return };
    // All hosts are one machine, so their commands share a folder.
    fs::create_dir(world.path("begun")).unwrap();
    let line = format!("mktemp -p {}; sleep 300", world.path("begun").display());
    let mut command = world.homing("exec", &["-w", "n1,localhost", &line]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = || fs::read_dir(world.path("begun")).unwrap().count();
    until("both hosts begin", || begun() == 2);
    let sent = Instant::now();
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(sent.elapsed() < Duration::from_secs(200), "it waited for the commands");
    assert!(text(&output.stderr).contains("localhost,n1 (2) had not finished"), "{}", text(&output.stderr));
}

#[test]
fn files_go_out_and_come_back_under_their_hosts_names() {
    use std::os::unix::fs::PermissionsExt;
    let Some(world) = World::new() else { return };
    if no_rsync() {
        return;
    }
    let tree = world.path("tree");
    fs::create_dir_all(tree.join("in side")).unwrap();
    fs::write(tree.join("in side/odd 'name\n>"), "text").unwrap();
    fs::write(tree.join("run"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(tree.join("run"), fs::Permissions::from_mode(0o751)).unwrap();
    let path = |name: &str| world.path(name).display().to_string();
    let ok = |verb: &str, args: &[&str], status: i32| {
        let output = world.homing(verb, args).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{verb} {args:?}: {}", text(&output.stderr));
        output
    };
    // All hosts are one machine, so they are served one at a time.
    fs::create_dir(world.path("there")).unwrap();
    ok("push", &["-f1", "-w", "n[1-2]", "--verify", "--dest", &path("there"), "tree"], 0);
    let there = world.path("there/tree");
    assert_eq!(fs::read_to_string(there.join("in side/odd 'name\n>")).unwrap(), "text");
    assert_eq!(fs::metadata(there.join("run")).unwrap().permissions().mode() & 0o777, 0o751);
    // The file has the same size and time but other content, which only --checksum sees.
    let time = fs::metadata(tree.join("run")).unwrap().modified().unwrap();
    fs::write(there.join("run"), "#!/bin/no\n").unwrap();
    fs::File::options().write(true).open(there.join("run")).unwrap().set_modified(time).unwrap();
    ok("push", &["-w", "n1", "--dest", &path("there"), "tree"], 0);
    assert_eq!(fs::read_to_string(there.join("run")).unwrap(), "#!/bin/no\n");
    ok("push", &["-w", "n1", "--checksum", "--dest", &path("there"), "tree"], 0);
    let same = ok("push", &["-v", "-f1", "-w", "n[1-2]", "--dest", &path("there"), "tree"], 0);
    assert_eq!(text(&same.stdout), "n[1-2] (2): nothing to change\n");
    assert_eq!(fs::read_to_string(there.join("run")).unwrap(), "#!/bin/sh\n");

    let output =
        ok("pull", &["--json", "-w", "n[1-2],dead", "--dest", &path("back"), &path("tree"), &path("tree/run")], 254);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&told["hosts"][0]["host"], &told["hosts"][0]["outcome"]), (&"dead".into(), &"unreachable".into()));
    for host in ["n1", "n2"] {
        let back = world.path("back");
        assert_eq!(fs::read_to_string(back.join(format!("run.{host}"))).unwrap(), "#!/bin/sh\n");
        assert_eq!(fs::read_to_string(back.join(format!("tree.{host}/in side/odd 'name\n>"))).unwrap(), "text");
    }
    let output = ok("pull", &["-w", "n1", "--dest", &path("back"), "/no/such/file"], 1);
    assert!(text(&output.stderr).contains("n1: exited with exit code 23"), "{}", text(&output.stderr));
    ok("push", &["-w", "n1", "not-here"], 255);
    ok("push", &["-w", "localhost", "--dry-run", "--dest", &path("nowhere"), "tree"], 0);
    assert!(!world.path("nowhere").exists());
}

/// Returns whether rsync is missing, and prints a note then.
fn no_rsync() -> bool {
    let missing = Command::new("rsync").arg("--version").output().is_err();
    if missing {
        skipped("rsync is missing");
    }
    missing
}

#[test]
fn names_are_taken_as_they_are_whatever_ssh_is_configured_to_run() {
    let Some(world) = World::new() else { return };
    if no_rsync() {
        return;
    }
    world.0.client("user", &(hosts(&world.0, "") + "\n  RemoteCommand uptime\n  RequestTTY force"));
    // A session begins in this machine's own home, where another run may have left such a file.
    let pwned = format!("pwned{}", std::process::id());
    let touch = format!("$(touch {pwned})");
    let names = ["f[1]", "f1", "a b", "it's \"", "-x", "*", "new\nline", &touch, "~", "#c", "b\\c", "q?"];
    let path = |name: &str| world.path(name).display().to_string();
    for folder in ["odd", "odd/d[x]", "odd/dx", "to1", "to[1]"] {
        fs::create_dir(world.path(folder)).unwrap();
    }
    names.iter().for_each(|name| fs::write(world.path("odd").join(name), name).unwrap());
    fs::write(world.path("odd/d[x]/in"), "d[x]").unwrap();
    let all = [&names[..], &["d[x]"]].concat();
    let paths: Vec<String> = all.iter().map(|name| path(&format!("odd/{name}"))).collect();
    let of = |verb: &str, dest: &str| {
        let words = [vec!["-w", "n1", "--verify", "--dest", dest, "--"], paths.iter().map(String::as_str).collect()];
        let output = world.homing(verb, &words.concat()).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{verb}");
    };
    of("push", &path("to[1]/"));
    of("push", &path("new[2]/"));
    of("pull", &path("back"));
    for (folder, ending) in [("to[1]", ""), ("new[2]", ""), ("back", ".n1")] {
        for name in names {
            let there = world.path(folder).join(format!("{name}{ending}"));
            assert_eq!(fs::read_to_string(&there).ok().as_deref(), Some(name), "{there:?}");
        }
        let inside = world.path(folder).join(format!("d[x]{ending}/in"));
        assert_eq!(fs::read_to_string(inside).ok().as_deref(), Some("d[x]"));
        assert_eq!(fs::read_dir(world.path(folder)).unwrap().count(), all.len(), "{folder}");
    }
    assert_eq!(fs::read_dir(world.path("to1")).unwrap().count(), 0);
    assert!(!world.path(&pwned).exists() && !homing_home().join(&pwned).exists());
}

/// Returns the folder where a session of the test's server begins.
fn homing_home() -> PathBuf {
    PathBuf::from(std::env::var_os("HOME").unwrap_or_default())
}

#[test]
fn each_path_goes_to_its_own_folder_and_none_takes_the_place_of_another() {
    let Some(world) = World::new() else { return };
    if no_rsync() {
        return;
    }
    ["a", "b", "c"].iter().for_each(|folder| fs::create_dir(world.path(folder)).unwrap());
    for file in ["a/x", "b/y", "a/conf", "b/conf"] {
        fs::write(world.path(file), file).unwrap();
    }
    let run = |verb: &str, words: &[&str]| {
        let output = world.homing(verb, &[&["-w", "n1"], words].concat()).output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let there = |folder: &str| {
        let mut names: Vec<_> = fs::read_dir(world.path(folder)).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(run("push", &["a/x", "b/y", "a/conf", "b/conf", "a/x"]), (Some(0), String::new()));
    assert_eq!((there("a"), there("b")), (vec!["conf".into(), "x".into()], vec!["conf".into(), "y".into()]));
    let dest = world.path("c").display().to_string();
    let absolute = |file: &str| world.path(file).display().to_string();
    for (verb, one, other) in [("push", "a/conf", "b/conf"), ("pull", "a/conf", "b/conf/")] {
        let (status, said) = run(verb, &["--dest", &dest, "a/x", &absolute(one), &absolute(other)]);
        let both = said.contains(absolute("a/conf").as_str()) && said.contains(absolute("b/conf").as_str());
        assert!(status == Some(255) && both, "{verb}: {status:?} {said}");
        assert!(there("c").is_empty(), "{verb} copied before it looked");
    }
    let (status, said) = run("push", &["--dest", &dest, "a/.."]);
    assert!(status == Some(255) && said.contains("has no file name"), "{said}");
}

#[test]
fn a_copy_ends_with_the_push_that_was_killed() {
    let Some(world) = World::new() else { return };
    // Replaces rsync by a program that takes long.
    let (bin, file) = (world.path("bin"), world.path("pid"));
    fs::create_dir(&bin).unwrap();
    let slow = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 3000", file.display());
    crate::script::script(&bin.join("rsync"), &slow);
    let path = std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())));
    let mut push = world.homing("push", &["-w", "n1", "user_config"]).env("PATH", path.unwrap()).spawn().unwrap();
    until("the copy begins", || file.exists());
    let copy = format!("/proc/{}", fs::read_to_string(&file).unwrap().trim());
    push.kill().unwrap();
    push.wait().unwrap();
    until("the copy ends", || !std::path::Path::new(&copy).exists());
}

#[test]
fn more_hosts_than_one_serves_are_a_tree() {
    let Some(world) = World::new() else { return };
    if no_rsync() {
        return;
    }
    world.leads();
    let (file, there) = (world.path("file"), world.path("there"));
    fs::write(&file, "text").unwrap();
    fs::create_dir(&there).unwrap();
    let pushed = |hosts: &str, words: &[&str]| -> serde_json::Value {
        let args = ["--json", "-w", hosts, "--dest", there.to_str().unwrap(), file.to_str().unwrap()];
        let output = world.homing("push", &[&args, words].concat()).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{}", text(&output.stdout));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let led = |told: &serde_json::Value, by: &str| {
        told["hosts"].as_array().unwrap().iter().filter(|row| row["by"] == by).count()
    };
    let told = pushed("n[1-64]", &[]);
    assert_eq!(led(&told, "n1"), 0, "one is enough");
    let told = pushed("n[1-65],localhost", &[]);
    assert_eq!((led(&told, "n1"), led(&told, "n33"), fs::read(there.join("file")).unwrap()), (31, 32, b"text".into()));
    let told = pushed("n[1-65]", &["--tree", "0"]);
    assert_eq!(led(&told, "n1"), 0);
}

#[test]
fn output_and_input_without_an_end_leave_room_on_the_disk_that_keeps_them() {
    let Some(world) = World::new() else { return };
    let small = world.path("small");
    fs::create_dir(&small).unwrap();
    let run = |line: &str| {
        let mount = format!("mount -t tmpfs -o size=40m none {0} && export TMPDIR={0} && {line}", small.display());
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &mount]).env("HOMING", env!("CARGO_BIN_EXE_homing"));
        command.output().unwrap()
    };
    let able = Command::new("unshare").args(["-m", "true"]).output().is_ok_and(|output| output.status.success());
    if !able {
        skipped("a disk of the test's own needs unshare and root");
        return;
    }
    for (line, words) in [
        ("\"$HOMING\" exec -n -w localhost -b yes", "localhost has printed"),
        (
            "\"$HOMING\" exec -n -w localhost --outdir \"$TMPDIR/out\" yes >/dev/null",
            "no space left to store more output",
        ),
        ("yes | \"$HOMING\" exec -w localhost sleep 600", "hosts received only a part of standard input"),
    ] {
        let output = run(line);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(254) && said.contains(words), "{line}: {:?} {said}", output.status);
    }
}
