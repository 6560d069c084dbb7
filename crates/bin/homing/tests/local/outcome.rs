//! The results of tasks on one machine, as the exit status, the record and the output show them.

use crate::script::script;
use crate::skipped::skipped;
use crate::until::until;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        World { dir: tempfile::tempdir().unwrap() }
    }
    fn path(&self) -> &Path {
        self.dir.path()
    }
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
        command.args(args).current_dir(self.path()).env("HOMING_RUNS", self.path().join("runs"));
        command.env("SHELL", "/bin/sh").env_remove("HOMING_CLUSTER").stdin(Stdio::null());
        command
    }
    fn homing(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }
    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }
    /// Returns the folder of the one run.
    fn run_dir(&self) -> PathBuf {
        std::fs::read_dir(self.path().join("runs")).unwrap().next().unwrap().unwrap().path()
    }
    fn journal_or_empty(&self) -> String {
        let run = std::fs::read_dir(self.path().join("runs")).ok().and_then(|mut d| d.next());
        run.map(|run| run.unwrap().path().join("journal.jsonl"))
            .and_then(|path| std::fs::read_to_string(path).ok())
            .unwrap_or_default()
    }
    fn journal(&self) -> String {
        std::fs::read_to_string(self.run_dir().join("journal.jsonl")).unwrap()
    }
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_resume_with_nothing_left_says_so_and_changes_nothing() {
    let w = World::new();
    assert_eq!(status(&w.homing(&["run", "exit {}", ":::", "0", "1", "2"])), 2);
    let before = w.journal();
    let resumed = w.homing(&["resume", "last"]);
    assert_eq!(status(&resumed), 2, "{}", said(&resumed));
    assert!(
        said(&resumed).contains("no tasks are left to run; 2 failed: homing resume --failed"),
        "{}",
        said(&resumed)
    );
    assert_eq!(w.journal(), before);
    assert_eq!(status(&w.homing(&["resume", "--failed", "last"])), 2, "they fail again");
    let runs = w.homing(&["runs", "--json"]);
    let runs: serde_json::Value = serde_json::from_slice(&runs.stdout).unwrap();
    assert_eq!((&runs[0]["exit"], &runs[0]["counts"]["failed"]), (&2.into(), &2.into()), "{runs}");
}

#[test]
fn failures_of_earlier_parts_count_in_the_status_of_a_resumed_run() {
    let w = World::new();
    let script = "test {} != bad || exit 3; echo {} >> ran; test {} = quick || test -e go || sleep 600";
    let mut child = w.command(&["run", "-q", "-j1", script, ":::", "bad", "quick", "slow"]).spawn().unwrap();
    until("the third task has started", || w.read("ran").contains("slow"));
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::write(w.path().join("go"), "").unwrap();
    let resumed = w.homing(&["resume", "last"]);
    assert_eq!(status(&resumed), 1, "{}", said(&resumed));
    let runs: serde_json::Value = serde_json::from_slice(&w.homing(&["runs", "--json"]).stdout).unwrap();
    let counts = serde_json::json!({"done": 2, "failed": 1, "not_run": 0, "skipped": 0, "unfinished": 0});
    assert_eq!(runs[0]["counts"], counts, "{runs}");
    assert_eq!(runs[0]["exit"], 1);
}

#[test]
fn no_input_is_no_reason_to_complain_of_hosts() {
    let w = World::new();
    let empty = w.homing(&["run", "-q", "echo"]);
    assert_eq!((status(&empty), said(&empty).as_str()), (0, ""));
}

#[test]
fn what_a_job_log_lists_is_skipped_and_not_unfinished() {
    let w = World::new();
    let run = |more: &str| w.homing(&["run", "--joblog", "log", more, "test {} != b", ":::", "a", "b", "c"]);
    assert_eq!(status(&w.homing(&["run", "--joblog", "log", "test {} != b", ":::", "a", "b", "c"])), 1);
    let again = run("--resume-failed");
    assert!(said(&again).contains("2 skipped") && !said(&again).contains("unfinished"), "{}", said(&again));
}

#[test]
fn output_of_a_done_task_outlives_the_coordinator_that_kept_it_for_its_turn() {
    let w = World::new();
    let script = "test {} != 1 || test -e go || sleep 600; echo out {}; echo {} >> ran";
    let out = std::fs::File::create(w.path().join("out")).unwrap();
    let mut child = w.command(&["run", "-q", "-k", "-j4", script, ":::", "1", "2", "3"]).stdout(out).spawn().unwrap();
    until("two are done", || w.journal_or_empty().matches("task_ended").count() == 2);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(w.read("out"), "");
    std::fs::write(w.path().join("go"), "").unwrap();
    let resumed = w.homing(&["resume", "last"]);
    assert_eq!(status(&resumed), 0, "{}", said(&resumed));
    assert_eq!(String::from_utf8_lossy(&resumed.stdout), "out 1\nout 2\nout 3\n");
    assert_eq!(w.read("ran").lines().count(), 3, "nothing is done twice");
}

