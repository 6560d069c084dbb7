//! Lines fit into the columns of `COLUMNS`, for runs that were recorded: `tests/recorded` has two runs on three hosts,
//! one with failures and a label, one that was interrupted.

use crate::world::World;
use std::path::{Path, PathBuf};

const COMMANDS: &[&str] = &[
    "runs",
    "usage",
    "usage --by run --cost",
    "report 20261128-020056-7fx",
    "report 20261128-020057-hfx",
    "report 20261128-020056-7fx --failed",
    "report 20261128-020056-7fx --cost",
    "report 20261128-020056-7fx 20261128-020057-hfx",
    "report --cost 20261128-020056-7fx 20261128-020057-hfx",
    "hosts -w a-host-with-a-long-name.of.a.domain.example.invalid,localhost",
    "check -w localhost,unknown.invalid --only ssh,disks",
    "check -w localhost",
];

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded")
}

/// Returns the output of a command, with `columns` in the environment or without.
fn printed(world: &World, line: &str, columns: Option<&str>) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let mut command = world.command(&words);
    command.env("HOMING_RUNS", recorded()).env("HOMING_SSH", "false").env_remove("COLUMNS");
    command.envs(columns.map(|columns| ("COLUMNS", columns)));
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// Returns the words of a text in order. The marks of a shortened or continued line are none, and a colon or
/// a parenthesis is no part of one.
fn words(text: &str) -> Vec<&str> {
    text.split_whitespace()
        .map(|word| word.trim_matches([':', '(', ')']))
        .filter(|word| !["…", "\\"].contains(word))
        .collect()
}

#[test]
fn lines_fit_into_eighty_columns_and_words_stay_whole() {
    let world = World::new();
    for line in COMMANDS {
        let (whole, narrow) = (printed(&world, line, None), printed(&world, line, Some("80")));
        assert!(!narrow.is_empty(), "homing {line}");
        let known = words(&whole);
        for row in narrow.lines() {
            // A single word, such as a path or a quoted part of a command, may be longer.
            let is_short = row.chars().count() <= 80 || words(row).len() == 1 || row.contains('\'');
            assert!(is_short, "homing {line}: {} columns: {row}", row.chars().count());
        }
        // The measured loads of hosts differ between two looks.
        let is_live = line.starts_with("hosts") || line.starts_with("check");
        let cut = words(&narrow).into_iter().find(|word| !known.contains(word));
        assert!(is_live || cut.is_none(), "homing {line}: {cut:?} is a part of a word");
    }
}

#[test]
fn nothing_is_lost_in_few_columns() {
    let world = World::new();
    for line in COMMANDS.iter().filter(|line| line.starts_with("report") || line.starts_with("usage")) {
        let narrow = printed(&world, line, Some("60"));
        let whole = printed(&world, line, None);
        let lost = words(&whole).into_iter().find(|word| !words(&narrow).contains(word));
        // The change between two runs is in parentheses where they are below each other.
        let lost = lost.filter(|word| !narrow.contains(word));
        assert_eq!(lost, None, "homing {line}:\n{narrow}");
    }
}
