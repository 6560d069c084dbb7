//! `homing make` with real make and real workers on this host.

use crate::until::until;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn folder(makefile: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("Makefile"), makefile).unwrap();
    dir
}

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
    command.args(["make", "--assume-shared", "--hosts", "localhost"]).args(args).current_dir(dir).stdin(Stdio::null());
    command.env("HOMING_RUNS", dir.join(".runs"));
    for name in ["MAKEFLAGS", "MAKELEVEL", "MFLAGS"] {
        command.env_remove(name);
    }
    command
}

fn make(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command(dir, args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap_or(-1), text(stdout), text(stderr))
}

#[test]
fn recipes_run_on_workers_with_makes_own_words_and_statuses() {
    let dir = folder(
        "SHELL = /bin/bash\nexport V = it's \"v\"\nA := $(shell echo parsed)\n\
         all: a b\na:\n\t@[[ x == x ]] && echo \"$$V $(A) $$HOMING_TEST\"\n\
         b: a\n\t@echo one; \\\n\techo two > b\n\t@pwd\n\
         bad:\n\t@echo told >&2; exit 7\nworse:\n\t@kill -9 $$$$\nother:\n\t@echo other\n",
    );
    let at = dir.path().canonicalize().unwrap();
    let output = command(&at, &["-j4"]).env("HOMING_TEST", "x y").output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(out, format!("it's \"v\" parsed x y\none\n{}\n", at.display()), "{err}");
    assert_eq!(std::fs::read_to_string(at.join("b")).unwrap(), "two\n");
    assert!(err.contains("localhost") && err.contains("3 recipes"), "{err}");

    let (status, out, err) = make(&at, &["--no-evidence", "-k", "bad", "worse", "other"]);
    assert_eq!((status, out.as_str()), (2, "other\n"), "{err}");
    assert!(err.contains("told\n") && err.contains("[Makefile:12: bad] Error 7"), "{err}");
    assert!(err.contains("worse] Killed"), "{err}");
}

#[test]
fn make_inside_of_make_shares_one_job_server() {
    let dir = folder("all: x y\nx y:\n\t@$(MAKE) --no-print-directory -f sub.mk $@.out\n");
    std::fs::write(dir.path().join("sub.mk"), "%.out:\n\t@echo \"$@ $$MAKELEVEL\"\n").unwrap();
    let (status, out, err) = make(dir.path(), &["-j2", "-O"]);
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!((status, lines), (0, vec!["x.out 2", "y.out 2"]), "{err}");
    assert!(err.contains("2 recipes") && !err.contains("jobserver"), "{err}");
}

#[test]
fn dry_runs_and_questions_run_nothing() {
    let dir = folder("a:\n\techo made > a\n");
    let (status, out, _) = make(dir.path(), &["-n"]);
    assert_eq!((status, out.as_str()), (0, "echo made > a\n"));
    assert_eq!(make(dir.path(), &["-q"]).0, 1);
    assert!(!dir.path().join("a").exists());
    assert!(!dir.path().join(".runs").exists(), "a build in which nothing ran is no run");
}

