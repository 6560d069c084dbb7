//! `homing resume RUN`: runs the same command line again, without the tasks that are done.

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
    /// Also run failed tasks again
    #[arg(long)]
    failed: bool,
    /// Continue despite damaged records of the run; tasks whose end cannot be read run again
    #[arg(long)]
    skip_damaged: bool,
}

/// Resumes a run, in its own working directory.
pub fn run(args: Args) -> Result<i32, Failure> {
    let dir = homing_journal::find(&homing_journal::root(), &args.run).map_err(Failure::usage)?;
    // Reopened before it is read: from here on, no other process appends to it.
    let journal = Journal::reopen(&dir).map_err(Failure::system)?;
    let Earlier { opening, done, tally, damage } = Earlier::read(&dir, args.failed).map_err(Failure::system)?;
    if let Some((_, cwd)) = opening.as_ref().filter(|(argv, _)| is_build(argv)) {
        return Err(made_by_make(cwd));
    }
    if !damage.is_empty() {
        report_damage(&damage, &args)?;
    }
    let args_of_run = opening
        .ok_or_else(|| {
            let text =
                format!("{}: its journal has no first record, which holds the command of the run", dir.display());
            Failure::usage(text)
        })
        .and_then(|(argv, cwd)| enter(argv, &cwd));
    let joblog = args_of_run.as_ref().ok().and_then(|args| args.joblog.as_deref());
    let unlisted = joblog.map(|path| joblog::unlisted(path, &dir)).transpose()?.unwrap_or_default();
    // With damaged records, the counts of the journal are incomplete.
    if damage.is_empty()
        && let Some(exit) = settled(&tally, &done)
        && !dir.join(homing_dispatch::UNPRINTED).exists()
        && unlisted.is_empty()
    {
        tell_nothing_left(tally.counts().failed(), &args.run);
        return Ok(exit);
    }
    run::start(&args_of_run?, Some(Again { journal, done, tally, unlisted }))
}

/// Returns the failure for a build. Only make knows from the files which part of it is left.
fn made_by_make(cwd: &RawText) -> Failure {
    Failure::usage(format!("this run is a build, and only make can continue it: run make again in {}", cwd.display()))
}

/// Enters the folder where a run began; returns the arguments of the run.
fn enter(argv: Vec<RawText>, cwd: &RawText) -> Result<run::Args, Failure> {
    std::env::set_current_dir(cwd.as_path())
        .map_err(|e| Failure::system(format!("cannot enter {}, the folder of the run: {e}", cwd.display())))?;
    let args = run::again::args_of_run(argv)?;
    args.cluster.enter()?;
    Ok(args)
}

fn tell_nothing_left(failed: u64, run: &str) {
    match failed {
        0 => eprintln!("homing: no tasks are left to run"),
        n => eprintln!("homing: no tasks are left to run; {n} failed: homing resume --failed {run}"),
    }
}

/// Prints the damage of the journal. Refuses to go on unless an option requests it.
fn report_damage(damage: &[String], args: &Args) -> Result<(), Failure> {
    if args.skip_damaged {
        damage.iter().for_each(|line| eprintln!("homing: {line}; tasks whose end was recorded there run again"));
        return Ok(());
    }
    let more = match damage.len() - 1 {
        0 => String::new(),
        n => format!(" (and {n} more)"),
    };
    let text = format!("{}{more}; the ends of tasks recorded there cannot be read, and nothing was run", damage[0]);
    let again = format!("homing resume --skip-damaged {}, which runs these tasks again", args.run);
    Err(Failure::system(text).hint(again))
}
