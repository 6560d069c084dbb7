//! The documents are true: the reference is the help, the manual's examples run.

use std::path::Path;
use std::process::{Command, Stdio};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/homing lies two levels down")
}

fn help(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_homing")).args(args).arg("--help").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn reference_is_the_help() {
    let mut page = String::from("# Command reference\n\nGenerated; `UPDATE=1 cargo test -p homing reference`.\n");
    let commands = [
        "",
        "run",
        "plan",
        "resume",
        "runs",
        "report",
        "sub",
        "jobs",
        "kill",
        "peek",
        "wait",
        "lsf",
        "lsf install",
        "lsf remove",
        "where",
        "hosts",
        "exec",
        "push",
        "pull",
        "make",
        "on",
        "nodeset",
        "lab",
        "lab up",
        "lab exec",
        "lab list",
        "lab status",
        "lab down",
        "lab demo",
        "bench",
        "bench volume",
        "volume",
        "volume create",
        "volume list",
        "volume status",
        "volume balance-report",
        "volume mount",
        "volume unmount",
        "volume add-host",
        "volume drain-host",
        "volume set-copies",
        "volume set-stripe",
        "volume heal",
        "volume rebalance",
        "volume delete",
        "volume resume",
        "volume undo",
        "completions",
        "man",
    ];
    for command in commands {
        let words: Vec<&str> = command.split_ascii_whitespace().collect();
        let title = format!("homing {command}");
        page += &format!("\n## {}\n\n```text\n{}\n```\n", title.trim(), help(&words).trim_end());
    }
    let file = root().join("docs/reference.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let told = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(told == page, "docs/reference.md is not what --help says: UPDATE=1 cargo test -p homing reference");
}

#[test]
fn examples_of_the_manual_run() {
    let manual = std::fs::read_to_string(root().join("docs/manual.md")).unwrap();
    let world = tempfile::tempdir().unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_homing")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut ran = 0;
    for block in manual.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let (command, expected) = block.strip_prefix("$ ").unwrap().split_once('\n').unwrap();
        let output = Command::new("sh")
            .args(["-c", command])
            .current_dir(world.path())
            .env("PATH", &path)
            .env("SHELL", "/bin/sh")
            .env("HOMING_RUNS", world.path().join("runs"))
            .env("HOMING_QUEUE", world.path().join("queue"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{command}");
        ran += 1;
    }
    assert!(ran >= 3, "the manual has examples");
}
