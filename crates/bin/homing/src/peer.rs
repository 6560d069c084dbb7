//! Options of a program that homing behaves like, as rows of a table. The parser, the help, the refusals and the
//! manual's table come from the rows.

use clap::{Arg, ArgAction, ArgMatches, Command};
use homing_model::Failure;

/// An option of the other program.
#[derive(Debug)]
pub struct PeerOption {
    /// Its name in the grammar.
    pub id: &'static str,
    /// Its names, with blanks between them: `-b --dshbak`. The help has the first letter and the first long name.
    pub names: &'static str,
    /// The name of its argument. Empty: it has none.
    pub argument: &'static str,
    /// Its meaning.
    pub means: Meaning,
}

/// The meaning of an option.
#[derive(Clone, Copy, Debug)]
pub enum Meaning {
    /// It acts as described.
    Acts(&'static str),
    /// As [`Meaning::Acts`], and it may be given several times.
    Repeats(&'static str),
    /// It is not here. The text names the replacement.
    Absent(&'static str),
}

/// Adds the options to a grammar, in their order. Absent ones are hidden.
pub fn add(command: Command, table: &[PeerOption]) -> Command {
    table.iter().fold(command, |command, row| command.arg(argument(row)))
}

fn argument(row: &PeerOption) -> Arg {
    let mut arg = Arg::new(row.id);
    let letters = row.names.split(' ').filter_map(letter);
    for (nth, letter) in letters.enumerate() {
        arg = if nth == 0 { arg.short(letter) } else { arg.short_alias(letter) };
    }
    for (nth, long) in row.names.split(' ').filter_map(|name| name.strip_prefix("--")).enumerate() {
        arg = if nth == 0 { arg.long(long) } else { arg.alias(long) };
    }
    arg = match (row.argument, row.means) {
        ("", _) => arg.action(ArgAction::SetTrue),
        (value, Meaning::Repeats(_)) => arg.action(ArgAction::Append).value_name(value),
        (value, _) => arg.action(ArgAction::Set).value_name(value),
    };
    match row.means {
        Meaning::Acts(text) | Meaning::Repeats(text) => arg.help(text),
        Meaning::Absent(_) => arg.hide(true).overrides_with(row.id),
    }
}

/// Returns the letter of `-x`.
fn letter(name: &str) -> Option<char> {
    let mut letters = name.strip_prefix('-')?.chars();
    letters.next().filter(|letter| *letter != '-' && letters.next().is_none())
}

/// Refuses an option that is not here, and names the replacement. `whose`: the other program.
pub fn refuse(found: &ArgMatches, table: &[PeerOption], whose: &str) -> Result<(), Failure> {
    for row in table {
        if let Meaning::Absent(instead) = row.means
            && found.value_source(row.id) == Some(clap::parser::ValueSource::CommandLine)
        {
            let names = row.names.replace(' ', ", ");
            return Err(Failure::usage(format!("{whose}'s {names} is not supported")).hint(instead));
        }
    }
    Ok(())
}

/// Returns the value of an option with one argument.
pub fn value(found: &ArgMatches, id: &str) -> Option<String> {
    found.get_one::<String>(id).cloned()
}

/// Returns the values of an option that may be repeated.
pub fn values(found: &ArgMatches, id: &str) -> Vec<String> {
    found.get_many::<String>(id).into_iter().flatten().cloned().collect()
}

#[cfg(test)]
pub mod manual_tests;
