//! Reports the fault of a wrong command line in the style of all other errors, with the probable intention.

use crate::cmd::lsf;
use crate::nearest::{near_option, nearest};
use crate::pages;
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use homing_batch::BatchError;
use homing_model::Failure;
use std::error::Error;

/// Names of commands in other programs, with the commands to use here.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (
        &["ls", "list", "ps", "squeue", "qstat"],
        "homing runs lists runs, homing jobs lists jobs, homing hosts lists hosts",
    ),
    (&["status", "info", "stat"], "homing top shows a run, homing jobs lists jobs, homing hosts shows hosts"),
    (&["log", "logs", "output"], "homing peek ID prints a job's output, homing report RUN shows a run"),
    (&["history"], "homing runs lists runs, homing hosts --history shows the load of hosts"),
    (&["retry", "rerun", "restart"], "homing resume --failed RUN runs failed tasks again"),
    (&["monitor", "dashboard", "progress"], "homing top shows a run"),
    (&["nodes", "machines", "inventory", "sinfo"], "homing hosts shows hosts and their load"),
    (&["parallel", "xargs", "map"], "homing run takes GNU parallel's options: homing help parallel"),
    (&["clean", "prune", "gc"], "homing runs --prune removes old runs"),
    (&["drain", "undrain"], "homing down HOST removes a host from the cluster, homing volume drain-host from a volume"),
    (&["undo", "revert", "rollback"], "homing up --undo, homing down, homing volume undo NAME"),
    (&["docs", "doc", "manual", "topics"], "homing help TOPIC prints a page of the manual"),
    (&["topo"], "homing topology"),
    (&["submit", "batch", "sbatch", "queue"], "homing sub submits a job, homing jobs lists them"),
    (&["cancel", "stop", "abort", "scancel"], "homing kill ID ends a job; Ctrl-C ends a run"),
    (&["config", "init", "configure"], "homing hosts --init 'n[1-4]' writes a first cluster.toml"),
    (
        &["install", "setup", "upgrade", "update"],
        "homing up sets hosts up; homing help install explains how to install homing",
    ),
    (&["ssh", "shell", "clush", "pdsh"], "homing exec -w 'n[1-4]' COMMAND runs a command on hosts"),
    (&["cp", "copy", "scp", "rsync"], "homing push copies files to hosts, homing pull fetches them"),
    (&["compare", "diff"], "homing report RUN RUN compares runs"),
    (&["backup"], "homing snapshot copies a folder's state"),
    (&["doctor", "verify"], "homing check finds the faults of a cluster"),
    (&["version"], "homing --version"),
];

/// The replacement of LSF's commands, which are no commands of homing.
const LSF: &str = "homing lsf install DIR puts LSF's commands into DIR";

/// Names of subcommands in other programs, below one of homing's commands.
const ELSEWHERE_BELOW: &[(&str, &[&str], &str)] = &[
    ("homing volume", &["grow", "expand", "add", "extend"], "homing volume add-host NAME HOST"),
    ("homing volume", &["shrink", "remove-host"], "homing volume drain-host NAME HOST"),
    ("homing volume", &["ls"], "homing volume list"),
    ("homing volume", &["info", "show"], "homing volume status NAME"),
    ("homing volume", &["rm", "remove", "destroy"], "homing volume delete NAME"),
    ("homing lab", &["start", "create", "new"], "homing lab up"),
    ("homing lab", &["stop", "destroy", "rm", "delete"], "homing lab down"),
    ("homing lab", &["ls"], "homing lab list"),
    ("homing lab", &["ssh", "login", "enter"], "homing lab shell HOST"),
    ("homing snapshot", &["ls", "snapshots"], "homing snapshot list"),
    ("homing snapshot", &["prune", "forget"], "homing snapshot expire"),
    ("homing snapshot", &["check"], "homing snapshot verify"),
];

