//! Parses a command line, runs its command, and returns the exit status.

use crate::cmd::{self, administration};
use crate::grammar::{Cli, Sub, make_words_last};
use crate::programs;
use crate::roles::status;
use clap::{ArgMatches, Args, Command, CommandFactory, FromArgMatches};
use homing_model::Failure;
use std::ffi::OsString;

/// The program `homing`.
pub fn homing() -> i32 {
    main(false)
}

/// The program `homing-admin`.
#[cfg(feature = "admin")]
pub fn admin() -> i32 {
    main(true)
}

/// Parses the words, runs the command, and prints a failure as one line. Returns the exit status. `admin`: this
/// program has all commands.
fn main(admin: bool) -> i32 {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if let Some(status) = crate::roles::play(&mut words) {
        return status;
    }
    if let Some(status) = cmd::lsf::by_name(&words) {
        return status;
    }
    if words.len() == 1 {
        words.push("--help".into());
    }
    if !admin && let Some(failure) = programs::hand_over(&words) {
        return status(Err(failure));
    }
    if let Some(described) = words.get(1).and_then(|word| ["complete", "describe"].iter().position(|name| word == name))
    {
        return crate::complete::complete(&words[2..], described == 1);
    }
    if let Some(page) = crate::pages::page_of(&words[1..], |word| Cli::command().find_subcommand(word).is_some()) {
        return status(cmd::runs::to_stdout(page));
    }
    make_words_last(&mut words);
    if words.get(1).is_some_and(|word| word == "nodeset") {
        let rest = cmd::nodeset::operands_last(words.split_off(2));
        words.extend(rest);
    }
    let typed = words.clone();
    let words = match cmd::run::with_defaults(words) {
        Ok(words) => words,
        Err(failure) => return status(Err(failure)),
    };
    let (matches, cli) = match parse(&words) {
        Ok(parsed) => parsed,
        Err(e) => {
            let asked = words.get(1).is_some_and(|word| word == "run" || word == "plan");
            if let Some(failure) = asked.then(|| cmd::run::unknown(&e, cmd::run::grammar)).flatten() {
                eprintln!("{failure}");
                return failure.status;
            }
            let helped = (e.kind() == clap::error::ErrorKind::DisplayHelp)
                .then(|| crate::help::grammar().try_get_matches_from(&words).err());
            let e = helped.flatten().unwrap_or(e);
            if e.use_stderr() && e.kind() != clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
                let typed: Vec<String> = words[1..].iter().map(|word| word.to_string_lossy().into_owned()).collect();
                let mut grammar = Cli::command();
                grammar.build();
                return status(Err(crate::mistyped::failure(&e, &grammar, &typed)));
            }
            let _ = e.print();
            return if e.use_stderr() { homing_model::exit::USAGE } else { 0 };
        }
    };
    if let Err(failure) = refuse_idle(&typed, &words, &matches).and_then(|()| crate::cluster::enter_of(&matches)) {
        return status(Err(failure));
    }
    status(match cli.command {
        Sub::Run(args) => cmd::run::run(args),
        Sub::Plan(args) => cmd::run::plan(args),
        Sub::Resume(args) => cmd::resume::run(args),
        Sub::Runs(args) => cmd::runs::run(args),
        Sub::Report(args) => cmd::report::run(args),
        Sub::Usage(args) => cmd::usage::run(args),
        Sub::Advise(args) => cmd::advise::run(args),
        Sub::Top(args) => cmd::top::run(args),
        Sub::Submit(args) => cmd::queue::sub::run(args),
        Sub::Jobs(args) => cmd::queue::jobs::run(args),
        Sub::Kill(args) => cmd::queue::act::kill(args),
        Sub::Peek(args) => cmd::queue::act::peek(args),
        Sub::Wait(args) => cmd::queue::act::wait(args),
        Sub::Lsf(args) => cmd::lsf::run(args),
        Sub::LsfAttach(args) => cmd::lsf::attach(args),
        Sub::Where(args) => cmd::whereis::run(args),
        Sub::Hosts(args) => cmd::hosts::run(args),
        Sub::Power(args) => administration::power(args),
        Sub::Exec(args) => cmd::exec::run(args),
        Sub::Check(args) => administration::check(args),
        Sub::Bench(args) => administration::bench(args),
        Sub::Tune(args) => administration::tune(args),
        Sub::Topology(args) => administration::topology(args),
        Sub::Up(args) => administration::up(args),
        Sub::Cache(args) => administration::cache(args),
        Sub::Down(args) => administration::down(args),
        Sub::Snapshot(args) => administration::snapshot(args),
        Sub::Volume(args) => administration::volume(args),
        Sub::Push(args) => cmd::copy::push(args),
        Sub::Pull(args) => cmd::copy::pull(args),
        Sub::Lab(args) => administration::lab(args),
        Sub::Make(args) => cmd::make::run(args),
        Sub::On(args) => cmd::make::on::run(args),
        Sub::Nodeset(args) => cmd::nodeset::run(args),
        Sub::Completions(args) => crate::complete::script(args.shell),
        Sub::Man(args) => crate::help::write_man(&args.dir),
    })
}

