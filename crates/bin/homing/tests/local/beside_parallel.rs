//! Compares `homing run` with GNU parallel: both run the same shell lines. Standard output, exit status and job log
//! must be equal. Without GNU parallel the tests print a note and are skipped.

use crate::skipped::skipped;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

const AGREE: &str = include_str!("beside_parallel/agree.cases");
const MANUAL: &str = include_str!("beside_parallel/manual.cases");
const DIFFER: &str = include_str!("beside_parallel/differ.cases");

/// The number of lines at once: most of them wait.
const THREADS: usize = 4;

/// Returns the cases of a file, each with the comment before it. A quoted newline continues a case.
fn cases(text: &str) -> Vec<(String, String)> {
    let (mut found, mut comment, mut open) = (Vec::new(), String::new(), String::new());
    for line in text.lines() {
        if open.is_empty() && line.starts_with('#') {
            comment = line.trim_start_matches("# ").into();
            continue;
        }
        open.push_str(line);
        if is_open(&open) {
            open.push('\n');
        } else if !open.is_empty() {
            found.push((comment.clone(), std::mem::take(&mut open)));
        }
    }
    found
}

/// Whether the line ends inside single quotes.
fn is_open(line: &str) -> bool {
    let mut quote = None;
    for c in line.chars() {
        match quote {
            None if c == '\'' || c == '"' => quote = Some(c),
            Some(q) if q == c => quote = None,
            _ => {}
        }
    }
    quote == Some('\'')
}

/// Returns a home with the facts that GNU parallel stores about a machine. To find them takes as long as the rest of
/// a line.
fn found_out() -> &'static Path {
    static FOUND: OnceLock<TempDir> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".parallel")).unwrap();
        std::fs::write(home.path().join(".parallel/will-cite"), "").unwrap();
        Command::new("parallel").args(["true", ":::", "x"]).env("HOME", home.path()).output().unwrap();
        home
    });
    found.path()
}

/// Runs one line with P as this program, in a folder and a home of its own.
fn run(program: &str, case: &str) -> Output {
    let world = tempfile::tempdir().unwrap();
    let (work, home) = (world.path().join("work"), world.path().join("home"));
    std::fs::create_dir(&work).unwrap();
    std::fs::create_dir(&home).unwrap();
    std::os::unix::fs::symlink(found_out().join(".parallel"), home.join(".parallel")).unwrap();
    let mut command = Command::new("timeout");
    command.args(["60", "bash", "-c", &format!("P() {{ {program} \"$@\"; }}\n{case}")]);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", &home);
    command.env("HOMING_RUNS", home.join("runs")).env("LC_ALL", "C.UTF-8").env("SHELL", "/bin/bash");
    // By default GNU parallel uses the shell of its parent, by other rules in each version.
    command.env("PARALLEL_SHELL", "/bin/bash");
    command.current_dir(&work).stdin(Stdio::null()).output().unwrap()
}

/// Returns those of the cases in which the two programs differ, with both results.
fn differing(cases: &[(String, String)]) -> Vec<(usize, String)> {
    // Load on this machine's disks must not decide how many tasks run at once.
    let homing = format!("'{}' run -q --io off", env!("CARGO_BIN_EXE_homing"));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some((at, (_, case))) =
            Some(next.fetch_add(1, Ordering::Relaxed)).map(|at| (at, cases.get(at))).and_then(|(at, c)| Some((at, c?)))
        {
            let (theirs, ours) = (run("parallel", case), run(&homing, case));
            let same = lines(case, &theirs.stdout) == lines(case, &ours.stdout);
            if theirs.status.code() != ours.status.code() || !same {
                let show = |o: &Output| format!("{:?} {:?}", o.status.code(), String::from_utf8_lossy(&o.stdout));
                let said = String::from_utf8_lossy(&ours.stderr).into_owned();
                found.push((at, format!("{case}\n  parallel {}\n  homing   {} {said}", show(&theirs), show(&ours))));
            }
        }
        found
    };
    let mut found: Vec<(usize, String)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    found.sort();
    found
}

/// Returns the printed lines, in their order if the case requires one. Of two tasks that run at once, either may end
/// first.
fn lines<'a>(case: &str, printed: &'a [u8]) -> Vec<&'a [u8]> {
    let mut lines: Vec<&[u8]> = printed.split_inclusive(|b| *b == b'\n').collect();
    if !case.split_whitespace().any(|w| ["-k", "--keep-order", "-j1", "-P1"].iter().any(|o| w.starts_with(o))) {
        lines.sort_unstable();
    }
    lines
}

fn has_parallel() -> bool {
    let found = Command::new("parallel").arg("--version").output().is_ok_and(|o| o.stdout.starts_with(b"GNU parallel"));
    if !found {
        skipped("GNU parallel is not installed");
    }
    found
}

#[test]
fn the_same_output_status_and_job_log() {
    agree(&cases(AGREE), 100);
}

#[test]
fn the_lines_of_its_manual_do_the_same() {
    agree(&cases(MANUAL), 150);
}

/// Checks that the programs agree on all cases. The table must have `least` cases, or it was not read.
fn agree(cases: &[(String, String)], least: usize) {
    if !has_parallel() {
        return;
    }
    assert!(cases.len() >= least, "the table was read: {}", cases.len());
    let found: Vec<String> = differing(cases).into_iter().map(|(_, text)| text).collect();
    assert!(found.is_empty(), "{} of {} differ:\n{}", found.len(), cases.len(), found.join("\n"));
}

#[test]
fn differences_on_purpose_are_differences_and_in_the_manual() {
    let cases = cases(DIFFER);
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/manual/parallel.md");
    let manual = std::fs::read_to_string(manual).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    for (reason, _) in &cases {
        let told = reason.replace('`', "");
        assert!(manual.replace('`', "").contains(&told), "the manual does not say: {told}");
    }
    if !has_parallel() {
        return;
    }
    let found: Vec<usize> = differing(&cases).into_iter().map(|(at, _)| at).collect();
    let same: Vec<&String> = cases.iter().enumerate().filter(|(i, _)| !found.contains(i)).map(|(_, c)| &c.1).collect();
    assert!(same.is_empty(), "no difference any more: {same:?}");
}
