//! `homing resume RUN`: the same command line, without what is done.

use crate::cmd::run::{self, Again};
use crate::failure::Failure;
use clap::Parser;
use homing_journal::Journal;
use homing_model::event::What;
use homing_model::{RawText, TaskId};
use homing_report::Tally;
use std::collections::HashSet;

/// Arguments of `homing resume`.
#[derive(clap::Args)]
pub struct Args {
    /// The run: its name, the beginning of it, or `last`
    run: String,
    /// Run those that failed again too
    #[arg(long)]
    failed: bool,
}

/// The command line of a run, parsed again.
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: run::Args,
}

/// Takes a run up again, in its own working directory.
pub fn run(args: Args) -> Result<i32, Failure> {
    let dir = homing_journal::find(&homing_journal::root(), &args.run).map_err(Failure::usage)?;
    let mut opening = None;
    let mut done: HashSet<TaskId> = HashSet::new();
    let mut tally = Tally::new();
    for event in homing_journal::replay(&dir).map_err(Failure::system)? {
        let event = event.map_err(Failure::system)?;
        tally.add(&event);
        match event.what {
            What::RunStarted { argv, cwd, .. } => opening = Some((argv, cwd)),
            What::TaskEnded { task, last: true, outcome, .. } => {
                let settled = outcome.is_success() || (!args.failed && counts_as_failed(&outcome));
                if settled {
                    done.insert(task)
                } else {
                    done.remove(&task)
                };
            }
            What::TaskSkipped { task, .. } => drop(done.insert(task)),
            _ => {}
        }
    }
    if let Some(exit) = tally.exit()
        && tally.counts().is_settled(|task| done.contains(&task))
        && !dir.join(homing_dispatch::UNPRINTED).exists()
    {
        tell_nothing_left(tally.counts().failed(), &args.run);
        return Ok(exit);
    }
    let (argv, cwd) = opening.ok_or_else(|| {
        Failure::usage(format!("{}: its journal has no beginning, nothing of it was started", dir.display()))
    })?;
    std::env::set_current_dir(cwd.as_path())
        .map_err(|e| Failure::system(format!("cannot go to {}, where the run began: {e}", cwd.display())))?;
    // The first word is the program, the second `run`.
    let words = argv.into_iter().enumerate().filter(|(i, _)| *i != 1).map(|(_, w): (usize, RawText)| w.to_path());
    let line = Line::try_parse_from(words.map(|w| w.into_os_string()))
        .map_err(|e| Failure::usage(format!("the run's own command line is not understood: {e}")))?;
    let journal = Journal::reopen(&dir).map_err(Failure::system)?;
    run::start(line.args, Some(Again { journal, done, tally }))
}

fn tell_nothing_left(failed: u64, run: &str) {
    match failed {
        0 => eprintln!("homing: nothing is left to do"),
        n => eprintln!("homing: nothing is left; {n} failed: homing resume --failed {run}"),
    }
}

/// Killed and lost tasks are unfinished, not failed.
fn counts_as_failed(outcome: &homing_model::Outcome) -> bool {
    !matches!(outcome, homing_model::Outcome::Killed | homing_model::Outcome::Lost(_))
}