/// Returns the status and the output of a homing command on the runs in this folder.
fn told(dir: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
    let output = command.args(words).current_dir(dir).env("HOMING_RUNS", dir.join(".runs")).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_build_is_shown_as_a_run_is_and_make_takes_it_up_again() {
    let dir = folder(
        "all: a b c\na b:\n\t@echo made > $@\n\
         c:\n\t@echo 'c.c:7:1: error: no such thing' >&2; echo '  7 | c' >&2; exit 3\n",
    );
    let at = dir.path().canonicalize().unwrap();
    let (status, _, err) = make(&at, &["-k", "-j2", "all"]);
    assert!(status == 2 && err.contains("homing report "), "{err}");

    let (_, out, err) = told(&at, &["runs", "--json"]);
    let runs: serde_json::Value = serde_json::from_str(&out).unwrap();
    let run = &runs[0];
    assert_eq!((run["state"].as_str(), run["exit"].as_i64()), (Some("ended"), Some(2)), "{out}{err}");
    let counts = serde_json::json!({"done": 2, "failed": 1, "not_run": 0, "skipped": 0, "unfinished": 0});
    assert_eq!(run["counts"], counts);
    assert_eq!(run["argv"].as_array().unwrap()[1], "make");

    let failure = "exit 3";
    let (command, words) = ("echo 'c.c:7:1: error", "c.c:7:1: error: no such thing");
    for shown in [&["top", "--once"][..], &["report", "last"]] {
        let (_, out, err) = told(&at, shown);
        assert!(out.contains("localhost") && out.contains(failure) && out.contains(command), "{out}{err}");
        assert!(out.matches(words).count() >= 2, "its command has it, and its last words are it: {out}");
    }
    let (_, out, _) = told(&at, &["report", "last"]);
    assert!(out.contains(&format!("all, in {}\n", at.display())) && !out.contains("resume"), "{out}");
    let (_, out, err) = told(&at, &["usage"]);
    assert!(out.lines().any(|line| line.starts_with("echo ") && line.contains(" 3 ")), "{out}{err}");

    let (status, _, err) = told(&at, &["resume", "last"]);
    assert_eq!(status, Some(255), "{err}");
    assert!(err.contains(&format!("run make again in {}", at.display())) && err.lines().count() == 1, "{err}");
}

/// Uses make's own knowledge of the prerequisites of each recipe, also through a make of its own. Each chain of the
/// build is a part of the longest, so no stall of the machine makes another one the longest.
#[test]
fn the_critical_path_of_a_build_is_told_and_recorded() {
    let dir = folder(
        "all: prog\nprog: lib it\\'s.obj | dir\n\t@cat lib/x.o > prog # link\nlib: conf\n\t@$(MAKE) -s -C lib x.o\n\
         conf: it\\'s.obj\nit\\'s.obj: | dir\nconf dir:\n\t@: $@\n\t@echo > $@\n%.obj:\n\t@: \"$@\"\n",
    );
    std::fs::create_dir(dir.path().join("lib")).unwrap();
    std::fs::write(dir.path().join("lib/Makefile"), "x.o:\n\t@echo > $@\n").unwrap();
    let at = dir.path().canonicalize().unwrap();
    let (status, _, err) = make(&at, &["-j4"]);
    assert_eq!(status, 0, "{err}");
    assert!(
        err.contains(" in sequence, longest: ") && err.contains("more than 1 host would not shorten the build"),
        "{err}"
    );
    let (_, out, _) = told(&at, &["report", "last", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    let path: Vec<&str> =
        report["path"]["recipes"].as_array().unwrap().iter().filter_map(|recipe| recipe["command"].as_str()).collect();
    let chain =
        [": dir", "echo > dir", ": \"it\\'s.obj\"", ": conf", "echo > conf", "echo > x.o", "cat lib/x.o > prog # link"];
    assert_eq!(path, chain, "{err}");
    let run = std::fs::read_dir(at.join(".runs")).unwrap().flatten().next().unwrap().path();
    let journal = std::fs::read_to_string(run.join("journal.jsonl")).unwrap();
    let link = journal.lines().find(|line| line.contains("# link") && line.contains("task_started")).unwrap();
    let link: serde_json::Value = serde_json::from_str(link).unwrap();
    assert_eq!(link["after"].as_array().unwrap().len(), 3, "the library, the other object, the folder: {link}");
}

/// Does as `homing top`, by files in the folder of the run.
#[test]
fn who_watches_a_build_is_told_why_recipes_wait_sees_what_one_printed_and_ends_it() {
    let dir = folder("all: a b c\na b c:\n\t@echo half > $@; echo this is $@; until [ -e go ]; do sleep 0.02; done\n");
    let cluster = dir.path().join("cluster.toml");
    std::fs::write(&cluster, "[host.localhost]\nslots = 1\n").unwrap();
    let mut command = command(dir.path(), &["-j3", "--cluster", cluster.to_str().unwrap()]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let runs = || std::fs::read_dir(dir.path().join(".runs")).into_iter().flatten().flatten().next();
    until("a run", || runs().is_some());
    let run = runs().unwrap().path();
    let watch = run.join("watch");
    std::fs::create_dir(&watch).unwrap();
    let told = |file: &str| {
        std::fs::write(watch.join("watcher"), "").unwrap();
        std::fs::read_to_string(watch.join(file)).unwrap_or_default()
    };
    until("why recipes wait", || told("live.json").contains(r#""why":"a free slot","tasks":2"#));
    std::fs::write(watch.join("show-1"), "").unwrap();
    until("what it printed", || told("shown-1").starts_with("this is "));
    std::fs::write(watch.join("end-1"), "").unwrap();
    let journal = || std::fs::read_to_string(run.join("journal.jsonl")).unwrap();
    until("its end", || !told("live.json").is_empty() && journal().contains(r#""outcome":"killed""#));
    std::fs::write(dir.path().join("go"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && err.contains("Terminated"), "{err}");
    assert!(journal().contains("task 1 is ended at the request of a watcher"), "{}", journal());
    assert!(!watch.exists(), "what was told goes with the run");
}

#[test]
fn a_build_whose_journal_cannot_be_written_goes_on() {
    let dir = folder("all: a b\na b:\n\t@echo made > $@\n");
    std::fs::write(dir.path().join(".runs"), "in the way").unwrap();
    let (status, _, err) = make(dir.path(), &["-j2"]);
    assert!(status == 0 && dir.path().join("a").exists() && dir.path().join("b").exists(), "{err}");
    assert_eq!(err.matches("this build is not recorded: cannot make the folder").count(), 1, "{err}");
    assert!(!err.contains("homing report"), "{err}");
}

#[test]
fn a_build_under_way_is_seen_with_what_runs() {
    let dir = folder("a:\n\t@until [ -e go ]; do sleep 0.02; done; echo made > $@\n");
    let mut child = command(dir.path(), &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let runs = || told(dir.path(), &["top", "--once"]).1;
    until("what runs", || runs().contains("until [ -e go ]"));
    assert!(runs().contains("  running  homing make "), "{}", runs());
    assert!(told(dir.path(), &["runs"]).1.contains("running on "));
    std::fs::write(dir.path().join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    assert!(told(dir.path(), &["runs"]).1.contains("ended, exit 0"));
}

#[test]
fn an_interrupt_ends_the_recipe_and_make_removes_what_it_was_making() {
    let dir = folder("a:\n\techo half > a; echo started > begun; sleep 60\n");
    let mut child = command(dir.path(), &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !dir.path().join("begun").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // Sends the signal as the terminal does: to make and to its children, by their ids.
    let tree = |pid: u32| -> Vec<u32> {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        children.split_ascii_whitespace().map(|p| p.parse().unwrap()).collect()
    };
    let is_make = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c == "make\n");
    let make = tree(child.id()).into_iter().find(is_make).expect("make is a child");
    for pid in [tree(make), vec![make, child.id()]].concat() {
        let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
    }
    assert!(!child.wait().unwrap().success());
    assert!(!dir.path().join("a").exists(), "make removed the target");
}

/// Checks that a signal to homing alone reaches make, which ends its recipe.
#[test]
fn a_signal_to_homing_alone_ends_the_build() {
    let dir = folder("a:\n\techo half > a; echo $$$$ > begun; exec sleep 600\n");
    let mut child = command(dir.path(), &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the recipe runs", || dir.path().join("begun").exists());
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(!child.wait().unwrap().success());
    assert!(!dir.path().join("a").exists(), "make removed the target");
}

#[test]
fn a_folder_that_other_hosts_do_not_have_is_built_here() {
    let dir = folder("a:\n\t@echo built > a\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
    command.env("HOMING_RUNS", dir.path().join(".runs"));
    let output = command.args(["make", "--hosts", "host.invalid"]).current_dir(dir.path()).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && dir.path().join("a").exists(), "{err}");
    assert!(err.contains("not on a shared file system"), "{err}");

    // Nor is it sent where this host is one of several. homing reports that once, however many recipes there are.
    let dir = folder("all: a b c\na b c:\n\t@echo built > $@\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
    let both = ["make", "--hosts", "localhost,host.invalid", "-j2"];
    let output = command.args(both).env("HOMING_RUNS", dir.path().join(".runs"));
    let output = output.current_dir(dir.path()).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && dir.path().join("c").exists(), "{err}");
    assert_eq!(err.matches("homing: not sent to another host: ").count(), 1, "{err}");
    assert!(err.contains("3 recipes"), "{err}");
}

#[test]
fn on_starts_a_coordinator_once_and_hands_on_words_output_and_status() {
    let dir = tempfile::tempdir().unwrap();
    let on = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
        command.args(["on", "--assume-shared", "--hosts", "localhost", "--persist", "1"]).args(words);
        command.current_dir(dir.path()).env("XDG_RUNTIME_DIR", dir.path()).env_remove("HOMING_MAKE");
        command.output().unwrap()
    };
    let first = on(&["sh", "-c", "echo \"$0\" >&2; echo $PPID; exit 5", "a b"]);
    assert_eq!((first.status.code(), first.stderr.as_slice()), (Some(5), &b"a b\n"[..]));
    let second = on(&["sh", "-c", "echo $PPID"]);
    assert_eq!(second.stdout, first.stdout, "the same worker ran it");
    let socket = || {
        let folders = std::fs::read_dir(dir.path()).unwrap().flatten();
        let files = folders.flat_map(|f| std::fs::read_dir(f.path()).unwrap().flatten());
        files.filter(|f| f.path().extension().is_none()).count()
    };
    // The worker ends by itself when it gets no more commands.
    while socket() > 0 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn on_refuses_hosts_that_are_none_and_passes_on_why_its_coordinator_ended() {
    let dir = tempfile::tempdir().unwrap();
    let on = |hosts: &str, runtime: &std::path::Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
        command.args(["on", "--assume-shared", "--persist", "1", "-w", hosts, "true"]).current_dir(dir.path());
        let output = command.env("XDG_RUNTIME_DIR", runtime).env_remove("HOMING_MAKE").output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (hosts, why) in [("n[1-", "no node set"), ("@nogroup", "no node set"), ("a,-b", "cannot be a host name")] {
        let (status, said) = on(hosts, dir.path());
        assert!(status == Some(255) && said.contains(why), "{hosts}: {said}");
    }
    // A socket has a path of at most 107 bytes.
    let deep = dir.path().join("d".repeat(100));
    std::fs::create_dir(&deep).unwrap();
    let (status, said) = on("localhost", &deep);
    assert!(status == Some(254) && said.contains("did not start: cannot make the socket"), "{said}");
}

#[test]
fn sockets_lie_in_no_folder_where_others_could_put_another() {
    use std::os::unix::fs::PermissionsExt;
    let dir = folder("all:\n\t@ls open > seen\n");
    let open = dir.path().join("open");
    std::fs::create_dir(&open).unwrap();
    for (mode, trusted) in [(0o777, false), (0o700, true)] {
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(mode)).unwrap();
        let made = command(dir.path(), &["-B"]).env("XDG_RUNTIME_DIR", &open).status().unwrap();
        assert!(made.success());
        assert_eq!(std::fs::read_to_string(dir.path().join("seen")).unwrap().contains("homing-make"), trusted);
        let mut on = Command::new(env!("CARGO_BIN_EXE_homing"));
        on.args(["on", "--assume-shared", "--hosts", "localhost", "--persist", "1", "true"]).current_dir(dir.path());
        let ran =
            on.env("XDG_RUNTIME_DIR", &open).env("TMPDIR", dir.path()).env_remove("HOMING_MAKE").status().unwrap();
        assert!(ran.success());
        assert_eq!(std::fs::read_dir(&open).unwrap().next().is_some(), trusted);
    }
}