#[test]
fn a_job_log_that_was_cut_off_is_whole_after_the_resume() {
    let w = World::new();
    let script = "test {} != 4 || test -e go || sleep 600; echo 'out {%}'; test {} != 2";
    let args = ["run", "-q", "-j1", "--joblog", "log", script, ":::", "1", "2", "3", "4"];
    let mut child = w.command(&args).spawn().unwrap();
    until("three are listed", || w.read("log").lines().count() == 4);
    child.kill().unwrap();
    child.wait().unwrap();
    let whole = w.read("log");
    assert!(whole.contains("; echo 'out 1'; test 1 != 2\n"), "{whole}");
    // The log as if homing had been killed before it wrote two and a half lines.
    let first = whole.match_indices('\n').nth(1).unwrap().0 + 1;
    std::fs::write(w.path().join("log"), &whole[..first + 9]).unwrap();
    std::fs::write(w.path().join("go"), "").unwrap();
    assert_eq!(status(&w.homing(&["resume", "last"])), 1);
    let log = w.read("log");
    assert!(log.starts_with(&whole) && log.lines().count() == 5, "{whole}{log}");
    std::fs::write(w.path().join("log"), &whole[..first]).unwrap();
    assert_eq!(status(&w.homing(&["resume", "last"])), 1, "nothing else is left");
    assert_eq!(w.read("log"), log);
    assert_eq!(w.read("log").lines().count(), 5);
}

