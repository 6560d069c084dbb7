//! `homing run` as a user types it, on one machine, with real processes.

use crate::script::script;
use crate::until::until;
use crate::world::World;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Counts the processes whose command line holds `mark`.
fn alive(mark: &str) -> usize {
    let list = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = list.filter_map(|e| std::fs::read(e.path().join("cmdline")).ok());
    lines
        .filter(|l| String::from_utf8_lossy(l).contains(mark) && !String::from_utf8_lossy(l).contains("homing"))
        .count()
}

#[test]
fn the_language_is_parallels() {
    let w = World::new();
    assert_eq!(w.out(&["run", "-k", "echo {} {#}", ":::", "a b", "c'd"]), "a b 1\nc'd 2\n");
    assert_eq!(w.out(&["run", "-k", "echo", "{1}-{2}", ":::", "a", "b", ":::", "x", "y"]), "a-x\na-y\nb-x\nb-y\n");
    assert_eq!(w.out(&["run", "-k", "echo {/.}", ":::", "/d/f.txt"]), "f\n");
    assert_eq!(w.out(&["run", "-k", "echo {}; echo done", ":::", "$HOME"]), "$HOME\ndone\n");
    assert_eq!(w.fed(&["run", "-k", "echo got"], "1\n2\n"), "got 1\ngot 2\n");
    assert_eq!(w.fed(&["run", "-k"], "echo one\necho two | tr a-z A-Z\n"), "one\nTWO\n");
}

#[test]
fn a_host_without_slots_takes_no_task_however_it_is_named() {
    let w = World::new();
    std::fs::write(w.path().join("cluster.toml"), "hosts = \"localhost\"\n[host.localhost]\nslots = 0\n").unwrap();
    for named in [&[][..], &["--hosts", "localhost"], &["-S", "localhost"]] {
        let refused = w.homing(&[&["run"], named, &["echo {}", ":::", "1"]].concat());
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(255) && said.contains("none of these hosts takes tasks"), "{said}");
    }
    assert_eq!(w.out(&["run", "-q", "-S", "1/localhost", "echo {}", ":::", "1"]), "1\n");
}

#[test]
fn a_small_stack_limit_is_that_of_tasks_and_no_matter_for_homing() {
    let w = World::new();
    let line = format!("ulimit -s 64; exec {} run -q 'ulimit -s; :' ::: 1", env!("CARGO_BIN_EXE_homing"));
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).env("HOMING_RUNS", w.path().join("runs")).env("SHELL", "/bin/sh").stdin(Stdio::null());
    let output = shell.output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"64\n"[..]), "{output:?}");
}

#[test]
fn order_tags_and_dry_run() {
    let w = World::new();
    let slow_first = w.out(&["run", "-k", "-j4", "sleep {}; echo {}", ":::", "0.3", "0.1", "0"]);
    assert_eq!(slow_first, "0.3\n0.1\n0\n");
    assert_eq!(w.out(&["run", "-k", "--tag", "echo x", ":::", "a"]), "a\tx a\n");
    assert_eq!(w.out(&["run", "--dry-run", "rm {}", ":::", "a b"]), "rm 'a b'\n");
}

#[test]
fn exit_status_counts_failures() {
    let w = World::new();
    assert_eq!(w.homing(&["run", "exit {}", ":::", "0", "3", "4"]).status.code(), Some(2));
    let halted = w.homing(&["run", "-j1", "--halt", "now,fail=1", "exit {}", ":::", "0", "7", "0"]);
    assert_eq!(halted.status.code(), Some(7));
    let missing = w.homing(&["run", "no-such-program-here", ":::", "a"]);
    assert_eq!(missing.status.code(), Some(1));
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(said.contains("no-such-program-here"), "{said}");
    assert_eq!(w.homing(&["run", "--halt", "sometimes", "true", ":::", "a"]).status.code(), Some(255));
}

#[test]
fn retries_and_time_limit() {
    let w = World::new();
    w.out(&["run", "-q", "--retries", "3", ": {}; echo x >> tries; test $(wc -l < tries) -ge 3", ":::", "a"]);
    assert_eq!(std::fs::read_to_string(w.path().join("tries")).unwrap(), "x\nx\nx\n");
    let slow = w.homing(&["run", "--timeout", "0.3", "sleep {}", ":::", "30"]);
    assert_eq!(slow.status.code(), Some(1));
}

