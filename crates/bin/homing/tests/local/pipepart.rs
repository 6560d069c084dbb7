//! Blocks of a file as the standard input of commands, by the whole program.

use std::process::{Command, Output};

fn homing(dir: &std::path::Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
    command.args(["run", "-q", "-k", "--io", "off", "--pipepart"]).args(words).current_dir(dir);
    command.env("HOMING_RUNS", dir.join("runs")).env("SHELL", "/bin/sh").output().unwrap()
}

#[test]
fn every_byte_is_read_once_and_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let text: String = (0..100_000).map(|n| format!("{n}\n")).collect();
    std::fs::write(dir.path().join("a file"), &text).unwrap();
    let output = homing(dir.path(), &["-a", "a file", "--block", "50k", "cat"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout == text.as_bytes(), "{} of {} bytes", output.stdout.len(), text.len());
}

#[test]
fn a_block_that_cannot_be_read_fails_its_task_and_one_that_is_not_wanted_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let text: String = (0..100_000).map(|n| format!("{n}\n")).collect();
    std::fs::write(dir.path().join("f"), &text).unwrap();
    let some = homing(dir.path(), &["-a", "f", "--block", "300k", "head -1"]);
    assert!(some.status.success() && some.stdout.starts_with(b"0\n"), "{}", String::from_utf8_lossy(&some.stderr));
    // The first task removes the file. Otherwise the second would count nothing and succeed.
    let gone = homing(dir.path(), &["-j1", "-a", "f", "--block", "300k", "cat >/dev/null; rm -f f"]);
    assert_eq!(gone.status.code(), Some(1), "{}", String::from_utf8_lossy(&gone.stderr));
}

#[test]
fn what_is_not_done_is_refused_with_what_does_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("f"), "1\n").unwrap();
    for (words, told) in [
        (&["-a", "f", "-N2", "cat"][..], "--block"),
        (&["-a", "f", "cat", ":::", "x"], "no ':::'"),
        (&["cat"], "-a FILE"),
        (&["-a", "f", "--pipe", "cat"], "cannot be used with '--pipe'"),
        (&["-a", "f", "--sqlmaster", "x", "cat"], "--tasks FILE"),
        (&["-a", "f", "--no-such-option", "cat"], "has no option --no-such-option"),
    ] {
        let output = homing(dir.path(), words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(255) || output.status.code() == Some(2), "{words:?}: {said}");
        assert!(said.contains(told) && !said.contains("similar"), "{words:?}: {said}");
    }
}
