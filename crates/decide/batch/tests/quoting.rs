//! Any bytes, put into a command, reach the program unchanged: through a real shell if the command needs one, else
//! without. Odd words cause an error at worst.

use homing_batch::{Files, InputOptions, Packing, compose, quote};
use homing_locate::candidate_words;
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
    let mut batch =
        compose(&words, InputOptions::default(), &mut Files::new(".".as_ref(), Box::new(std::io::empty())), true)
            .expect("a batch");
    batch.next().expect("one").expect("a task").command
}

/// Generates bytes without zero, rich in those that shells interpret.
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_words_give_tasks_or_an_error(words in proptest::collection::vec(any_word(), 0..8), shuf in any::<Option<u64>>()) {
        let packing = Packing { records: shuf.map(|s| (s % 4) as usize), ..Packing::default() };
        let options = InputOptions { shuf, packing, ..InputOptions::default() };
        if let Ok(batch) = compose(&words, options, &mut Files::new(".".as_ref(), Box::new(&b"1\n2\n"[..])), false) {
            let total = batch.total();
            let tasks: Vec<_> = batch.filter_map(Result::ok).collect();
            prop_assert!(total.is_none_or(|n| n == tasks.len() as u64));
            tasks.iter().for_each(|task| drop(candidate_words(task)));
        }
    }
}

fn any_word() -> impl Strategy<Value = RawText> {
    let known =
        [":::", ":::+", ":::", "::::+", "-", "{}", "{-1.}", "{2//}x", "{%}", "{#}", "{0}", "{-}", "", " ", "a b"];
    prop_oneof![proptest::sample::select(known.to_vec()).prop_map(RawText::from), bytes().prop_map(RawText),]
}