/// Returns the replacement for another program's name of a command.
fn instead(command: &str, given: &str) -> Option<&'static str> {
    if ["homing", "homing lsf"].contains(&command) && lsf::names().any(|name| name == given) {
        return Some(LSF);
    }
    let below = ELSEWHERE_BELOW.iter().find(|(of, words, _)| command == *of && words.contains(&given));
    let top = ELSEWHERE.iter().find(|(words, _)| command == "homing" && words.contains(&given));
    below.map(|(.., instead)| *instead).or(top.map(|(_, instead)| *instead))
}

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
        return misplaced(grammar, typed, given).unwrap_or_else(|| unknown_option(grammar, typed, given));
    }
    if let Some(failure) = unknown_value(error, &command).or_else(|| value_of_flag(error, &command)) {
        return failure;
    }
    let text = error.render().to_string();
    let first = text.trim().split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    let message = first.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    if error.kind() == ErrorKind::MissingRequiredArgument && command == "homing run" && message.contains("--joblog") {
        return Failure::usage("--resume and --retry-failed need --joblog FILE, as in GNU parallel")
            .hint("homing resume RUN continues a run, homing resume --failed RUN its failed tasks, without a job log");
    }
    // A value's own error names its option: `-u '5x': a time is ...`.
    let own = error.source().and_then(|source| source.downcast_ref::<BatchError>()).map(BatchError::to_string);
    Failure::usage(own.unwrap_or(message)).hint(format!("{command} --help"))
}

/// Returns the failure for `--json=FILE` of a command that prints the document.
fn value_of_flag(error: &clap::Error, command: &str) -> Option<Failure> {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.kind() != ErrorKind::TooManyValues || flag != "--json" {
        return None;
    }
    Some(Failure::usage(format!("{flag} of {command} takes no value")).hint(format!("{command} {flag} > FILE")))
}

/// The most values that a message lists. Codes of findings are a page.
const LISTED: usize = 12;

/// Returns the failure for a value that is none of many.
fn unknown_value(error: &clap::Error, command: &str) -> Option<Failure> {
    let (ContextValue::String(arg), ContextValue::String(given), ContextValue::Strings(values)) = (
        error.get(ContextKind::InvalidArg)?,
        error.get(ContextKind::InvalidValue)?,
        error.get(ContextKind::ValidValue)?,
    ) else {
        return None;
    };
    if values.len() <= LISTED {
        return None;
    }
    let option = arg.split(' ').next().unwrap_or_default();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let hint = match nearest(&given.to_uppercase(), &values) {
        Some(near) => format!("{command} {option} {near}"),
        None if command == "homing check" => "homing help check-codes".into(),
        None => format!("{command} --help"),
    };
    Some(Failure::usage(format!("{option}: {given:?} is none of its {} values", values.len())).hint(hint))
}

fn unknown_command(grammar: &Command, command: &str, given: &str) -> Failure {
    let below = descend(grammar, command);
    let names: Vec<&str> = below.get_subcommands().filter(|c| !c.is_hide_set()).map(Command::get_name).collect();
    if command == "homing help" {
        let commands = grammar.get_subcommands().filter(|c| !c.is_hide_set()).map(Command::get_name);
        let topics: Vec<&str> = commands.chain(pages::names().map(|name| name as &str)).collect();
        return pages::unknown(given, nearest(given, &topics));
    }
    let failure = Failure::usage(format!("{command} has no command {given:?}"));
    match (instead(command, given), nearest(given, &names)) {
        (Some(instead), _) => failure.hint(instead),
        (None, Some(near)) => failure.hint(format!("{command} {near}")),
        (None, None) => failure.hint(format!("{command} --help")),
    }
}

/// Returns the replacement of a letter that other commands of homing have, if the command has a word for it.
fn letter_instead(command: &Command, name: &str) -> Option<&'static str> {
    let has = |of: &dyn Fn(&clap::Arg) -> bool| command.get_arguments().any(|arg| !arg.is_hide_set() && of(arg));
    let has_long = |long: &str| has(&|arg| arg.get_long() == Some(long));
    match name {
        "-w" if has_long("hosts") => Some("--hosts NODESET"),
        "-n" if has_long("dry-run") => Some("--dry-run"),
        "--timeout" if has_long("command-timeout") => Some("-u TIME"),
        _ => None,
    }
}

