//! Reports the fault of a wrong command line in the style of all other errors, with the probable intention.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use homing_model::Failure;

/// Names of commands in other programs, with the commands to use here.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (&["ls", "list", "ps"], "homing runs lists runs, homing jobs lists jobs, homing hosts lists hosts"),
    (&["status", "info", "stat"], "homing top shows what a run does, homing jobs lists jobs, homing hosts shows hosts"),
    (&["log", "logs", "output"], "homing peek ID shows what a job printed, homing report RUN shows a run"),
    (&["history"], "homing runs lists runs, homing hosts --history shows what hosts did"),
    (&["submit", "batch", "sbatch", "queue"], "homing sub submits a job, homing jobs lists them"),
    (&["cancel", "stop", "abort", "scancel"], "homing kill ID ends a job; Ctrl-C ends a run"),
    (&["config", "init", "configure"], "homing hosts --init 'n[1-4]' writes a first cluster.toml"),
    (
        &["install", "setup", "upgrade", "update"],
        "homing up sets hosts up; docs/manual/install.md is about homing itself",
    ),
    (&["ssh", "shell", "clush", "pdsh"], "homing exec -w 'n[1-4]' COMMAND runs a command on hosts"),
    (&["cp", "copy", "scp", "rsync"], "homing push copies files to hosts, homing pull fetches them"),
    (&["compare", "diff"], "homing report RUN RUN compares runs"),
    (&["backup"], "homing snapshot copies a folder's state"),
    (&["doctor", "verify"], "homing check tells what is wrong with a cluster"),
    (&["version"], "homing --version"),
];

/// Returns a wrong command line as an error of homing. `typed`: the words after the program's name.
pub fn failure(error: &clap::Error, grammar: &Command, typed: &[String]) -> Failure {
    let command = command_of(grammar, typed);
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand)
    {
        return unknown_command(grammar, &command, given);
    }
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg)
    {
        return unknown_option(grammar, &command, given);
    }
    let text = error.render().to_string();
    let first = text.trim().split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    let message = first.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    Failure::usage(message).hint(format!("{command} --help"))
}

fn unknown_command(grammar: &Command, command: &str, given: &str) -> Failure {
    let below = descend(grammar, command);
    let names: Vec<&str> = below.get_subcommands().filter(|c| !c.is_hide_set()).map(Command::get_name).collect();
    let failure = Failure::usage(format!("{command} has no command {given:?}"));
    let known = ELSEWHERE.iter().find(|(words, _)| command == "homing" && words.contains(&given));
    match (known, nearest(given, &names)) {
        (Some((_, instead)), _) => failure.hint(instead),
        (None, Some(near)) => failure.hint(format!("{command} {near}")),
        (None, None) => failure.hint(format!("{command} --help")),
    }
}

fn unknown_option(grammar: &Command, command: &str, given: &str) -> Failure {
    let below = descend(grammar, command);
    let longs: Vec<String> = below
        .get_arguments()
        .filter(|arg| !arg.is_hide_set())
        .filter_map(|arg| Some(format!("--{}", arg.get_long()?)))
        .collect();
    let name = given.split('=').next().unwrap_or_default();
    let failure = Failure::usage(format!("{command} has no option {name}"));
    let longer: Vec<&String> = longs.iter().filter(|long| long.starts_with(name) && name.len() > 3).collect();
    let names: Vec<&str> = longs.iter().map(String::as_str).collect();
    match (&longer[..], nearest(name, &names)) {
        ([one], _) => failure.hint(format!("{command} {one}")),
        (_, Some(near)) if name.starts_with("--") => failure.hint(format!("{command} {near}")),
        _ => failure.hint(format!("{command} --help")),
    }
}

/// Returns the names of commands among the typed words.
fn path<'t>(grammar: &Command, typed: &'t [String]) -> Vec<&'t str> {
    let (mut at, mut path) = (grammar, Vec::new());
    for word in typed.iter().filter(|word| !word.starts_with('-')) {
        let Some(below) = at.find_subcommand(word) else { break };
        path.push(word.as_str());
        at = below;
    }
    path
}

fn command_of(grammar: &Command, typed: &[String]) -> String {
    ["homing"].into_iter().chain(path(grammar, typed)).collect::<Vec<_>>().join(" ")
}

fn descend<'g>(grammar: &'g Command, command: &str) -> &'g Command {
    command.split(' ').skip(1).fold(grammar, |at, name| at.find_subcommand(name).unwrap_or(at))
}

/// Returns the name that differs least: by one letter, or by at most a third of the letters.
fn nearest<'n>(given: &str, names: &[&'n str]) -> Option<&'n str> {
    let (letters, name) =
        names.iter().map(|name| (distance(given, name), *name)).min_by_key(|(letters, _)| *letters)?;
    (letters <= 1.max(given.chars().count() / 3)).then_some(name)
}

/// Counts the letters to change, add, leave out or swap with their neighbour (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn told(line: &str) -> (String, String) {
        let grammar = crate::grammar::Cli::command();
        let words: Vec<String> = line.split(' ').map(String::from).collect();
        let error =
            grammar.clone().try_get_matches_from(["homing"].into_iter().chain(line.split(' '))).expect_err(line);
        let failure = failure(&error, &grammar, &words);
        (failure.message, failure.hint.unwrap_or_default())
    }

    #[test]
    fn a_mistyped_command_leads_to_a_sensible_one_and_never_to_a_hidden_one() {
        for (line, meant) in [
            ("rnu", "homing run"),
            ("repotr last", "homing report"),
            ("snapshto", "homing snapshot"),
            ("ls", "homing runs lists runs"),
            ("status", "homing top shows"),
            ("config", "homing hosts --init"),
            ("upgrade", "homing up sets"),
            ("volume creat x", "homing volume create"),
            ("lsf-attack", "homing --help"),
            ("qqqqqq", "homing --help"),
        ] {
            let (message, hint) = told(line);
            assert!(hint.starts_with(meant), "{line}: {message} / {hint}");
            assert!(!hint.contains("lsf-attach") && message.contains("has no command"), "{line}: {message} / {hint}");
        }
    }

    #[test]
    fn a_mistyped_option_leads_to_one_that_there_is() {
        for (line, meant) in [
            ("report --faild", "homing report --failed"),
            ("exec --on n1 true", "homing exec --"),
            ("runs --sinc 1d", "homing runs --since"),
            ("volume list --jsn", "homing volume list --json"),
        ] {
            let (message, hint) = told(line);
            assert!(hint.starts_with(meant) && !hint.contains('_'), "{line}: {message} / {hint}");
            assert!(message.contains("has no option --"), "{message}");
        }
        let (message, hint) = told("down");
        assert!(message.contains("HOST") && hint == "homing down --help", "{message} / {hint}");
    }

    #[test]
    fn swapped_letters_are_one_mistake() {
        assert_eq!((distance("rnu", "run"), distance("run", "runs"), distance("", "ab")), (1, 1, 2));
        assert_eq!(nearest("zzzz", &["run", "runs"]), None);
    }
}
