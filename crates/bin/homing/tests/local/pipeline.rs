//! Tasks of a file that run after others.

use crate::until::until;
use crate::world::World;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

fn write(w: &World, name: &str, lines: &[&str]) {
    fs::write(w.path().join(name), lines.join("\n")).unwrap();
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn ran(w: &World) -> Vec<String> {
    let text = fs::read_to_string(w.path().join("ran")).unwrap_or_default();
    text.lines().map(String::from).collect()
}

/// The consumer comes first, and there are blank lines between. Only the declared inputs and outputs give the order.
const DIAMOND: [&str; 6] = [
    r#"{"name": "join", "command": "cat l r > all; echo join >> ran", "inputs": ["l", "r"], "outputs": ["all"]}"#,
    "",
    r#"{"name": "left", "command": "cat top > l; echo left >> ran", "inputs": ["top"], "outputs": ["l"]}"#,
    r#"{"name": "right", "command": "cat top > r; echo right >> ran", "inputs": ["./top"], "outputs": ["r"]}"#,
    r#"{"name": "top", "command": "sleep 0.1; echo x > top; echo top >> ran", "outputs": ["top"]}"#,
    r#"{"command": "echo last >> ran", "after": ["join", 2]}"#,
];

#[test]
fn a_task_runs_when_what_it_needs_is_there_whatever_the_order_of_the_lines() {
    let w = World::new();
    write(&w, "t", &DIAMOND);
    w.out(&["run", "-j4", "--tasks", "t"]);
    let mut order = ran(&w);
    assert_eq!(fs::read_to_string(w.path().join("all")).unwrap(), "x\nx\n");
    order[1..3].sort();
    assert_eq!(order, ["top", "left", "right", "join", "last"]);
    let dry = w.out(&["run", "--dry-run", "--tasks", "t"]);
    let first = |word: &str| dry.lines().position(|line| line.contains(word)).unwrap();
    assert!(first("echo top") < first("cat top > l") && first("cat top > r") < first("cat l r"), "{dry}");
    assert!(first("cat l r") < first("echo last"), "{dry}");
    let plan = w.out(&["plan", "--tasks", "t"]);
    assert!(plan.lines().any(|line| line.starts_with("1\t-\tafter 2 3,")), "{plan}");
    assert_eq!(plan.lines().count(), 5, "{plan}");
}

#[test]
fn the_example_of_the_manual_runs() {
    let w = World::new();
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/manual");
    let example = fs::read_to_string(manual.join("pipeline.jsonl")).unwrap();
    let page = fs::read_to_string(manual.join("tasks.md")).unwrap();
    assert!(example.lines().all(|line| page.contains(&format!("\n    {line}\n"))), "the page shows the file");
    write(&w, "pipeline.jsonl", &[&example]);
    assert_eq!(w.out(&["run", "--tasks", "pipeline.jsonl"]), "apple\nfig\npear\nplum\n");
    assert!(!w.path().join("parts").exists() && w.path().join("sorted").exists());
}

#[test]
fn what_needs_a_task_that_failed_is_not_run_and_runs_when_that_is_mended() {
    let w = World::new();
    let failing = DIAMOND.map(|line| line.replace("cat top > r;", "test -e mended && cat top > r || exit 3;"));
    write(&w, "t", &failing.each_ref().map(String::as_str));
    let output = w.homing(&["run", "-k", "--tasks", "t", "--joblog", "log"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("join and 1 more task not run: needs right, which failed"), "{}", said(&output));
    assert!(said(&output).contains("2 done, 1 failed, 2 not run"), "{}", said(&output));
    assert_eq!(ran(&w), ["top", "left"]);
    let log = fs::read_to_string(w.path().join("log")).unwrap();
    assert_eq!(log.lines().count(), 1 + 3, "what was not run is to run: {log}");
    let report = w.homing(&["report", "last"]);
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(report.contains("2 tasks: needs right, which failed"), "{report}");
    let plain = w.homing(&["resume", "last"]);
    assert_eq!((plain.status.code(), ran(&w).len()), (Some(1), 2), "{}", said(&plain));
    fs::write(w.path().join("mended"), "").unwrap();
    let mended = w.homing(&["resume", "--failed", "last"]);
    assert_eq!(mended.status.code(), Some(0), "{}", said(&mended));
    assert!(said(&mended).contains("5 done, 0 failed in"), "{}", said(&mended));
    assert_eq!(ran(&w), ["top", "left", "right", "join", "last"]);
}

#[test]
fn a_job_log_that_lists_a_failure_keeps_what_needs_it_from_running() {
    let w = World::new();
    write(
        &w,
        "t",
        &[
            r#"{"name": "a", "command": "echo a >> ran; test -e mended", "outputs": ["x"]}"#,
            r#"{"name": "b", "command": "echo b >> ran", "inputs": ["x"]}"#,
        ],
    );
    let run = ["run", "--tasks", "t", "--joblog", "log"];
    assert_eq!(w.homing(&run).status.code(), Some(1));
    let output = w.homing(&[&run[..], &["--resume"]].concat());
    assert!(said(&output).contains("not run  1 task: needs a, which failed"), "{}", said(&output));
    fs::write(w.path().join("mended"), "").unwrap();
    w.out(&[&run[..], &["--resume-failed"]].concat());
    assert_eq!(ran(&w), ["a", "a", "b"]);
}

#[test]
fn a_run_that_was_killed_in_the_middle_goes_on_there() {
    let w = World::new();
    let lines = DIAMOND.map(|line| line.replace("echo left", "until test -e go; do sleep 0.05; done; echo left"));
    write(&w, "t", &lines.each_ref().map(String::as_str));
    let mut child =
        w.command(&["run", "-j4", "--tasks", "t"]).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    until("the right one has ended", || ran(&w).contains(&"right".to_string()));
    let journal =
        || fs::read_dir(w.path().join("runs")).unwrap().flatten().next().unwrap().path().join("journal.jsonl");
    let ends = || fs::read_to_string(journal()).unwrap_or_default().matches("\"task_ended\"").count();
    until("its end is recorded", || ends() == 2);
    child.kill().unwrap();
    child.wait().unwrap();
    fs::write(w.path().join("go"), "").unwrap();
    // Uses the lines as the run read them. The file is empty now.
    write(&w, "t", &[]);
    let output = w.homing(&["resume", "last"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("5 done, 0 failed"), "{}", said(&output));
    let order = ran(&w);
    assert_eq!(order.iter().filter(|word| *word == "top" || *word == "right").count(), 2, "{order:?}");
    assert_eq!(order[order.len() - 2..], ["join", "last"], "{order:?}");
}

#[test]
fn halt_ends_a_pipeline_and_resume_goes_on() {
    let w = World::new();
    write(
        &w,
        "t",
        &[
            r#"{"name": "a", "command": "echo a >> ran; test -e mended"}"#,
            r#"{"name": "b", "command": "echo b >> ran", "after": ["a"]}"#,
            r#"{"name": "c", "command": "echo c >> ran; sleep 0.1", "after": [4]}"#,
            r#"{"name": "d", "command": "echo d >> ran; until test -e mended; do sleep 0.05; done"}"#,
        ],
    );
    let output = w.homing(&["run", "-j2", "--halt", "now,fail=1", "--tasks", "t"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("1 failed, 1 not run, 2 unfinished"), "{}", said(&output));
    fs::write(w.path().join("mended"), "").unwrap();
    let output = w.homing(&["resume", "--failed", "last"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let mut all = ran(&w);
    all.sort();
    all.dedup();
    assert_eq!(all, ["a", "b", "c", "d"]);
}

#[test]
fn what_runs_at_once_takes_no_more_of_a_resource_than_there_is() {
    let w = World::new();
    let task = |command: &str| format!(r#"{{"command": "{command}", "resources": {{"gpu": 1}}}}"#);
    let alone = task("mkdir gpu || echo clash >> ran; sleep 0.1; rmdir gpu");
    write(&w, "one", &[alone.as_str(); 6]);
    w.out(&["run", "-j6", "--resource", "gpu=1", "--tasks", "one"]);
    assert_eq!(ran(&w), [""; 0]);
    // Two tasks run at a time, and each waits for the other.
    let met = task("touch at.$$; until test $(ls | grep -c ^at) -ge 2; do sleep 0.05; done; ls | grep -c ^at >> ran");
    write(&w, "two", &[met.as_str(); 2]);
    w.out(&["run", "-j6", "--resource", "gpu=2", "--tasks", "two"]);
    assert_eq!(ran(&w), ["2", "2"]);
    for (given, wrong) in [
        (&[][..], "no host of this run has the resource \"gpu\"; --resource gpu=1 gives it to each"),
        (&["--resource", "gpu=0"], "it needs 1 of \"gpu\", but no host of this run has more than 0"),
        (&["--resource", "gpu"], "a resource is a name and a whole number, as in gpu=2"),
    ] {
        let output = w.homing(&[&["run"], given, &["--tasks", "two"]].concat());
        assert!(output.status.code() == Some(255) && said(&output).contains(wrong), "{given:?}: {}", said(&output));
    }
    assert_eq!(ran(&w).len(), 2);
}

#[test]
fn what_is_wrong_with_a_file_is_told_with_its_line_before_anything_runs() {
    let first = r#"{"name": "a", "command": "echo a >> ran", "outputs": ["x"]}"#;
    let cases = [
        (r#"{"command": "true", "after": ["b"]}"#, "'after' names \"b\", but no task has this name"),
        (r#"{"command": "true", "after": [7]}"#, "'after' names task 7, but no task has this number"),
        (r#"{"name": "a", "command": "true", "after": [1]}"#, "the task on line 1 has the name \"a\" too"),
        (r#"{"command": "true", "outputs": ["./y/../x"]}"#, "/x is an output of the task on line 1 too"),
        (r#"{"name": "c", "command": "true", "after": ["c"]}"#, "these tasks could never run: c runs after c"),
        (r#"{"command": "true", "after": "a"}"#, "'after' is \"a\"; it must be a list of names or numbers of tasks"),
        (r#"{"comand": "true", "after": ["a"]}"#, "unknown field `comand`"),
    ];
    for (line, wrong) in cases {
        let w = World::new();
        write(&w, "t", &[first, "", line]);
        let output = w.homing(&["run", "--tasks", "t"]);
        assert_eq!(output.status.code(), Some(255), "{line}");
        let said = said(&output);
        assert!(said.contains("t line 3: ") && said.contains(wrong) && said.lines().count() == 1, "{line}: {said}");
        assert!(ran(&w).is_empty() && w.out(&["runs", "--json"]).trim() == "[]", "{line}");
    }
}

#[test]
fn two_tasks_of_one_name_are_refused_before_anything_runs() {
    let w = World::new();
    let line = r#"{"name": "a", "command": "echo a >> ran"}"#;
    write(&w, "t", &[line, "", line]);
    for file in ["t", "-"] {
        let mut command = w.command(&["run", "--tasks", file]);
        let output = command.stdin(fs::File::open(w.path().join("t")).unwrap()).output().unwrap();
        assert_eq!(output.status.code(), Some(255), "{file}");
        assert!(
            said(&output).contains("line 3: the task on line 1 has the name \"a\" too"),
            "{file}: {}",
            said(&output)
        );
        assert!(ran(&w).is_empty(), "{file}");
    }
}

#[test]
fn of_a_stream_a_task_depends_on_lines_before_it() {
    let w = World::new();
    let lines = DIAMOND.map(|line| format!("{line}\n"));
    let in_order = [4, 2, 3, 0].map(|at: usize| lines[at].as_str()).concat();
    w.fed(&["run", "-j4", "--tasks", "-"], &in_order);
    assert_eq!(fs::read_to_string(w.path().join("all")).unwrap(), "x\nx\n");
}

#[test]
fn what_is_up_to_date_is_left_out_step_by_step() {
    let w = World::new();
    // Times of files have steps of some milliseconds.
    let lines = DIAMOND.map(|line| line.replace("\"cat", "\"sleep 0.1; cat"));
    write(&w, "t", &lines.each_ref().map(String::as_str)[..5]);
    let run = ["run", "--skip-newer", "--tasks", "t"];
    w.out(&run);
    fs::remove_file(w.path().join("r")).unwrap();
    w.out(&run);
    let order = ran(&w);
    assert_eq!(order[4..], ["right", "join"], "{order:?}");
}