#[test]
fn large_output_arrives_whole() {
    let w = World::new();
    let text = w.out(&["run", "-j2", "-q", "seq {} 200000", ":::", "1", "1", "1"]);
    assert_eq!(text.lines().count(), 600_000);
    let in_blocks = text.lines().zip(text.lines().skip(1)).filter(|(a, b)| *a == "200000" && *b == "1").count();
    assert_eq!(in_blocks, 2, "outputs of tasks are not mixed");
}

#[test]
fn job_log_is_parallels_and_resumes() {
    let w = World::new();
    let failed = w.homing(&["run", "--joblog", "log", "test {} != b", ":::", "a", "b", "c"]);
    assert_eq!(failed.status.code(), Some(1));
    let log = std::fs::read_to_string(w.path().join("log")).unwrap();
    assert!(log.starts_with("Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"), "{log}");
    assert_eq!(log.lines().count(), 4);
    w.homing(&["run", "--joblog", "log", "--resume-failed", "echo {} >> again", ":::", "a", "b", "c"]);
    assert_eq!(std::fs::read_to_string(w.path().join("again")).unwrap(), "b\n");
}

#[test]
fn a_killed_coordinator_leaves_no_process_and_resumes() {
    let w = World::new();
    let mark = format!("31.{}", std::process::id());
    let line = format!("echo {{}} >> ran; test {{}} = quick || sleep {mark}");
    let mut child =
        w.command(&["run", "-j2", &line, ":::", "quick", "slow", "late"]).stderr(Stdio::null()).spawn().unwrap();
    // `late` starts in the slot of `quick`, whose end is then in the journal.
    let ran = || std::fs::read_to_string(w.path().join("ran")).unwrap_or_default();
    until("the third task has started", || ran().contains("late"));
    child.kill().unwrap();
    child.wait().unwrap();
    until("nothing is left", || alive(&mark) == 0);
    let runs = w.out(&["runs"]);
    assert!(runs.contains("interrupted"), "{runs}");
    // The second time, the interrupted tasks end at once.
    std::fs::create_dir(w.path().join("bin")).unwrap();
    script(&w.path().join("bin/sleep"), "exit 0");
    std::os::unix::fs::symlink("/bin/true", w.path().join("bin/true")).unwrap();
    let path = format!("{}:{}", w.path().join("bin").display(), std::env::var("PATH").unwrap());
    let resumed = w.command(&["resume", "last"]).env("PATH", path).output().unwrap();
    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
    let ran = ran();
    assert_eq!(ran.lines().filter(|l| *l == "quick").count(), 1, "what was done is not done again: {ran}");
    assert_eq!(ran.lines().filter(|l| *l == "late").count(), 2, "what was under way is: {ran}");
}

