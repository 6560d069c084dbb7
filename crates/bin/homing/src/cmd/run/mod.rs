//! `homing run`, `homing plan`, and the second half of `homing resume`.
//!
//! This module turns options into a batch, hosts and a policy. `dispatch` does the rest.

pub mod again;
mod args;
mod asleep;
mod config;
mod ending;
mod granted;
mod licenses;
mod listen;
mod on_exit;
mod options;
mod parallel;
mod perl;
mod plan;
mod ready;
mod seats;
mod targets;
mod unknown;
mod wide;
mod words;

pub use args::{Args, On, args_of, gpus, grammar, is_separator};
pub use config::{merged, with_defaults};
pub(crate) use options::batch;
pub use plan::plan;
pub use unknown::unknown;
pub use words::refuse;

use crate::cmd::gateway;
use crate::cmd::opening::hostname;
use homing_batch::Files;
use homing_dispatch::source::joblog::Unlisted;
use homing_journal::Journal;
use homing_model::{Failure, TaskId};
use homing_report::Tally;
use ready::ReadyRun;
use std::collections::HashMap;
use std::io::{self, BufReader, IsTerminal, Write};

/// A run that is resumed.
pub struct Again {
    /// Its journal, opened for appending.
    pub journal: Journal,
    /// Tasks that do not run again, each with the hash of its command if the journal has one.
    pub done: HashMap<TaskId, Option<u64>>,
    /// The evidence of its earlier parts.
    pub tally: Tally,
    /// Ends of tasks that the job log lacks, among the tasks that do not run again.
    pub unlisted: Unlisted,
}

/// Executes `homing run`.
pub fn run(args: Args) -> Result<i32, Failure> {
    if let Some(ended) = at_gateway(&args) {
        return ended;
    }
    args.name.as_deref().map_or(Ok(()), check_label)?;
    if args.dry_run {
        return dry_run(&args);
    }
    start(&args, None)
}

/// Runs the same command line on the host that `--gateway` names.
fn at_gateway(args: &Args) -> Option<Result<i32, Failure>> {
    let host = args.gateway.as_ref()?;
    let words = gateway::without_gateway(std::env::args_os().skip(1).collect(), args.words.len());
    Some(gateway::run(host, &words))
}

/// Starts a run, or continues one where an earlier coordinator stopped.
pub fn start(args: &Args, again: Option<Again>) -> Result<i32, Failure> {
    // There may be thousands of connections to hosts and of files with the output of tasks.
    homing_os::process::raise_files();
    ReadyRun::of(args, again)?.run()
}

/// Refuses a second name that would mean another run. `resume` accepts it, since earlier versions did.
fn check_label(label: &str) -> Result<(), Failure> {
    if homing_journal::is_own_name(&homing_journal::root(), label) {
        let why = format!("{label:?} cannot be the second name of a run: it is a run's own name, or has its form");
        return Err(Failure::usage(why).hint("--name night, or another word"));
    }
    Ok(())
}

/// Returns the note for a batch without any task.
fn empty_note(args: &Args, empty: &str) -> String {
    match args.has_no_source() {
        true => format!("{empty}; `:::` before words makes them the inputs"),
        false => empty.into(),
    }
}

/// Prints the commands of a run and runs none.
fn dry_run(args: &Args) -> Result<i32, Failure> {
    let cwd = std::env::current_dir().map_err(Failure::system)?;
    let mut inputs = Files::new(&cwd, Box::new(BufReader::new(io::stdin())));
    let mut batch = batch(args, &cwd, "dry", &mut inputs, io::stdin().is_terminal())?;
    let (tag, empty, mut some) = (batch.tag().cloned(), batch.empty_note(), false);
    homing_model::graph::in_order(batch.by_ref().map(|task| task.map_err(Failure::usage)), |task| {
        let mut line = Vec::new();
        some = true;
        if let Some(tag) = &tag {
            line = tag.of(task, 1).0;
            line.push(b'\t');
        }
        line.extend(plan::command(task).0);
        line.push(b'\n');
        io::stdout().write_all(&line).map_err(|e| Failure::unwritten("cannot write to standard output", &e))
    })?;
    batch.take_notes().iter().for_each(|text| eprintln!("homing: {text}"));
    if !some && batch.skipped() == 0 && !args.quiet {
        eprintln!("homing: {}", empty_note(args, &empty));
    }
    Ok(0)
}
