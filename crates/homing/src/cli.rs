//! From a command line to the command that does it, and to the exit status.

use crate::cmd;
use crate::failure::Failure;
use crate::grammar::{Cli, Sub, make_words_last};
use clap::{ArgMatches, CommandFactory, FromArgMatches};

/// Parses, runs, prints a failure as one line; returns the exit status.
pub fn main() -> i32 {
    let mut words: Vec<std::ffi::OsString> = std::env::args_os().collect();
    match words.get(1).and_then(|word| word.to_str()) {
        // A task of a worker, on its way to its program: nothing of it is for us to parse.
        Some("in-view") => return homing_worker::enter_view(&words[2..]),
        // Both fork a guard first, which copies what there is in memory: the grammar is most of it.
        Some("worker") => return homing_worker::main_stdio(),
        Some("queue-keeper") => return status(cmd::queue::keeper(&words[2..])),
        Some("queue-far") => return status(cmd::queue::far::far(&words[2..])),
        Some(homing_snapshot::serve::WORD) => return status(cmd::snapshot::far::host()),
        Some(homing_snapshot::remove::WORD) => return status(cmd::snapshot::far::remove(&words[2..])),
        Some(cmd::lsf::RANK) => return status(cmd::lsf::rank()),
        Some(cmd::queue::far::HOST) => return status(cmd::queue::far::host()),
        // Once for each line of a makefile: it knows its words without the whole grammar.
        Some("recipe") => return cmd::make::stub::recipe(words.split_off(2)),
        Some("complete") => return crate::complete::complete(&words[2..]),
        _ => {}
    }
    if let Some(status) = cmd::lsf::by_name(&words) {
        return status;
    }
    make_words_last(&mut words);
    let words = match cmd::run::with_defaults(words) {
        Ok(words) => words,
        Err(failure) => return status(Err(failure)),
    };
    let (matches, cli) = match parse(&words) {
        Ok(parsed) => parsed,
        Err(e) => {
            let asked = words.get(1).is_some_and(|word| word == "run" || word == "plan");
            if let Some(failure) = asked.then(|| cmd::run::unknown(&e)).flatten() {
                eprintln!("{failure}");
                return failure.status;
            }
            let helped = (e.kind() == clap::error::ErrorKind::DisplayHelp)
                .then(|| crate::help::grammar().try_get_matches_from(&words).err());
            let e = helped.flatten().unwrap_or(e);
            let _ = e.print();
            return if e.use_stderr() { crate::failure::exit::USAGE } else { 0 };
        }
    };
    if let Err(failure) = crate::cluster::enter_of(&matches) {
        return status(Err(failure));
    }
    status(match cli.command {
        Sub::Run(args) => cmd::run::run(args),
        Sub::Plan(args) => cmd::run::plan(args),
        Sub::Resume(args) => cmd::resume::run(args),
        Sub::Runs(args) => cmd::runs::run(args),
        Sub::Report(args) => cmd::report::run(args),
        Sub::Usage(args) => cmd::usage::run(args),
        Sub::Top(args) => cmd::top::run(args),
        Sub::Submit(args) => cmd::queue::sub::run(args),
        Sub::Jobs(args) => cmd::queue::jobs::run(args),
        Sub::Kill(args) => cmd::queue::act::kill(args),
        Sub::Peek(args) => cmd::queue::act::peek(args),
        Sub::Wait(args) => cmd::queue::act::wait(args),
        Sub::QueueRunner => cmd::queue::runner(),
        Sub::Lsf(args) => cmd::lsf::run(args),
        Sub::LsfAttach(args) => cmd::lsf::attach(args),
        Sub::Where(args) => cmd::whereis::run(args),
        Sub::Hosts(args) => cmd::hosts::run(args),
        Sub::Exec(args) => cmd::exec::run(args),
        Sub::Check(args) => cmd::check::run(args),
        Sub::Bench(args) => cmd::bench::run(args),
        Sub::Tune(args) => cmd::tune::run(&args),
        Sub::Topology(args) => cmd::topology::run(&args),
        Sub::Up(args) => cmd::up::run(args),
        Sub::Cache(args) => cmd::cache::run(args),
        Sub::Down(args) => cmd::up::down::run(args),
        Sub::Snapshot(args) => cmd::snapshot::run(args),
        Sub::Volume(args) => cmd::volume::run(args),
        Sub::Push(args) => cmd::copy::push(args),
        Sub::Pull(args) => cmd::copy::pull(args),
        Sub::Lab(args) => cmd::lab::run(args),
        Sub::Make(args) => cmd::make::run(args),
        Sub::On(args) => cmd::make::on::run(args),
        Sub::Nodeset(args) => cmd::nodeset::run(args),
        Sub::Completions(args) => crate::complete::script(args.shell),
        Sub::Man(args) => crate::help::write_man(&args.dir),
    })
}

fn parse(words: &[std::ffi::OsString]) -> Result<(ArgMatches, Cli), clap::Error> {
    let matches = Cli::command().try_get_matches_from(words)?;
    let cli = Cli::from_arg_matches(&matches)?;
    Ok((matches, cli))
}

/// Prints a failure; returns the exit status.
fn status(result: Result<i32, Failure>) -> i32 {
    result.unwrap_or_else(|failure| {
        if !failure.message.is_empty() {
            eprintln!("{failure}");
        }
        failure.status
    })
}