#[test]
fn ctrl_c_drains_then_kills() {
    let w = World::new();
    let mark = format!("32.{}", std::process::id());
    let child = w
        .command(&["run", "-j1", &format!("sleep {mark}; echo {{}}"), ":::", "a", "b"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("a task sleeps", || alive(&mark) > 0);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(alive(&mark) > 0, "the first interrupt lets tasks end");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    until("nothing is left", || alive(&mark) == 0);
    let mut child = child;
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn signals_end_all_with_a_record_and_show_in_the_exit_status() {
    use rustix::process::Signal;
    let w = World::new();
    let mark = format!("33.{}", std::process::id());
    let signals = [Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];
    for signal in signals {
        let mut child = w.command(&["run", "-j1", "-q", &format!("sleep {mark} #"), ":::", "a", "b"]).spawn().unwrap();
        until("a task sleeps", || alive(&mark) > 0);
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(128 + signal.as_raw()));
        until("nothing is left", || alive(&mark) == 0);
    }
    let runs = w.homing(&["runs"]);
    assert_eq!(String::from_utf8_lossy(&runs.stdout).matches("ended, exit 1").count(), signals.len(), "{runs:?}");
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let w = World::new();
    let run = |redirection: &str, command: &str| {
        let line = format!("exec \"$0\" run '{command}' ::: a {redirection}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &line, env!("CARGO_BIN_EXE_homing")]).env("HOMING_RUNS", w.path().join("runs"));
        let output = shell.current_dir(w.path()).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for redirection in [">&-", ">/dev/full"] {
        let (status, said) = run(redirection, "echo");
        assert!(status == Some(254) && said.contains("cannot write the output of tasks"), "{redirection}: {said}");
    }
    // A task without output needs no standard output, and a user may discard it.
    assert_eq!(run(">&-", "true").0, Some(0));
    assert_eq!(run("1<>/dev/null", "echo").0, Some(0));
}

#[test]
fn outputs_of_failed_tasks_do_not_look_finished() {
    let w = World::new();
    w.homing(&["run", "--output", "{}.out", "echo half > {}.out; exit 1", ":::", "a"]);
    assert!(!w.path().join("a.out").exists());
    assert_eq!(std::fs::read_to_string(w.path().join("a.out.homing-partial")).unwrap(), "half\n");
    std::fs::write(w.path().join("in"), "x").unwrap();
    let args = ["run", "--skip-newer", "--output", "{}.done", "cp {} {}.done; echo ran", ":::", "in"];
    assert_eq!(w.out(&args), "ran\n");
    assert_eq!(w.out(&args), "");
}

#[test]
fn tasks_come_from_programs_too() {
    let w = World::new();
    let lines =
        "{\"argv\": [\"printf\", \"%s|\", \"a b\", \"$X\"]}\n{\"command\": \"echo $V\", \"env\": {\"V\": \"v\"}}\n";
    assert_eq!(w.fed(&["run", "-k", "--tasks", "-"], lines), "a b|$X|v\n");
    let bad = w.command(&["run", "--tasks", "not-there"]).output().unwrap();
    assert_eq!(bad.status.code(), Some(255));
    let runs: Vec<serde_json::Value> = serde_json::from_str(&w.out(&["runs", "--json"])).unwrap();
    assert_eq!(runs.len(), 1, "what could not begin is no run");
}

#[test]
fn the_config_file_gives_defaults_and_what_is_typed_counts_more() {
    let w = World::new();
    let config = w.path().join("config.toml");
    std::fs::write(&config, "[run]\nquiet = true\njobs = 1\ntag = true\n").unwrap();
    let run = |args: &[&str]| w.command(args).env("HOMING_CONFIG", &config).output().unwrap();
    let output = run(&["run", "-q", "--jobs", "2", "--tag", "echo {%}", ":::", "a"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a\t1\n", "{output:?}");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let failed = run(&["run", "false {}", ":::", "a"]);
    assert_eq!(failed.status.code(), Some(1));
    // The run keeps its options, although the file is another now.
    std::fs::write(&config, "[run]\njobz = 1\n").unwrap();
    let again = run(&["resume", "--failed", "last"]);
    assert!(again.stderr.is_empty() && again.status.code() == Some(1), "it stays quiet: {again:?}");
    let wrong = run(&["run", "true", ":::", "a"]);
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert_eq!(wrong.status.code(), Some(255));
    assert!(said.contains("config.toml, line 2: jobz: ") && said.contains("homing run --help"), "{said}");
}

#[test]
fn command_lines_are_for_a_posix_shell_whatever_the_users_own_is() {
    let world = World::new();
    let fake = |name: &str| {
        let path = world.path().join(name);
        script(&path, &format!("echo {name} was asked"));
        path
    };
    let ran = |variable: &str, shell: &Path| {
        let words = ["run", "-q", "-k", "test -n {} && echo it is {}; true", ":::", "it's", "$HOME", "!x"];
        let ran = world.command(&words).env(variable, shell).output().unwrap();
        (ran.status.code(), String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap())
    };
    let said = ran("SHELL", Path::new("/bin/sh")).1;
    assert_eq!(said, "it is it's\nit is $HOME\nit is !x\n");
    for own in
        [fake("fish"), fake("tcsh"), fake("csh"), fake("nu"), "nowhere/bash".into(), "/nowhere/zsh".into(), "".into()]
    {
        assert_eq!(ran("SHELL", &own), (Some(0), said.clone(), String::new()), "{}", own.display());
    }
    assert!(ran("SHELL", &fake("zsh")).1.starts_with("zsh was asked\n"), "one that reads POSIX quoting is used");
    for odd in [world.path().join("fish"), "/nowhere/bash".into()] {
        let (status, out, err) = ran("HOMING_SHELL", &odd);
        assert!(status == Some(255) && out.is_empty() && err.contains("no such shell on this machine"), "{err}");
    }
    // A job has the shell of its submitter, as with at(1).
    let queue = world.path().join("queue");
    let sub = |shell: &Path| {
        let mut sub = world.command(&["sub", "-K", "-o", "job", "echo plain"]);
        sub.env("SHELL", shell).env("HOMING_QUEUE", &queue).env("HOMING_ENGINE", "local").output().unwrap();
        std::fs::read_to_string(world.path().join("job")).unwrap_or_default()
    };
    assert!(sub(&world.path().join("fish")).ends_with("fish was asked\n"));
    assert!(sub(Path::new("fish")).ends_with("plain\n"), "what is no path is no shell");
}
