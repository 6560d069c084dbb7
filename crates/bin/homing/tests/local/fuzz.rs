//! The properties of each parser that hold for any bytes (`fuzz/src/lib.rs`). Tries the corpora and bytes that are
//! near to them. `make fuzz` looks much longer.

#[path = "../../../../../fuzz/src/lib.rs"]
mod properties;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::path::Path;

/// Returns the kept inputs of a target: some were written by hand, others failed once.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus").join(target);
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.map(|file| std::fs::read(file).unwrap()).collect()
}

/// One change: these bytes replace so many at that point.
#[derive(Clone, Debug)]
struct Edit {
    at: prop::sample::Index,
    cut: usize,
    put: Vec<u8>,
}

fn edit() -> impl Strategy<Value = Edit> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..6),
        "[0-9\\[\\]{},:&!|<>=\"'/-]{1,6}".prop_map(String::into_bytes),
        Just(b"18446744073709551616".to_vec()),
    ];
    (any::<prop::sample::Index>(), 0..9usize, bytes).prop_map(|(at, cut, put)| Edit { at, cut, put })
}

fn near(corpus: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    (prop::sample::select(corpus), prop::collection::vec(edit(), 1..5)).prop_map(|(mut bytes, edits)| {
        for Edit { at, cut, put } in edits {
            let at = at.index(bytes.len() + 1);
            let end = (at + cut).min(bytes.len());
            bytes.splice(at..end, put);
        }
        bytes
    })
}

#[test]
fn no_bytes_break_a_parser() {
    for (name, holds) in properties::TARGETS {
        let corpus = corpus(name);
        assert!(!corpus.is_empty(), "{name} has no corpus");
        corpus.iter().for_each(|bytes| holds(bytes));
        let mut runner = TestRunner::new(Config { cases: 300, failure_persistence: None, ..Config::default() });
        let outcome = runner.run(&near(corpus), |bytes| {
            holds(&bytes);
            Ok(())
        });
        outcome.unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}
