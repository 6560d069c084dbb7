//! The batch of a submission: its words are those of a run, and are checked as a run checks them.

use super::Args;
use super::promised::{Opening, PromisedInputs};
use crate::cmd::run;
use homing_model::{Failure, RawText};
use homing_queue::{JobSpec, array};
use std::ffi::OsString;

/// Returns the batch of a submission with the user's defaults, if there is one. The job and its run have one name:
/// `-J` of the job counts for the run, and `--name` of the run for the job.
pub fn read(args: &mut Args) -> Result<Option<run::Args>, Failure> {
    if args.batch.is_empty() {
        return Ok(None);
    }
    let typed = run::args_of(&args.batch)?;
    let name = args.name.as_deref().map(array::parse).transpose().map_err(Failure::usage)?;
    if let Some((name, _)) = name.filter(|(name, _)| !name.is_empty() && typed.name.is_none()) {
        args.batch.insert(0, format!("--name={name}").into());
    }
    crate::idle::refuse_words(run::grammar(), &args.batch)?;
    let line: Vec<OsString> = ["homing", "run"].map(OsString::from).into_iter().chain(args.batch.clone()).collect();
    let line = run::merged(line).map_err(|failure| match typed.parallel.profile.first() {
        Some(profile) => failure.hint(format!("homing sub -J {profile} --batch ... names the job and its run")),
        None => failure,
    })?;
    run::args_of(&line[2..]).map(Some)
}

/// Refuses a batch that its run would refuse.
pub fn refuse(batch: &run::Args, spec: &JobSpec, piped: Option<&RawText>, opening: Opening) -> Result<(), Failure> {
    let cwd = spec.cwd.to_path();
    let mut inputs = PromisedInputs { cwd: &cwd, piped, opening, unread: false };
    match run::refuse(batch, &cwd, &mut inputs) {
        Err(_) if inputs.unread => Ok(()),
        checked => checked,
    }
}