/// Returns the failure for an option of a command that is typed before the command.
fn misplaced(grammar: &Command, typed: &[String], given: &str) -> Option<Failure> {
    let name = given.split('=').next().filter(|name| name.starts_with('-'))?;
    let at = typed.iter().position(|word| is_word_of(word, name))?;
    let (before, behind) = typed.split_at(at);
    let outer = command_of(grammar, before);
    let level = descend(grammar, &outer);
    // The value of the option may be between it and the command.
    let next = behind.iter().position(|word| level.find_subcommand(word).is_some())?;
    let command = [vec![outer.as_str()], path(level, &behind[next..])].concat().join(" ");
    let failure = Failure::usage(format!("{name} comes after the command"));
    has_option(descend(grammar, &command), name).then(|| failure.hint(format!("{command} {name}")))
}

/// Whether a typed word gives the option, alone, with its value, or among other letters.
fn is_word_of(word: &str, name: &str) -> bool {
    match name.strip_prefix("--") {
        Some(_) => word.split('=').next() == Some(name),
        None => {
            word.starts_with('-') && !word.starts_with("--") && name.chars().nth(1).is_some_and(|c| word.contains(c))
        }
    }
}

fn has_option(command: &Command, name: &str) -> bool {
    let is = |arg: &clap::Arg| match name.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long) || arg.get_all_aliases().is_some_and(|all| all.contains(&long)),
        None => arg.get_short().is_some() && arg.get_short() == name.chars().nth(1),
    };
    command.get_arguments().any(|arg| !arg.is_hide_set() && is(arg))
}

