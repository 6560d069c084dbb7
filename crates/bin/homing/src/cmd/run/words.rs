//! Checks the words of a run that begins later, as a job.

use super::{Args, options, targets};
use homing_dispatch::source::results_files;
use homing_model::Failure;
use std::path::Path;

/// Refuses words that the run itself would refuse when it begins. It queries no host, and leaves a list of inputs
/// unread beyond its beginning.
pub fn refuse(args: &Args, cwd: &Path, inputs: &mut dyn homing_batch::InputOpener) -> Result<(), Failure> {
    options::policy(args)?;
    drop(options::slots(args)?);
    let cluster = args.cluster.of_later()?;
    targets::refuse(args, &cluster)?;
    let batch = options::batch(args, cwd, "later", inputs, false)?;
    args.results.as_deref().map(|dir| results_files(dir, batch.columns())).transpose()?;
    Ok(())
}