/// Refuses typed options that do nothing. Faults that only appear without the user's defaults do not matter.
fn refuse_idle(typed: &[OsString], words: &[OsString], all: &ArgMatches) -> Result<(), Failure> {
    let whole = || std::rc::Rc::new(Cli::command());
    if typed.len() == words.len() {
        return crate::idle::refuse(all, all, &whole);
    }
    parse(typed).map_or(Ok(()), |(typed, _)| crate::idle::refuse(&typed, all, &whole))
}

fn parse(words: &[OsString]) -> Result<(ArgMatches, Cli), clap::Error> {
    if let Some(parsed) = by_its_own_grammar(words) {
        return Ok(parsed);
    }
    let matches = Cli::command().try_get_matches_from(words)?;
    let cli = Cli::from_arg_matches(&matches)?;
    Ok((matches, cli))
}

/// Parses commands that scripts start by the thousand. Making the grammar of all commands takes longer than the rest
/// of their start. Returns `None` for wrong words: the whole grammar has the error messages.
fn by_its_own_grammar(words: &[OsString]) -> Option<(ArgMatches, Cli)> {
    match words.get(1)?.to_str()? {
        "run" => alone(words, "run", Sub::Run),
        "sub" => alone(words, "sub", Sub::Submit),
        "jobs" => alone(words, "jobs", Sub::Jobs),
        "on" => alone(words, "on", Sub::On),
        "exec" => alone(words, "exec", Sub::Exec),
        _ => None,
    }
}

fn alone<A: Args>(words: &[OsString], name: &'static str, as_one: fn(A) -> Sub) -> Option<(ArgMatches, Cli)> {
    let own = A::augment_args(Command::new(name));
    let matches = Command::new("homing").subcommand(own).try_get_matches_from(words).ok()?;
    let args = A::from_arg_matches(matches.subcommand_matches(name)?).ok()?;
    Some((matches, Cli { command: as_one(args) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn what_a_commands_own_grammar_understands_the_whole_does_too_and_the_rest_is_left_to_that() {
        for line in
            ["run -j2 --joblog x wc ::: a", "sub -o out true", "jobs --json", "on gcc -c a.c", "exec -w n1 uptime"]
        {
            let words = words(&format!("homing {line}"));
            let (own, _) = by_its_own_grammar(&words).expect(line);
            let whole = Cli::command().try_get_matches_from(&words).expect(line);
            assert_eq!(own.subcommand(), whole.subcommand(), "{line}");
        }
        for line in ["run --nope true", "run --help", "exec", "where f"] {
            assert!(by_its_own_grammar(&words(&format!("homing {line}"))).is_none(), "{line}");
        }
    }
}
