//! The worker as a separate program.

use homing_model::HostFacts;
use std::io::BufReader;
use std::process::{Command, Stdio};

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_homing-worker"))
}

#[test]
fn it_says_hello_and_ends_with_its_input() {
    let mut child = program().arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut from = BufReader::new(child.stdout.take().unwrap());
    let facts: HostFacts = homing_launch::wire::receive_hello(&mut from, |_| ()).unwrap();
    assert_eq!(facts.arch, std::env::consts::ARCH);
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(homing_launch::wire::ALL_ENDED));
}

#[test]
fn it_is_nothing_but_a_worker() {
    for words in [&["run", "true"][..], &[]] {
        let output = program().args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(255));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(homing_launch::wire::release()) && said.contains("worker"), "{said}");
    }
}
