//! `bsub -I`: gives the job the terminal of its submitter, or shows its output.

use super::Refusal;
use homing_model::Failure;
use homing_queue::{Engine, Followed, Job, terminal, until_over};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;

/// Arguments of the hidden `lsf-attach`.
#[derive(clap::Args)]
pub struct AttachArgs {
    socket: PathBuf,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    words: Vec<OsString>,
}

/// Takes the descriptors over inside the job, and becomes the job's command.
pub fn attach(args: AttachArgs) -> Result<i32, Failure> {
    let gone = |e| Failure::system(format!("the terminal of the interactive job has gone: {e}"));
    terminal::take_over(&args.socket).map_err(gone)?;
    let mut command = Command::new(&args.words[0]);
    let failed =
        homing_os::process::become_program(command.args(&args.words[1..]), OsStr::new(homing_os::process::SHELL));
    Err(Failure::system(format!("cannot start {:?}: {failed}", args.words[0])))
}

/// Returns the exit status of a job that is over. Prints the reasons for its end on standard error.
pub fn ended(job: &Job) -> i32 {
    let reasons = job.parts.iter().filter_map(|p| p.end.as_ref()?.reason.as_ref());
    reasons.for_each(|reason| eprintln!("Job <{}>: {reason}", job.id));
    job.exit()
}

/// Follows a job on another host to its end: prints its output as it arrives, and passes no input.
pub fn follow(engine: &dyn Engine, id: u64) -> Result<i32, Refusal> {
    let mut streams: Vec<Followed> = Vec::new();
    let job = until_over(engine, id, None, |job| {
        if streams.is_empty()
            && let Some(part) = job.parts.first()
            && let Some(start) = &part.start
        {
            eprintln!("<<Starting on {}>>", start.host);
            streams = Followed::all(job, part);
        }
        streams.iter_mut().try_for_each(Followed::copy)
    })?;
    Ok(ended(&job))
}
