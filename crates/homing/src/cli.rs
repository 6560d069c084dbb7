//! The command line. The doc comments here and on the arguments are the help
//! text and the command reference.

use crate::cmd;
use crate::failure::Failure;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

/// Run each command on the host that holds its data.
#[derive(Parser)]
#[command(name = "homing", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Sub,
}

#[derive(Subcommand)]
enum Sub {
    /// Run many commands, each next to its data
    Run(cmd::run::Args),
    /// Show who would run where, and why, and run nothing
    Plan(cmd::run::Args),
    /// Take up a run that was interrupted
    Resume(cmd::resume::Args),
    /// List runs
    Runs(cmd::runs::Args),
    /// Show the evidence of a run
    Report(cmd::report::Args),
    /// Submit a command, or a batch, that runs detached
    #[command(name = "sub")]
    Submit(cmd::queue::sub::Args),
    /// List submitted jobs
    Jobs(cmd::queue::jobs::Args),
    /// End submitted jobs
    Kill(cmd::queue::act::KillArgs),
    /// Show what a submitted job has written so far
    Peek(cmd::queue::act::PeekArgs),
    /// Wait for submitted jobs
    Wait(cmd::queue::act::WaitArgs),
    /// LSF's commands: bsub, bjobs, lsload and the others
    Lsf(cmd::lsf::Args),
    /// Tell which hosts hold the bytes of files
    Where(cmd::whereis::Args),
    /// Show hosts and their load now
    Hosts(cmd::hosts::Args),
    /// Run one command on many hosts and gather what it says
    Exec(cmd::exec::Args),
    /// Tell what is wrong with a cluster, and the command that mends it
    Check(cmd::check::Args),
    /// Copy files and folders to many hosts
    Push(cmd::copy::Args),
    /// Fetch files and folders from many hosts, each under its host's name
    Pull(cmd::copy::Args),
    /// Fold, expand and combine node sets
    Nodeset(cmd::nodeset::Args),
    /// Run make, its recipes on the hosts of the cluster
    Make(cmd::make::Args),
    /// Run one command on the host where it ends first: CC="homing on gcc"
    On(cmd::make::on::Args),
    /// Make, grow, shrink and delete volumes of GlusterFS, MooseFS and NFS
    Volume(cmd::volume::Args),
    /// Measure shared folders from their clients
    Bench(cmd::bench::Args),
    /// A cluster on one machine, for trying and testing
    Lab(cmd::lab::Args),
    /// Print completions for a shell
    Completions(cmd::generate::Completions),
    /// Write man pages
    Man(cmd::generate::Man),
    /// Starts the jobs of this user, as long as there are any
    #[command(hide = true)]
    QueueRunner,
    /// Takes a terminal over from `bsub -I`
    #[command(hide = true)]
    LsfAttach(cmd::lsf::AttachArgs),
}

/// Puts the words of `homing make` that are make's own behind those that are ours.
pub fn make_words_last(words: &mut Vec<std::ffi::OsString>) {
    if words.get(1).is_some_and(|w| w == "make") {
        let rest = cmd::make::own_first(words.split_off(2));
        words.extend(rest);
    }
}

/// Parses, runs, prints a failure as one line; returns the exit status.
pub fn main() -> i32 {
    let mut words: Vec<std::ffi::OsString> = std::env::args_os().collect();
    match words.get(1).and_then(|word| word.to_str()) {
        // A task of a worker, on its way to its program: nothing of it is for us to parse.
        Some("in-view") => return homing_worker::enter_view(&words[2..]),
        // Both fork a guard first, which copies what there is in memory: the grammar is most of it.
        Some("worker") => return homing_worker::main_stdio(),
        Some("queue-keeper") => return status(cmd::queue::keeper(&words[2..])),
        // Once for each line of a makefile: it knows its words without the whole grammar.
        Some("recipe") => return cmd::make::stub::recipe(words.split_off(2)),
        Some("complete") => return crate::complete::complete(&words[2..]),
        _ => {}
    }
    if let Some(status) = cmd::lsf::by_name(&words) {
        return status;
    }
    make_words_last(&mut words);
    let words = match crate::config::with_defaults(words) {
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
        Sub::Volume(args) => cmd::volume::run(args),
        Sub::Push(args) => cmd::copy::push(args),
        Sub::Pull(args) => cmd::copy::pull(args),
        Sub::Lab(args) => cmd::lab::run(args),
        Sub::Make(args) => cmd::make::run(args),
        Sub::On(args) => cmd::make::on::run(args),
        Sub::Nodeset(args) => cmd::nodeset::run(args),
        Sub::Completions(args) => cmd::generate::completions(args),
        Sub::Man(args) => cmd::generate::man(args),
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
