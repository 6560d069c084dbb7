//! `homing resume` after the coordinator was killed. It runs nothing that was not requested, and reports missing
//! tasks.

use crate::skipped::skipped;
use crate::until::until;
use crate::world::World;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

/// Records the item. Item `2` waits for a file `go`. Because the task uses its slot number, homing does not send it
/// ahead. So no task begins when an earlier one is killed.
const TASK: &str = ": {%}; printf '%s\\n' {} >> ran; test {} != 2 || until test -e go; do sleep 0.05; done";

fn ran(w: &World) -> String {
    fs::read_to_string(w.path().join("ran")).unwrap_or_default()
}

/// The same task, with the item on its standard input.
const FED: &str = "read -r i; printf '%s\\n' $i >> ran; test $i != 2 || until test -e go; do sleep 0.05; done";

/// Returns the same task as a line of a task file. There the tag of the run must contain the slot number.
fn task_line(item: &str) -> String {
    let command = TASK.replace("{}", item).replace('\\', "\\\\");
    format!("{{\"argv\": [\"sh\", \"-c\", \"{command}\"]}}\n")
}

/// Whether a process works in the folder: a worker ends its tasks a moment after its coordinator.
fn somebody_works_in(w: &World) -> bool {
    let list = fs::read_dir("/proc").unwrap().flatten();
    list.filter_map(|e| fs::read_link(e.path().join("cwd")).ok()).any(|cwd| cwd == w.path())
}

/// Feeds `input` to the command, keeps its standard input open, and kills it once `last` has started.
fn killed(w: &World, mut command: Command, input: &str, last: &str) {
    let quiet = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // A group of its own: with bash around it, both go.
    let mut child = quiet.process_group(0).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    until("the last known task has started", || ran(w).lines().any(|line| line == last));
    // The worker receives tasks ahead: it may be further than the coordinator knows.
    let before = ran(w).lines().count() - 1;
    let ends = || fs::read_to_string(journal(w)).unwrap_or_default().matches("\"task_ended\"").count();
    until("the ends before it are recorded", || ends() >= before);
    // Tasks are in the group too. A task that is killed before the worker receives the signal gives its slot to the
    // next task.
    if command.get_program() == "bash" {
        let group = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    } else {
        child.kill().unwrap();
    }
    child.wait().unwrap();
    until("nothing is left", || !somebody_works_in(w));
    fs::write(w.path().join("go"), "").unwrap();
}

fn resumed(w: &World, input: Option<&str>) -> (Option<i32>, String) {
    let mut command = w.command(&["resume", "last"]);
    let Some(input) = input else { return told(command.output().unwrap()) };
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A run that wants no input closes it, and then the write fails.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    told(child.wait_with_output().unwrap())
}

/// Resumes the run. Checks its status, its messages, and all tasks that have run by then.
fn goes_on(w: &World, status: i32, says: &str, all: &str) {
    let (ended, said) = resumed(w, None);
    assert!(ended == Some(status) && said.contains(says), "{said}");
    assert_eq!(ran(w), all);
}

