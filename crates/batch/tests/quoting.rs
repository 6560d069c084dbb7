//! Any bytes, put into a command, reach the program unchanged: through a real
//! shell when the command needs one, and without one when not.

use homing_batch::{InputOptions, compose, quote};
use homing_model::{Command, RawText};
use proptest::prelude::*;
use std::os::unix::ffi::OsStringExt;
use std::process;

fn through_shell(line: Vec<u8>) -> Vec<u8> {
    let line = std::ffi::OsString::from_vec(line);
    let output = process::Command::new("/bin/sh").arg("-c").arg(line).output().expect("sh starts");
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

fn command(template: &str, value: &[u8]) -> Command {
    let words = [template.into(), ":::".into(), RawText(value.to_vec())];
    let mut batch = compose(&words, InputOptions::default(), Box::new(std::io::empty()), true).expect("a batch");
    batch.next().expect("one").expect("a task").command
}

/// Bytes without zero, rich in those that shells look at.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let special = proptest::sample::select(b"'\"\\\n $`!*?[]{}~#&|;<>()=%-".to_vec());
    proptest::collection::vec(prop_oneof![1u8..=255, special], 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_quoted_word_survives_the_shell(value in bytes()) {
        prop_assert_eq!(through_shell([b"printf %s ".to_vec(), quote(&value)].concat()), value);
    }

    #[test]
    fn a_value_is_never_a_shell_word(value in bytes()) {
        match command("printf '%s' {}", &value) {
            Command::Shell(line) => prop_assert_eq!(through_shell(line.0), value.clone()),
            Command::Argv(_) => prop_assert!(false, "quotes need a shell"),
        }
        prop_assert_eq!(command("gzip {}", &value), Command::Argv(vec!["gzip".into(), RawText(value)]));
    }
}