fn unknown_option(grammar: &Command, typed: &[String], given: &str) -> Failure {
    let command = &command_of(grammar, typed);
    let below = descend(grammar, command);
    if !given.starts_with('-') {
        let failure = Failure::usage(format!("{command} takes no argument {given:?}"));
        // Hosts of a volume are an option of their own: -w names the hosts that are queried about it.
        if command.starts_with("homing volume ") && has_option(below, "--on") {
            let before: Vec<&str> = typed.iter().map(String::as_str).take_while(|word| *word != given).collect();
            return failure.hint(format!("homing {} --on {given}", before.join(" ")));
        }
        let takes_hosts = below.get_arguments().any(|arg| arg.get_short() == Some('w'));
        return failure.hint(if takes_hosts { format!("{command} -w {given}") } else { format!("{command} --help") });
    }
    let name = given.split('=').next().unwrap_or_default();
    if let Some(instead) = letter_instead(below, name) {
        let failure = Failure::usage(format!("{command} has no option {name}"));
        return failure.hint(format!("{command} {instead}"));
    }
    let failure = Failure::usage(format!("{command} has no option {name}"));
    match near_option(below, name) {
        Some(near) => failure.hint(format!("{command} {near}")),
        None => failure.hint(format!("{command} --help")),
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn message_and_hint(line: &str) -> (String, String) {
        let mut grammar = crate::grammar::Cli::command();
        grammar.build();
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
            ("volume grow data n5", "homing volume add-host"),
            ("lab ssh n1", "homing lab shell"),
            ("lsload", "homing lsf install"),
            ("lsf bsub", "homing lsf install"),
            ("retry", "homing resume --failed"),
            ("lsf-attack", "homing --help"),
            ("qqqqqq", "homing --help"),
        ] {
            let (message, hint) = message_and_hint(line);
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
            let (message, hint) = message_and_hint(line);
            assert!(hint.starts_with(meant) && !hint.contains('_'), "{line}: {message} / {hint}");
            assert!(message.contains("has no option --"), "{message}");
        }
        let (message, hint) = message_and_hint("down");
        assert!(message.contains("HOST") && hint == "homing down --help", "{message} / {hint}");
    }

    #[test]
    fn an_option_before_its_command_belongs_behind_it() {
        for (line, meant) in [
            ("--json runs", "homing runs --json"),
            ("--json=x report last", "homing report --json"),
            ("--json lab list", "homing lab list --json"),
            ("lab --json list", "homing lab list --json"),
            ("volume --json list", "homing volume list --json"),
            ("bench --json net", "homing bench net --json"),
            ("power --json status", "homing power status --json"),
            ("-w n1 exec true", "homing exec -w"),
        ] {
            let (message, hint) = message_and_hint(line);
            let name = if line.contains("--json") { "--json" } else { "-w" };
            assert_eq!((message, hint.as_str()), (format!("{name} comes after the command"), meant), "{line}");
        }
        // A command that lacks the option is named as before, and so is a mistake behind the command.
        assert!(message_and_hint("--nonsense runs").0.contains("homing runs has no option --nonsense"));
        assert!(message_and_hint("volume list --jsn").0.contains("homing volume list has no option --jsn"));
    }

    #[test]
    fn a_letter_of_another_command_leads_to_the_word_for_it() {
        for (line, meant) in [
            ("volume create data -w n1", "homing volume create --hosts NODESET"),
            ("up -n", "homing up --dry-run"),
            ("exec --timeout 5 true", "homing exec -u TIME"),
            ("report -w n1", "homing report --help"),
        ] {
            let (message, hint) = message_and_hint(line);
            assert!(hint == meant && message.contains("has no option -"), "{line}: {message} / {hint}");
        }
    }

    #[test]
    fn a_value_of_an_option_is_refused_in_the_words_of_its_kind() {
        for line in ["exec -u 5x -w n1 true", "up --timeout 5x", "where --fs-timeout 5x f", "run --fs-timeout 5x f"] {
            let (message, _) = message_and_hint(line);
            assert!(message.contains(" '5x': a time is seconds, or like 90s, 2m"), "{line}: {message}");
            assert!(!message.contains("invalid"), "{line}: {message}");
        }
        assert!(message_and_hint("where --fs-timeout 0 f").0.contains("at least 1 s"));
    }

    #[test]
    fn a_file_for_a_document_is_the_shells() {
        assert_eq!(message_and_hint("report --json=x").1, "homing report --json > FILE");
    }

    #[test]
    fn one_of_many_values_leads_to_the_similar_one_or_to_their_page() {
        let (message, hint) = message_and_hint("check --explain hc-name-1");
        assert!(message.starts_with("--explain: \"hc-name-1\" is none of its ") && message.len() < 80, "{message}");
        assert_eq!(hint, "homing check --explain HC-NAME-01");
        assert_eq!(message_and_hint("check --explain foo").1, "homing help check-codes");
        assert!(message_and_hint("check --only foo").0.contains("clocks"));
    }

    #[test]
    fn hints_name_commands_that_there_are() {
        let grammar = crate::grammar::Cli::command();
        let hints = ELSEWHERE_BELOW.iter().map(|(.., hint)| *hint).chain(ELSEWHERE.iter().map(|(_, hint)| *hint));
        for hint in hints.filter(|hint| !hint.contains("homing help") && !hint.contains("--version")) {
            let words: Vec<String> = hint.split(' ').skip(1).map(String::from).collect();
            assert!(!path(&grammar, &words).is_empty(), "{hint}");
        }
        for (command, _, hint) in ELSEWHERE_BELOW {
            let words: Vec<String> = hint.split(' ').skip(1).map(String::from).collect();
            assert!(path(&grammar, &words).len() == 2 && hint.starts_with(command), "{hint}");
        }
    }

    #[test]
    fn a_word_where_none_is_taken_is_no_option() {
        assert_eq!(
            message_and_hint("hosts n1"),
            ("homing hosts takes no argument \"n1\"".into(), "homing hosts -w n1".into())
        );
        assert_eq!(message_and_hint("runs x").1, "homing runs --help");
        let (message, hint) = message_and_hint("volume mount data n4");
        assert_eq!(message, "homing volume mount takes no argument \"n4\"");
        assert_eq!(hint, "homing volume mount data --on n4");
    }

    #[test]
    fn a_topic_that_is_none_leads_to_one_that_is() {
        assert_eq!(message_and_hint("help enviroments").1, "homing help environments");
        assert!(message_and_hint("help qqqqqq").1.starts_with("homing help topics"));
    }
}