fn told(output: Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn half_an_item_is_never_run_and_the_rest_can_be_given_again() {
    let cases: [(&[&str], Option<&str>); 6] = [
        (&["run", "-j1", TASK], Some("\n")),
        (&["run", "-j1", "-0", TASK], Some("\0")),
        (&["run", "-j1", "-d", ",;", TASK], Some(",;")),
        (&["run", "-j1", "-N1", TASK], Some("\n")),
        (&["run", "-j1", "--tagstring", "{%}", "--tasks", "-"], None),
        (&["run", "-j1", "--pipe", "-N1", "--block", "2", FED], Some("\n")),
    ];
    for (args, delimiter) in cases {
        let input = |items: &[&str]| match delimiter {
            Some(end) => items.iter().map(|item| format!("{item}{end}")).collect::<String>(),
            None => items.iter().copied().map(task_line).collect(),
        };
        let w = World::new();
        let (whole, beginning) = (input(&["1", "2", "/data/complete"]), input(&["1", "2"]));
        let half = &whole[..whole.rfind("omplete").unwrap()];
        assert!(half.starts_with(&beginning));
        killed(&w, w.command(args), half, "2");
        let (status, said) = resumed(&w, None);
        assert_eq!(status, Some(254), "{args:?}: {said}");
        assert!(said.contains(&format!("only {} bytes", half.len())), "{said}");
        assert!(said.contains("only tasks 1 to 2 are known"), "{said}");
        assert_eq!(ran(&w), "1\n2\n2\n", "{args:?}");
        let (status, said) = resumed(&w, Some("1\n3\nother\n"));
        assert!(status == Some(254) && said.contains("does not begin with them"), "{args:?}: {said}");
        assert_eq!(ran(&w), "1\n2\n2\n", "{args:?}: what is not the same input is not used");
        let (status, said) = resumed(&w, Some(&whole));
        assert_eq!(status, Some(0), "{args:?}: {said}");
        assert_eq!(ran(&w), "1\n2\n2\n/data/complete\n", "{args:?}");
        // Now the end of the list is known too.
        assert_eq!(resumed(&w, None).0, Some(0));
    }
}

#[test]
fn an_input_of_which_nothing_was_read_is_not_taken_for_an_empty_one() {
    let w = World::new();
    let mut child = w.command(&["run", "-j1", TASK]).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let begun = || fs::read_dir(w.path().join("runs")).is_ok_and(|mut runs| runs.next().is_some());
    let begun = || begun() && fs::read_to_string(journal(&w)).is_ok_and(|text| text.contains("host_up"));
    until("the run has begun", begun);
    child.kill().unwrap();
    child.wait().unwrap();
    let (status, said) = resumed(&w, None);
    assert!(status == Some(254) && said.contains("it cannot be read again"), "{said}");
}

#[test]
fn input_that_was_read_to_its_end_needs_no_second_giving() {
    let w = World::new();
    let mut command = w.command(&["run", "-j1", TASK]);
    fs::write(w.path().join("list"), "1\n2\n3").unwrap();
    command.stdin(fs::File::open(w.path().join("list")).unwrap());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    until("the second task has started", || ran(&w).contains('2'));
    // The reader may be behind the tasks.
    until("the end of the input is recorded", || journal(&w).with_file_name("stdin.end").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    until("nothing is left", || !somebody_works_in(&w));
    fs::write(w.path().join("go"), "").unwrap();
    goes_on(&w, 0, "", "1\n2\n2\n3\n");
}

#[test]
fn a_list_that_changed_or_is_gone_gives_the_tasks_of_the_run() {
    let list = "1\n2\n3\n";
    for args in [&["run", "-j1", "-a", "list", TASK][..], &["run", "-j1", TASK, "::::", "list"]] {
        for (then, word) in [(Some("x\ny\n1\n2\n3\n"), "has changed"), (None, "was removed"), (Some(list), "")] {
            let w = World::new();
            fs::write(w.path().join("list"), list).unwrap();
            killed(&w, w.command(args), "", "2");
            match then {
                Some(text) => fs::write(w.path().join("list"), text).unwrap(),
                None => fs::remove_file(w.path().join("list")).unwrap(),
            }
            let (status, said) = resumed(&w, None);
            assert_eq!(status, Some(0), "{said}");
            assert_eq!(said.contains("list "), !word.is_empty(), "{said}");
            assert!(said.contains(word), "{said}");
            assert_eq!(ran(&w), "1\n2\n2\n3\n");
        }
    }
}

/// Leaves the run as an earlier homing, which kept no input, with another list.
fn lose_the_kept_list(w: &World, list: &str) {
    for name in ["input.1", "input.1.end"] {
        fs::remove_file(journal(w).with_file_name(name)).unwrap();
    }
    fs::write(w.path().join("list"), list).unwrap();
}

#[test]
fn what_is_not_the_task_that_ran_under_its_number_runs() {
    let w = World::new();
    fs::write(w.path().join("list"), "1\n5\n6\n7\n8\n9\n2\n3\n").unwrap();
    killed(&w, w.command(&["run", "-j1", "-a", "list", TASK]), "", "2");
    lose_the_kept_list(&w, "1\nx\n5\n6\n7\n8\n9\n2\n3\n");
    let (status, said) = resumed(&w, None);
    assert_eq!(status, Some(0), "{said}");
    for id in [2, 3, 4] {
        assert!(said.contains(&format!("task {id} differs from the task {id} that has run")), "{said}");
    }
    assert!(!said.contains("task 5 ") && said.contains("2 more tasks differ"), "{said}");
    assert_eq!(ran(&w), "1\n5\n6\n7\n8\n9\n2\nx\n5\n6\n7\n8\n9\n2\n3\n");
    let report = w.homing(&["report", "last", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["tasks"]["done"], 9, "{report}");
    let (status, said) = resumed(&w, None);
    assert!(status == Some(0) && said.contains("no tasks are left to run"), "{said}");
}

#[test]
fn a_slot_number_makes_no_other_task() {
    let w = World::new();
    let task = format!("test {{%}} = 1; {TASK}");
    killed(&w, w.command(&["run", "-j1", &task, ":::", "1", "2", "3"]), "", "2");
    let (status, said) = resumed(&w, None);
    assert!(status == Some(0) && !said.contains("differs from"), "{said}");
    assert_eq!(ran(&w), "1\n2\n2\n3\n");
}

#[test]
fn a_journal_that_does_not_tell_what_ran_is_believed() {
    let w = World::new();
    fs::write(w.path().join("list"), "1\n2\n3\n").unwrap();
    killed(&w, w.command(&["run", "-j1", "-a", "list", TASK]), "", "2");
    lose_the_kept_list(&w, "x\n2\n3\n");
    let text = fs::read_to_string(journal(&w)).unwrap();
    let old = |line: &str| {
        let (body, _) = line.rsplit_once(",\"n\":").unwrap();
        format!("{}}}\n", body.split(",\"ran\":").next().unwrap())
    };
    fs::write(journal(&w), text.lines().map(old).collect::<String>()).unwrap();
    goes_on(&w, 0, "", "1\n2\n2\n3\n");
}

#[test]
fn a_kept_input_that_is_damaged_is_no_mistake_of_the_user() {
    let w = World::new();
    fs::write(w.path().join("list"), "1\n2\n3\n").unwrap();
    killed(&w, w.command(&["run", "-j1", "-a", "list", TASK]), "", "2");
    fs::write(journal(&w).with_file_name("input.1"), "1\n2\n4\n").unwrap();
    goes_on(&w, 254, "input.1 is damaged", "1\n2\n");
}

#[test]
fn task_files_are_kept_too() {
    let w = World::new();
    fs::write(w.path().join("work"), ["1", "2", "3"].map(task_line).concat()).unwrap();
    killed(&w, w.command(&["run", "-j1", "--tagstring", "{%}", "--tasks", "work"]), "", "2");
    fs::write(w.path().join("work"), task_line("other")).unwrap();
    goes_on(&w, 0, "work has changed", "1\n2\n2\n3\n");
}

#[test]
fn what_a_process_substitution_gave_is_kept() {
    let bash = |w: &World, producer: &str| {
        let mut bash = Command::new("bash");
        let line = format!("\"$0\" run -q -j1 \"$1\" :::: <({producer})");
        bash.args(["-c", &line, env!("CARGO_BIN_EXE_homing"), TASK]).current_dir(w.path());
        bash.env("HOMING_RUNS", w.path().join("runs")).env("SHELL", "/bin/sh").env_remove("HOMING_CLUSTER");
        bash
    };
    let w = World::new();
    killed(&w, bash(&w, "printf '1\\n2\\n3\\n'"), "", "2");
    goes_on(&w, 0, "", "1\n2\n2\n3\n");
    let w = World::new();
    killed(&w, bash(&w, "printf '1\\n2\\n3'; until test -e go; do sleep 0.05; done; echo 4"), "", "2");
    goes_on(&w, 254, "it cannot be read again", "1\n2\n2\n");
}

#[test]
fn a_list_without_end_is_refused() {
    let w = World::new();
    let refused = w.homing(&["run", "echo", "::::", "/dev/zero"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(255), "{said}");
    assert!(said.contains("/dev/zero: item 1 is longer than 131071 bytes"), "{said}");
}

/// Makes a run that was killed during its second task of three.
fn interrupted() -> World {
    let w = World::new();
    killed(&w, w.command(&["run", "-j1", TASK, ":::", "1", "2", "3"]), "", "2");
    w
}

fn journal(w: &World) -> std::path::PathBuf {
    fs::read_dir(w.path().join("runs")).unwrap().next().unwrap().unwrap().path().join("journal.jsonl")
}

#[test]
fn a_damaged_record_is_named_and_skipped_when_that_is_asked_for() {
    let w = interrupted();
    let path = journal(&w);
    let text = fs::read_to_string(&path).unwrap();
    let end = text.lines().position(|line| line.contains("task_ended")).unwrap();
    // The record still parses: the end of task 1 becomes one of task 3.
    let other = text.replacen("\"task_ended\",\"task\":1", "\"task_ended\",\"task\":3", 1);
    assert_ne!(text, other);
    fs::write(&path, &other).unwrap();
    let (status, said) = resumed(&w, None);
    assert_eq!(status, Some(254), "{said}");
    assert!(said.contains(&format!("line {} of", end + 1)) && said.contains("--skip-damaged"), "{said}");
    assert_eq!(ran(&w), "1\n2\n", "nothing was run");
    let report = w.homing(&["report", "last"]);
    assert!(report.status.success());
    assert!(String::from_utf8_lossy(&report.stderr).contains("is damaged"), "the report goes on and says so");
    let (status, said) = told(w.homing(&["resume", "--skip-damaged", "last"]));
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(ran(&w), "1\n2\n1\n2\n3\n", "the task whose end is damaged runs again");
}

#[test]
fn what_a_damaged_record_of_a_run_that_ended_told_is_done_again() {
    let w = World::new();
    fs::write(w.path().join("tasks"), "{\"command\":\"echo 1 >> ran\"}\n{\"command\":\"echo 2 >> ran\"}\n").unwrap();
    assert!(w.homing(&["run", "-j1", "--tasks", "tasks"]).status.success());
    let path = journal(&w);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"task_ended\",\"task\":2", "\"task_ended\",\"task\":1", 1)).unwrap();
    let (status, said) = told(w.homing(&["resume", "--skip-damaged", "last"]));
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(ran(&w), "1\n2\n2\n", "{said}");
    let (status, said) = told(w.homing(&["resume", "--skip-damaged", "last"]));
    assert_eq!((status, ran(&w).as_str()), (Some(0), "1\n2\n2\n"), "{said}");
}

#[test]
fn another_environment_is_said_and_no_value_is_kept() {
    let w = World::new();
    let mut first = w.command(&["run", "-j1", TASK, ":::", "1", "2", "3"]);
    first.env("HOMING_TEST_SECRET", "first-value").env("HOMING_TEST_GONE", "x");
    killed(&w, first, "", "2");
    let kept = fs::read_to_string(journal(&w).with_file_name("environment")).unwrap();
    assert!(kept.contains("HOMING_TEST_SECRET") && !kept.contains("first-value"), "{kept}");
    let mut second = w.command(&["resume", "last"]);
    let (status, said) = told(second.env("HOMING_TEST_SECRET", "second").output().unwrap());
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains("differs from that of the run: HOMING_TEST_GONE, HOMING_TEST_SECRET; the remaining tasks"),
        "{said}"
    );
}

#[test]
fn lines_that_are_gone_from_the_journal_are_missed() {
    let w = interrupted();
    let path = journal(&w);
    let text = fs::read_to_string(&path).unwrap();
    let kept: String = text.lines().filter(|l| !l.contains("task_ended")).map(|l| format!("{l}\n")).collect();
    fs::write(&path, kept).unwrap();
    goes_on(&w, 254, "missing before it", "1\n2\n");
}

/// Uses a name that no resolver has (RFC 6761).
#[test]
fn a_run_for_which_no_host_could_be_used_has_ended_and_tells_what_is_undone() {
    let w = World::new();
    let mut run = w.command(&["run", "-q", "--on", "ssh", "--hosts", "nobody.invalid", "echo", ":::", "1", "2", "3"]);
    let (status, said) = told(run.output().unwrap());
    assert!(status == Some(254) && said.contains("no host is left to run on: nobody.invalid"), "{said}");
    let shown = |args: &[&str]| String::from_utf8(w.command(args).output().unwrap().stdout).unwrap();
    assert!(shown(&["runs"]).contains("ended, exit 254"), "{}", shown(&["runs"]));
    assert!(shown(&["report", "last"]).contains("3 unfinished"), "{}", shown(&["report", "last"]));
    let (status, said) = told(w.command(&["resume", "last"]).output().unwrap());
    assert!(status == Some(254) && said.contains("no host is left to run on"), "{said}");
}

/// A function that makes a command of homing.
type Way = fn(&World, &[&str]) -> Command;

#[test]
fn a_run_that_goes_on_is_not_taken_from_another_pid_namespace() {
    if !rustix::process::geteuid().is_root() {
        skipped("a pid namespace needs root");
        return;
    }
    let run = ["run", "-q", "-j1", TASK, ":::", "1", "2", "3"];
    let inside: Way = |w, args| {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc", env!("CARGO_BIN_EXE_homing")]).args(args);
        command.current_dir(w.path()).env("HOMING_RUNS", w.path().join("runs")).env("SHELL", "/bin/sh");
        command.env_remove("HOMING_CLUSTER").stdin(Stdio::null());
        command
    };
    let outside: Way = |w, args| w.command(args);
    for [first, second] in [[inside, outside], [outside, inside]] {
        let w = World::new();
        let mut child = first(&w, &run).spawn().unwrap();
        until("the second task has started", || ran(&w).contains('2'));
        let (status, said) = told(second(&w, &["resume", "last"]).output().unwrap());
        assert!(status == Some(254) && said.contains("still going on"), "{said}");
        let listed = String::from_utf8(second(&w, &["runs"]).output().unwrap().stdout).unwrap();
        assert!(listed.contains("running on"), "{listed}");
        fs::write(w.path().join("go"), "").unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(ran(&w), "1\n2\n3\n", "each once");
    }
    // A container that is gone keeps no list.
    let w = World::new();
    let mut child = inside(&w, &run).stderr(Stdio::null()).spawn().unwrap();
    until("the second task has started", || ran(&w).contains('2'));
    child.kill().unwrap();
    child.wait().unwrap();
    until("nothing is left", || !somebody_works_in(&w));
    fs::write(w.path().join("go"), "").unwrap();
    let (status, said) = resumed(&w, None);
    assert_eq!(status, Some(0), "{said}");
}
