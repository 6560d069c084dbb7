//! The table of options that do nothing: each row is true of the grammar, and is refused.

use super::table::When::{Counts, Is, With, Without};
use super::*;
use clap::{Arg, CommandFactory};

/// The tests need it a thousand times.
fn grammar() -> Rc<clap::Command> {
    thread_local!(static WHOLE: Rc<clap::Command> = {
        let mut whole = crate::grammar::Cli::command();
        whole.build();
        whole.into()
    });
    WHOLE.with(Clone::clone)
}

fn argument(path: &str, id: &str) -> Arg {
    let whole = grammar();
    let grammar = path.split(' ').fold(&*whole, |grammar, name| grammar.find_subcommand(name).expect(path));
    grammar.get_arguments().find(|argument| argument.get_id() == id).cloned().unwrap_or_else(|| panic!("no {id}"))
}

#[test]
fn each_row_names_arguments_and_values_that_there_are() {
    for idle in TABLE {
        for command in idle.commands {
            idle.options.iter().for_each(|id| drop(argument(command, id)));
            for when in idle.when {
                match when {
                    With(ids) | Without(ids) => ids.iter().for_each(|id| drop(argument(command, id))),
                    Counts(id, _) => drop(argument(command, id)),
                    Is(id, values) => {
                        let possible = argument(command, id).get_possible_values();
                        let named = |value: &str| possible.iter().any(|known| known.matches(value, false));
                        assert!(possible.is_empty() || values.iter().all(|value| named(value)), "{command}: {id}");
                    }
                }
            }
        }
    }
}

/// A word or words that give an argument.
fn words(argument: &Arg, value: Option<&str>) -> Vec<String> {
    // Values that all kinds of parsers of these options take.
    let usual: [(&str, &[&str]); 32] = [
        ("N|P%|auto", &["auto"]),
        ("K", &["2"]),
        ("N", &["2"]),
        ("SECONDS", &["2"]),
        ("SIZE", &["1M"]),
        ("SIZES", &["4K"]),
        ("NUMBERS", &["4"]),
        ("TIME", &["2"]),
        ("NAME=N", &["gpu=1"]),
        ("MIN-MAX", &["2"]),
        ("N|MIN-MAX", &["2"]),
        ("ENDS", &["lr"]),
        ("CODE", &["HC-CLOCK-07"]),
        ("AREA", &["names"]),
        ("KIND", &["nfs"]),
        ("AGE", &["1h"]),
        ("MBIT", &["2"]),
        ("RANGES", &["0"]),
        ("ENGINE", &["local"]),
        ("OLD", &["a", "b"]),
        ("A", &["n1", "n2"]),
        ("CLIENTS", &["2"]),
        ("BS", &["4k"]),
        ("IN_FILES", &["2"]),
        ("RANDOM_SIZE", &["1M"]),
        ("FILES", &["2"]),
        ("COPIES", &["2"]),
        ("TRIALS", &["2"]),
        ("ONLY", &["create"]),
        ("SERVER_BLOCK", &["1M"]),
        ("HOW", &["any"]),
        (":|0", &[":"]),
    ];
    let dashed = argument.get_long().map(|long| format!("--{long}"));
    let dashed = dashed.or_else(|| argument.get_short().map(|short| format!("-{short}")));
    let named = argument.get_value_names().and_then(|names| names.first()).map(|name| name.to_string());
    let taken = argument.get_num_args().unwrap_or_default().takes_values();
    let possible = argument.get_possible_values();
    let values: Vec<String> = match (value, taken, possible.first()) {
        (Some(value), ..) => vec![value.into()],
        (None, false, _) => Vec::new(),
        (None, true, Some(first)) => vec![first.get_name().into()],
        (None, true, None) => {
            let known = usual.iter().find(|(name, _)| named.as_deref() == Some(name));
            known.map_or(&["x"][..], |(_, values)| values).iter().map(|value| value.to_string()).collect()
        }
    };
    match (&dashed, &values[..]) {
        (None, _) => values,
        (Some(dashed), [one]) if argument.get_long().is_some() => vec![format!("{dashed}={one}")],
        (Some(dashed), _) => std::iter::once(dashed.clone()).chain(values).collect(),
    }
}

/// Words that clap wants with an option, and which have nothing to do with it.
const NEEDED: &[(&str, &[&str])] =
    &[("mute", &["--because=x"]), ("not_all", &["--mtu=1500"]), ("ptile", &["-n", "4"]), ("ppn", &["--nodes=2"])];

#[test]
fn each_pair_of_the_table_is_refused_and_both_are_named() {
    let mut seen = 0;
    for idle in TABLE {
        for (command, id) in idle.commands.iter().flat_map(|c| idle.options.iter().map(move |id| (c, id))) {
            let path: Vec<&str> = command.split(' ').collect();
            let mut line: Vec<String> = vec!["homing".into()];
            line.extend(path.iter().map(|word| word.to_string()));
            let mut told = vec![flag(&grammar(), &path, id)];
            for when in idle.when {
                let (other, value) = match when {
                    With(ids) => (ids[0], None),
                    Is(other, values) => (*other, Some(values[0])),
                    Counts(other, _) => (*other, None),
                    Without(ids) => {
                        told.push(flag(&grammar(), &path, ids[0]));
                        continue;
                    }
                };
                told.push(flag(&grammar(), &path, other));
                let other = argument(command, other);
                line.extend(words(&other, value));
                let needs = NEEDED.iter().filter(|(of, _)| other.get_id() == of);
                needs.for_each(|(_, more)| line.extend(more.iter().map(ToString::to_string)));
            }
            let needs = NEEDED.iter().filter(|(of, _)| of == id);
            needs.for_each(|(_, more)| line.extend(more.iter().map(ToString::to_string)));
            line.extend(words(&argument(command, id), None));
            if ["exec", "push", "pull", "report", "where"].contains(command)
                || (*command == "bench volume" && *id != "path" && !line.iter().any(|w| w == "--compare"))
            {
                line.push("x".into());
            }
            let matches = clap::Command::clone(&grammar()).try_get_matches_from(&line);
            let matches = match matches {
                Ok(matches) => matches,
                // clap refuses the pair by itself, and names both.
                Err(e) if e.kind() == clap::error::ErrorKind::ArgumentConflict => continue,
                Err(e) => panic!("{line:?}: {e}"),
            };
            let why = refuse(&matches, &matches, &grammar).expect_err(&format!("{line:?}")).message;
            // Another row may refuse the words that clap wants besides.
            assert!(why.contains(" has no effect "), "{line:?}: {why}");
            assert!(told.iter().any(|flag| why.contains(flag)), "{line:?}: {why}, and not {told:?}");
            seen += 1;
        }
    }
    assert!(seen > 150, "{seen}");
}

#[test]
fn what_the_config_file_says_is_no_fault_of_what_is_typed() {
    let of = |line: &str| clap::Command::clone(&grammar()).try_get_matches_from(line.split(' ')).unwrap();
    let typed = of("homing run --on local true");
    let all = of("homing run --partition=long --on local true");
    assert!(refuse(&typed, &all, &grammar).is_ok());
    assert!(
        refuse(&all, &all, &grammar)
            .is_err_and(|failure| failure.message.contains("--partition has no effect with that value of --on"))
    );
    let typed = of("homing run --partition=long true");
    let all = of("homing run --on=local --partition=long true");
    assert!(refuse(&typed, &all, &grammar).is_err(), "an option that is typed and cannot act");
}
