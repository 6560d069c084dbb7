//! The grammar with its help texts. The help of each command begins with examples and ends with the variables that it
//! reads. Man pages are made from the same.
//!
//! Only help and man pages pay for this: parsing uses the bare grammar.

mod facts;
mod man;

use crate::grammar::Cli;
use clap::{Command, CommandFactory};
pub use man::write as write_man;

/// Blocks of `== COMMAND`, then sections: a heading at the margin, indented lines.
const EXAMPLES: &str = include_str!("examples.txt");
/// The commands of the program, by purpose.
const GROUPS: &[(&str, &[&str])] = &[
    ("Run", &["run", "plan", "where", "make", "on", "resume", "runs", "report", "top", "usage", "advise"]),
    ("Jobs", &["sub", "jobs", "kill", "peek", "wait", "lsf"]),
    ("Hosts", &["hosts", "exec", "push", "pull", "nodeset"]),
    ("Administer", &["up", "down", "check", "volume", "snapshot", "bench", "tune", "topology", "power", "cache"]),
    ("Try", &["lab", "completions", "man", "help"]),
];
/// clap's own template, with the commands in groups.
const TEMPLATE_OF_ALL: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Commands:\nGROUPS\nOptions:\n{options}{after-help}";
/// clap's own template, with the examples between usage and options.
const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}";

/// Returns the grammar with examples and facts.
pub fn grammar() -> Command {
    explained(Cli::command(), "homing")
}

/// Returns the sections of a command, by its path: `homing`, `run`, `volume create`.
fn sections_of(path: &str) -> Option<&'static str> {
    let blocks = EXAMPLES.split("== ").skip(1).filter_map(|block| block.split_once('\n'));
    blocks.into_iter().find(|(name, _)| *name == path).map(|(_, text)| text.trim_end())
}

fn explained(command: Command, path: &str) -> Command {
    let names: Vec<String> = visible(&command).map(|c| c.get_name().to_string()).collect();
    let mut command = names.iter().fold(command, |command, name| {
        let below = if path == "homing" { name.clone() } else { format!("{path} {name}") };
        command.mut_subcommand(name, |sub| explained(sub, &below))
    });
    if let Some(text) = sections_of(path) {
        let template =
            if path == "homing" { TEMPLATE_OF_ALL.replace("GROUPS", &grouped(&command)) } else { TEMPLATE.to_string() };
        command = command.help_template(template).before_help(text);
    }
    let own = command.get_after_help().map(ToString::to_string);
    let after = own.into_iter().chain(facts::as_help(path)).collect::<Vec<_>>().join("\n\n");
    if after.is_empty() { command } else { command.after_help(after) }
}

/// Returns a heading for each group, and a line for each command below it.
fn grouped(command: &Command) -> String {
    let about = |name: &str| match command.find_subcommand(name) {
        Some(sub) => {
            let aliases: Vec<&str> = sub.get_visible_aliases().collect();
            let aliases = if aliases.is_empty() { String::new() } else { format!(" [alias: {}]", aliases.join(", ")) };
            format!("{}{aliases}", sub.get_about().map(ToString::to_string).unwrap_or_default())
        }
        None => "Print the help of a command, or a page of the manual: homing help slow".into(),
    };
    let line = |name: &&str| format!("  {name:<11}  {}\n", about(name));
    let group = |(title, names): &(&str, &[&str])| format!(" {title}\n{}", names.iter().map(line).collect::<String>());
    // clap takes braces in a template for its own placeholders.
    GROUPS.iter().map(group).collect::<String>().replace(['{', '}'], "")
}

/// Returns the visible subcommands of a command.
fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(command: &Command, path: &str, all: &mut Vec<String>) {
        for sub in visible(command) {
            let below = format!("{path} {}", sub.get_name()).trim().to_string();
            paths(sub, &below, all);
            all.push(below);
        }
    }

    #[test]
    fn each_command_has_examples_and_each_example_a_command() {
        let mut all = vec!["homing".to_string()];
        paths(&Cli::command(), "", &mut all);
        let without: Vec<_> = all.iter().filter(|path| sections_of(path).is_none()).collect();
        assert!(without.is_empty(), "no examples: {without:?}");
        let told = EXAMPLES.split("== ").skip(1).filter_map(|block| block.lines().next());
        let strange: Vec<_> = told.filter(|name| !all.iter().any(|path| path == name)).collect();
        assert!(strange.is_empty(), "no such command: {strange:?}");
    }

    #[test]
    fn each_command_is_in_one_group() {
        let mut named: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let whole = Cli::command();
        let mut there: Vec<&str> = visible(&whole).map(Command::get_name).chain(["help"]).collect();
        named.sort_unstable();
        there.sort_unstable();
        assert_eq!(named, there);
    }

    #[test]
    fn examples_are_understood() {
        let lines = EXAMPLES.lines().filter_map(|line| line.strip_prefix("    "));
        let calls =
            lines.filter_map(|line| Some(&line[line.find("homing ")?..])).filter(|call| !call.starts_with("homing on"));
        let mut seen = 0;
        for call in calls {
            let call = call.split([';', '>', '<']).next().unwrap().split(" | ").next().unwrap();
            let call = if call.contains('\'') && call.matches('\'').count() % 2 == 1 { continue } else { call };
            let mut words: Vec<std::ffi::OsString> = shlex::split(call).unwrap().into_iter().map(Into::into).collect();
            crate::grammar::make_words_last(&mut words);
            if let Err(e) = Cli::command().try_get_matches_from(words) {
                panic!("{call}: {e}");
            }
            seen += 1;
        }
        assert!(seen > 50, "examples were found: {seen}");
    }
}