#[test]
fn a_task_that_prints_too_much_is_ended_and_said_to_be() {
    let w = World::new();
    let args =
        ["run", "-q", "-k", "--retries", "3", "--output-limit", "100k", "--joblog", "log", ":::", "yes", "echo x"];
    let output = w.homing(&args);
    assert_eq!(status(&output), 1, "{}", said(&output));
    let whole = ["y\n".repeat(50_000), "x\n".into()].concat();
    assert!(output.stdout == whole.as_bytes(), "{} bytes", output.stdout.len());
    assert!(said(&output).contains("(yes) was ended because it printed"), "{}", said(&output));
    assert_eq!(w.journal().matches(r#""outcome":"output_limit""#).count(), 1, "not tried again");
    let listed = w.read("log").lines().find(|line| line.ends_with("yes")).unwrap().to_string();
    assert!(listed.contains("\t0\t25\t"), "{listed}");
}

#[test]
fn output_leaves_a_part_of_the_disk_free() {
    if !rustix::process::geteuid().is_root() {
        skipped("a small file system needs root");
        return;
    }
    for results in ["", "--results runs/kept"] {
        let w = World::new();
        std::fs::create_dir(w.path().join("runs")).unwrap();
        // The run has a mount namespace of its own, with 32 MiB for its record and output.
        let script = format!(
            "mount -t tmpfs -o size=32m x runs && \"$0\" run -q -k -j1 {results} ::: yes 'echo fine' >out; echo $?; \
             cat runs/*/journal.jsonl >journal; cat runs/kept/*/*/stdout >>out; df -k --output=avail runs | tail -1"
        );
        let mut shell = Command::new("unshare");
        shell.args(["-m", "sh", "-c", &script, env!("CARGO_BIN_EXE_homing")]).current_dir(w.path());
        let output = shell.env("HOMING_RUNS", w.path().join("runs")).stdin(Stdio::null()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(told.lines().next(), Some("1"), "{}", said(&output));
        assert!(said(&output).contains("nearly full: ending task 1, which has printed most, "), "{}", said(&output));
        assert!(w.read("journal").contains(r#""outcome":"output_limit""#));
        let out = w.read("out");
        assert!(out.contains("fine") && out.len() > 20 << 20 && out.len() < 28 << 20, "{} bytes", out.len());
        let free: u64 = told.lines().nth(1).unwrap().trim().parse().unwrap();
        assert!(results.is_empty() || free > 4 << 10, "{free} KiB are left");
    }
}

#[test]
fn a_task_without_end_ends_in_silence_with_the_reader_of_its_first_lines() {
    let w = World::new();
    // The output of several tasks is grouped, and printed once even if the run is killed and resumed. Only an option
    // prints whole lines as they come.
    let both = &["-j2", "--line-buffer"];
    for (options, inputs) in [(&["--line-buffer"][..], 1), (&[], 1), (&["-k"], 1), (&["--tag"], 1), (both, 2)] {
        let words = [&["run"], options, &["yes {}", ":::"], &["1", "2"][..inputs]].concat();
        let mut child = w.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut reader = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut reader, &mut line).unwrap();
        drop(reader);
        let ended = child.wait_with_output().unwrap();
        let tag = if options == ["--tag"] { "1\t" } else { "" };
        // Of two tasks, either may print first.
        let first = ["1", "2"][..inputs].iter().any(|input| line == format!("{tag}{input}\n"));
        assert_eq!((first, status(&ended), said(&ended)), (true, 141, String::new()), "{options:?}: {line:?}");
    }
}

#[test]
fn a_reader_that_is_gone_is_noticed_while_a_task_runs() {
    let w = World::new();
    let unread = |command: &str| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        w.command(&["run", "-q", "-j1", command, ":::", "1", "2"]).stdout(writer).status().unwrap().code()
    };
    assert_eq!(unread("echo x >> ran; yes | head -c 300000; sleep 600; echo {}"), Some(141));
    assert_eq!(unread("sleep 1; echo silent >> ran #{}"), Some(0), "who prints nothing needs no reader");
    assert_eq!(w.read("ran"), "x\nsilent\nsilent\n");
}

#[test]
fn output_that_a_full_disk_refused_comes_with_the_resume() {
    let w = World::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let args = ["run", "-q", "-j1", "echo out {}; echo {} >> ran", ":::", "1", "2"];
    assert_eq!(w.command(&args).stdout(full).status().unwrap().code(), Some(254));
    let resumed = w.homing(&["resume", "last"]);
    let mut lines: Vec<String> = String::from_utf8_lossy(&resumed.stdout).lines().map(String::from).collect();
    lines.sort();
    assert_eq!((status(&resumed), lines.join(",").as_str()), (0, "out 1,out 2"));
    let runs: Vec<String> = w.read("ran").lines().map(String::from).collect();
    assert!(runs.contains(&"1".to_string()) && runs.contains(&"2".to_string()), "{runs:?}");
}

#[test]
fn too_little_memory_for_a_thread_is_told_and_no_fault() {
    let w = World::new();
    let mut seen = Vec::new();
    // With too little memory for the stack of a thread, its start fails.
    for kilobytes in (8_000..80_000).step_by(2_000).chain([200_000]) {
        let line = format!("ulimit -v {kilobytes}; exec \"$0\" run -q true ::: 1");
        let mut shell = Command::new("sh");
        shell.args(["-c", &line, env!("CARGO_BIN_EXE_homing")]).env("HOMING_RUNS", w.path().join("runs"));
        let output = shell.current_dir(w.path()).stdin(Stdio::null()).output().unwrap();
        assert!(!said(&output).contains("internal error"), "{kilobytes} kB: {}", said(&output));
        seen.push(output.status.code());
    }
    assert!(!seen.contains(&Some(101)) && seen.contains(&Some(254)) && seen.contains(&Some(0)), "{seen:?}");
}

#[test]
fn a_standard_error_that_cannot_be_written_ends_nothing() {
    let w = World::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = w.command(&["run", "echo", ":::", "1"]).stderr(full).stdout(Stdio::piped()).output().unwrap();
    assert_eq!((status(&output), output.stdout.as_slice()), (0, b"1\n".as_slice()));
}

#[test]
fn a_document_that_standard_error_did_not_take_is_no_success() {
    let w = World::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output =
        w.command(&["run", "--json", "echo", ":::", "1"]).stderr(full).stdout(Stdio::piped()).output().unwrap();
    assert_eq!((status(&output), output.stdout.as_slice()), (254, b"1\n".as_slice()));
}

#[test]
fn results_that_cannot_be_written_are_no_success() {
    let w = World::new();
    std::fs::write(w.path().join("file"), "").unwrap();
    let refused = w.homing(&["run", "--results", "file/x", "touch ran", ":::", "a"]);
    assert_eq!(status(&refused), 254, "as --joblog: {}", said(&refused));
    assert!(said(&refused).contains("cannot write results to file/x") && !w.path().join("ran").exists());
    std::fs::create_dir(w.path().join("out")).unwrap();
    std::fs::write(w.path().join("out/bad"), "").unwrap();
    let partly = w.homing(&["run", "--results", "out/{}/", "touch ran.{}", ":::", "bad", "good"]);
    assert_eq!(status(&partly), 1, "{}", said(&partly));
    assert!(w.path().join("out/good/stdout").exists() && !w.path().join("ran.bad").exists());
}

#[test]
fn a_task_that_asks_for_more_memory_than_is_free_does_not_start() {
    let w = World::new();
    let mut child = w.command(&["run", "-q", "--memfree", "1000T", "touch ran", ":::", "a"]).spawn().unwrap();
    until("it says what it waits for", || w.journal_or_empty().contains("tasks wait for memory: --memfree requires"));
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert!(!w.path().join("ran").exists());
}

/// Makes an ssh with this script.
fn ssh(w: &World, does: &str) -> std::path::PathBuf {
    let ssh = w.path().join("ssh");
    script(&ssh, does);
    ssh
}

#[test]
fn hosts_that_cannot_be_used_are_one_line_and_with_need_all_hosts_the_end() {
    let w = World::new();
    let ssh = ssh(&w, "echo 'ssh: connect to host x port 22: Connection refused' >&2; exit 255");
    let run = |words: &[&str]| {
        let hosts = ["run", "--on", "ssh", "--hosts", "localhost,d[1-3]"];
        w.command(&[&hosts, words].concat()).env("HOMING_SSH", &ssh).output().unwrap()
    };
    let wait = r#"until [ $(grep -c '"event":"host_unfit"' runs/*/journal.jsonl) = 3 ]; do sleep 0.1; done; touch ran"#;
    let some = run(&[wait, ":::", "a"]);
    assert_eq!(status(&some), 0, "{}", said(&some));
    let told = said(&some);
    let refusals: Vec<&str> = told.lines().filter(|line| line.starts_with("homing: ")).collect();
    assert!(refusals.len() == 1 && refusals[0].starts_with("homing: host d[1-3] "), "{told}");
    assert!(told.contains("not used   d[1-3]"), "{told}");

    std::fs::remove_file(w.path().join("ran")).unwrap();
    let none = run(&["--need-all-hosts", "touch ran", ":::", "a"]);
    assert_eq!(status(&none), 254, "{}", said(&none));
    let told = said(&none);
    assert!(told.contains("nothing was run, because some hosts cannot be used: d"), "{told}");
    assert!(!w.path().join("ran").exists());
    // The run can be resumed once the hosts are there.
    let again = w.command(&["resume", "last"]).env("HOMING_SSH", &ssh).output().unwrap();
    assert_eq!(status(&again), 254, "{}", said(&again));
}

#[test]
fn a_plan_asks_its_hosts_at_the_same_time_and_does_without_those_that_are_silent() {
    let w = World::new();
    // Each host answers only after all have been queried, so queries one after another would never end.
    let ssh = ssh(
        &w,
        "echo >>asked; until [ $(wc -l <asked) -ge 3 ]; do sleep 0.1; done
         case \" $* \" in *' d1 '*) echo 'ssh: connect to host d1 port 22: Connection refused' >&2; exit 255;; esac
         for last; do :; done; exec sh -c \"$last\"",
    );
    let plan = |words: &[&str]| {
        let hosts = ["plan", "--on", "ssh", "--hosts", "d[1-3]"];
        let _ = std::fs::remove_file(w.path().join("asked"));
        let mut command = w.command(&[&hosts, words].concat());
        command.env("HOMING_SSH", &ssh).env("XDG_CACHE_HOME", w.path()).output().unwrap()
    };
    let some = plan(&["echo {}", ":::", "a", "b", "c", "d"]);
    assert_eq!(status(&some), 0, "{}", said(&some));
    assert!(
        said(&some).lines().any(|line| line.starts_with("homing: host d1 ") && line.ends_with("; not in this plan")),
        "{}",
        said(&some)
    );
    let rows = String::from_utf8_lossy(&some.stdout).into_owned();
    assert_eq!(rows.lines().filter(|row| row.contains("\td2\t") || row.contains("\td3\t")).count(), 4, "{rows}");

    let none = plan(&["--need-all-hosts", "echo {}", ":::", "a"]);
    assert_eq!(status(&none), 254, "{}", said(&none));
    assert!(none.stdout.is_empty() && said(&none).contains("d1"), "{}", said(&none));
}

#[test]
fn nice_is_for_tasks_of_other_hosts_too() {
    let w = World::new();
    let ssh = ssh(&w, "for last; do :; done; exec sh -c \"$last\"");
    for on in [&["--on", "local"][..], &["--on", "ssh", "--hosts", "d1"]] {
        let words = [&["run", "-q", "--nice", "7"], on, &["nice #{}", ":::", "a"]].concat();
        let ran = w.command(&words).env("HOMING_SSH", &ssh).env("XDG_CACHE_HOME", w.path()).output().unwrap();
        let own = String::from_utf8(Command::new("nice").output().unwrap().stdout).unwrap();
        let lowered = own.trim().parse::<i32>().unwrap() + 7;
        assert_eq!(String::from_utf8_lossy(&ran.stdout), format!("{lowered}\n"), "{on:?}: {}", said(&ran));
    }
}
