//! Blocks of standard input as the standard input of commands, by the whole program.

use crate::world::World;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

fn numbers(to: u32) -> String {
    (0..to).map(|n| format!("{n}\n")).collect()
}

/// Returns the files in which runs have kept their standard input.
fn kept(w: &World) -> Vec<PathBuf> {
    let runs = fs::read_dir(w.path().join("runs")).unwrap().flatten();
    runs.map(|run| run.path().join("stdin")).filter(|path| path.exists()).collect()
}

#[test]
fn every_byte_is_read_once_and_in_order() {
    let (w, text) = (World::new(), numbers(300_000));
    let out = w.fed(&["run", "-q", "-k", "--pipe", "--block", "100k", "cat"], &text);
    assert!(out == text, "{} of {} bytes", out.len(), text.len());
    let blocks = w.fed(&["run", "-q", "-k", "--pipe", "--block", "100k", "wc -c"], &text);
    assert!(blocks.lines().count() > 15, "{blocks}");
}

#[test]
fn a_block_may_be_larger_than_a_message_and_a_task_need_not_read_it() {
    let (w, text) = (World::new(), numbers(2_500_000));
    assert!(text.len() > 18 << 20);
    let out = w.fed(&["run", "-q", "-k", "--pipe", "--block", "18M", "wc -c"], &text);
    let sizes: Vec<usize> = out.lines().map(|line| line.parse().unwrap()).collect();
    assert!(sizes.len() == 2 && sizes[0] > 17 << 20 && sizes.iter().sum::<usize>() == text.len(), "{sizes:?}");
    let some = w.fed(&["run", "-q", "--pipe", "--block", "18M", "-j1", "head -1; exit 0"], &text);
    assert_eq!(some.lines().next(), Some("0"));
    // If a task had failed, the input would have been kept.
    w.fed(&["run", "-q", "--pipe", "--block", "18M", "true"], &text);
    assert!(kept(&w).is_empty());
}

#[test]
fn what_is_kept_of_the_input_goes_once_all_of_it_is_done() {
    let w = World::new();
    let task = "cat >> got; test -e go || test $PARALLEL_SEQ != 2";
    let out = w.fed(&["run", "-q", "-j1", "--pipe", "-N2", task], "1\n2\n3\n4\n5\n");
    assert_eq!((out.as_str(), kept(&w).len()), ("", 1));
    fs::write(w.path().join("go"), "").unwrap();
    // No part of the input is given again.
    let again = w.command(&["resume", "--failed", "last"]).stdin(Stdio::null()).output().unwrap();
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    assert_eq!(fs::read_to_string(w.path().join("got")).unwrap(), "1\n2\n3\n4\n5\n3\n4\n");
    assert!(kept(&w).is_empty());
}

#[test]
fn what_is_not_done_is_refused_with_what_does_it() {
    let w = World::new();
    for (words, told) in [
        (&["--pipe", "-a", "f", "cat"][..], "--pipepart -a FILE"),
        (&["--pipe", "cat", ":::", "x"], "no ':::'"),
        (&["--pipe", "--block", "-1", "cat"], "--pipepart -a FILE"),
        (&["--pipe", "-X", "cat"], "-N and -L"),
        (&["--pipepart", "-a", "f", "-r", "cat"], "--pipe leaves them out"),
        (&["--pipe", "--round-robin", "cat"], "a command for each block"),
        (&["--pipe", "--roundrobin", "cat"], "a large --block makes few commands"),
        (&["--pipe", "--cat", "cat"], "/dev/stdin"),
        (&["--plus", "echo {host}", ":::", "a"], "$HOMING_HOST"),
        (&["echo {= syntax( =}", ":::", "a"], "syntax error"),
        (&["--rpl", "{:(x)} s/$$1//", "echo {:x}", ":::", "a"], "a name with a pattern is not supported"),
        (&["--sqlmaster", "x", "echo", ":::", "a"], "--tasks FILE: one JSON object a line, and --joblog"),
        (&["--block", "1k", "cat"], "--pipe"),
    ] {
        let output = w.homing(&[&["run"], words].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!([Some(255), Some(2)].contains(&output.status.code()) && said.contains(told), "{words:?}: {said}");
    }
    // One word of each kind that GNU parallel's manual has and homing lacks.
    for word in ["--shard", "--tf", "--tmpdir", "--sql-master", "--semaphore-name", "--tty", "-V", "-p"] {
        let output = w.homing(&["run", word, "x", ":::", "a"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(255) && said.contains("is not supported; instead: "), "{word}: {said}");
    }
    assert!(!w.path().join("runs").exists() || fs::read_dir(w.path().join("runs")).unwrap().next().is_none());
}
