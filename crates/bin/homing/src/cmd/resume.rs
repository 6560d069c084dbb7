//! `homing resume RUN`: the same command line, without what is done.

use crate::cmd::run::{self, Again};
use homing_dispatch::source::joblog;
use homing_journal::Journal;
use homing_model::{Failure, RawText};
use homing_report::{Earlier, is_build, settled};

/// Arguments of `homing resume`.
#[derive(clap::Args)]
pub struct Args {
    /// The run: its name, the beginning of it, the one that --name gave it, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    /// Run those that failed again too
    #[arg(long)]
    failed: bool,
    /// Go on although records of the run are damaged; tasks whose end cannot be read run again
    #[arg(long)]
    skip_damaged: bool,
}

/// Takes a run up again, in its own working directory.
pub fn run(args: Args) -> Result<i32, Failure> {
    let dir = homing_journal::find(&homing_journal::root(), &args.run).map_err(Failure::usage)?;
    // Before it is read: nobody adds to it from here on.
    let journal = Journal::reopen(&dir).map_err(Failure::system)?;
    let Earlier { opening, done, tally, damage } = Earlier::read(&dir, args.failed).map_err(Failure::system)?;
    if let Some((_, cwd)) = opening.as_ref().filter(|(argv, _)| is_build(argv)) {
        return Err(made_by_make(cwd));
    }
    if !damage.is_empty() {
        told(&damage, &args)?;
    }
    let args_of_run = opening
        .ok_or_else(|| {
            let text = format!("{}: its journal has no beginning; the command of the run is not known", dir.display());
            Failure::usage(text)
        })
        .and_then(|(argv, cwd)| enter(argv, &cwd));
    let joblog = args_of_run.as_ref().ok().and_then(|args| args.joblog.as_deref());
    let unlisted = joblog.map(|path| joblog::unlisted(path, &dir)).transpose()?.unwrap_or_default();
    // What a damaged record told, its count at the end does not know of.
    if damage.is_empty()
        && let Some(exit) = settled(&tally, &done)
        && !dir.join(homing_dispatch::UNPRINTED).exists()
        && unlisted.is_empty()
    {
        tell_nothing_left(tally.counts().failed(), &args.run);
        return Ok(exit);
    }
    run::start(args_of_run?, Some(Again { journal, done, tally, unlisted }))
}

/// What is left of a build, its files tell.
fn made_by_make(cwd: &RawText) -> Failure {
    Failure::usage(format!("this is a build, of which make knows what is left: run make again in {}", cwd.display()))
}

/// Goes to where a run began; returns the arguments that it was given.
fn enter(argv: Vec<RawText>, cwd: &RawText) -> Result<run::Args, Failure> {
    std::env::set_current_dir(cwd.as_path())
        .map_err(|e| Failure::system(format!("cannot go to {}, where the run began: {e}", cwd.display())))?;
    let args = run::again::args_of_run(argv)?;
    args.cluster.enter()?;
    Ok(args)
}

fn tell_nothing_left(failed: u64, run: &str) {
    match failed {
        0 => eprintln!("homing: nothing is left to do"),
        n => eprintln!("homing: nothing is left; {n} failed: homing resume --failed {run}"),
    }
}

/// Names the damage of the journal; refuses to go on unless that was asked for.
fn told(damage: &[String], args: &Args) -> Result<(), Failure> {
    if args.skip_damaged {
        damage.iter().for_each(|line| eprintln!("homing: {line}; a task that ended there is run again"));
        return Ok(());
    }
    let more = match damage.len() - 1 {
        0 => String::new(),
        n => format!(" (and {n} more)"),
    };
    let text = format!("{}{more}; which tasks ended there is not known, nothing was run", damage[0]);
    let again = format!("homing resume --skip-damaged {}, which runs those again", args.run);
    Err(Failure::system(text).hint(again))
}
