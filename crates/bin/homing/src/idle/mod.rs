//! Refuses options that do nothing beside others, or without them, so that no user relies on an option without
//! effect.
//!
//! clap's own `conflicts_with` acts between two options whatever their values, and also on options of the user's
//! config file. Here only typed options are refused, and the value of the other option counts, too.

mod table;

use clap::ArgMatches;
use clap::parser::ValueSource;
use homing_model::Failure;
use std::ffi::OsString;
use std::rc::Rc;
use table::{TABLE, When};

/// Makes the grammar of all commands. That takes longer than the rest of a start, and only a message needs it.
pub type MakeGrammar<'a> = &'a dyn Fn() -> Rc<clap::Command>;

/// Refuses a typed option that does nothing. `all`: with the options of the user's config file.
pub fn refuse(typed: &ArgMatches, all: &ArgMatches, grammar: MakeGrammar) -> Result<(), Failure> {
    let (mut path, mut typed, mut all) = (Vec::new(), typed, all);
    while let (Some((name, of_typed)), Some((_, of_all))) = (typed.subcommand(), all.subcommand()) {
        path.push(name);
        (typed, all) = (of_typed, of_all);
    }
    let command = path.join(" ");
    for idle in TABLE.iter().filter(|idle| idle.commands.contains(&command.as_str())) {
        let Some(option) = idle.options.iter().find(|option| is_given(typed, option)) else { continue };
        let Some(beside) = idle.when.iter().map(|when| when.holds(all)).collect::<Option<Vec<_>>>() else { continue };
        let words: Vec<String> =
            beside.iter().map(|(word, other)| format!("{word} {}", flag(&grammar(), &path, other))).collect();
        let beside = if words.is_empty() { "here".into() } else { words.join(" and ") };
        return Err(
            Failure::usage(format!("{} has no effect {beside}", flag(&grammar(), &path, option))).hint(idle.instead)
        );
    }
    Ok(())
}

/// Refuses idle options among the words of `command`, which run later. The command itself reports other faults.
pub fn refuse_words(command: clap::Command, words: &[OsString]) -> Result<(), Failure> {
    let line = ["homing", command.get_name()].map(OsString::from).into_iter().chain(words.iter().cloned());
    let grammar = Rc::new(clap::Command::new("homing").subcommand(command.clone()));
    let found = clap::Command::clone(&grammar).try_get_matches_from(line);
    found.map_or(Ok(()), |found| refuse(&found, &found, &|| grammar.clone()))
}

fn is_given(matches: &ArgMatches, id: &str) -> bool {
    let known = matches.ids().any(|known| known.as_str() == id);
    known && matches.value_source(id) == Some(ValueSource::CommandLine)
}

impl When {
    /// Returns the words for a message, with the option that they are about. `None` if the condition does not hold.
    fn holds(&self, matches: &ArgMatches) -> Option<(&'static str, &'static str)> {
        let given = |id: &&&'static str| is_given(matches, id);
        let values = |id: &str| -> Vec<String> {
            let raw = matches.ids().any(|known| known.as_str() == id).then(|| matches.get_raw(id)).flatten();
            raw.into_iter().flatten().map(|value| value.to_string_lossy().into_owned()).collect()
        };
        match *self {
            When::With(ids) => Some(("with", ids.iter().find(given)?)),
            When::Without(ids) => ids.iter().find(given).is_none().then(|| ("without", ids[0])),
            When::Is(id, of) => {
                values(id).iter().any(|value| of.contains(&value.as_str())).then_some(("with that value of", id))
            }
            When::Counts(id, count) => (values(id).len() == count).then_some(("with the hosts of", id)),
        }
    }
}

/// Returns an argument as it is typed.
fn flag(whole: &clap::Command, path: &[&str], id: &str) -> String {
    let grammar = path.iter().fold(whole, |grammar, name| grammar.find_subcommand(name).unwrap_or(grammar));
    let argument = grammar.get_arguments().find(|argument| argument.get_id() == id);
    let long = argument.and_then(|argument| Some(format!("--{}", argument.get_long()?)));
    let short = || argument.and_then(|argument| Some(format!("-{}", argument.get_short()?)));
    let value = || argument.and_then(|argument| argument.get_value_names()?.first().map(ToString::to_string));
    long.or_else(short).or_else(value).unwrap_or_else(|| format!("--{}", id.replace('_', "-")))
}

#[cfg(test)]
mod tests;
