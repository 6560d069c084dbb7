//! Parses the command line of a run again, for the commands that read its journal.

use super::args::{Args, join_json};
use super::options::batch;
use crate::cmd::evidence::{JournalContent, Opening};
use clap::Parser;
use homing_dispatch::source::KeptInputs;
use homing_model::{Failure, RawText, TaskId};
use homing_report::{InputsOfTasks, Tally};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

/// The command line of a run, parsed again.
#[derive(Parser)]
struct RunCommandLine {
    #[command(flatten)]
    args: Args,
}

/// Returns the arguments of a run, from the words in its journal.
pub fn args_of_run(argv: Vec<RawText>) -> Result<Args, Failure> {
    let words: Vec<OsString> = argv.into_iter().map(|word| word.to_path().into_os_string()).collect();
    // The first word is the program, the second `run`.
    let words = join_json(words).into_iter().enumerate().filter(|(at, _)| *at != 1).map(|(_, word)| word);
    let not_understood = |e| Failure::usage(format!("cannot parse the command line of the run: {e}"));
    RunCommandLine::try_parse_from(words).map(|line| line.args).map_err(not_understood)
}

/// Returns the inputs of the failed tasks, made again from the command line and from the copies that the run keeps.
/// If that fails, the list is empty: the list of failed tasks is useful without inputs.
pub fn inputs_of_failed(read: &JournalContent) -> InputsOfTasks {
    let Opening { argv, cwd, dir } = &read.opening;
    inputs_of(argv, cwd, dir, &read.name, &read.failures.tasks()).unwrap_or_default()
}

/// Returns the evidence of a run as JSON, with its failed tasks.
pub fn whole_json(tally: &Tally, failures: Value) -> Value {
    let mut evidence = tally.json();
    evidence["failures"] = failures;
    evidence
}

/// Returns the failed tasks of a run as JSON.
pub fn failures_json(read: &JournalContent) -> Value {
    read.failures.json(&inputs_of_failed(read))
}

/// Returns the input values of the tasks in `wanted`, or the inputs that their file declares. They come from the copies
/// that the run keeps in `dir`. They are missing for a build, and for a run whose tasks are blocks of one input.
///
/// # Errors
/// The command line is not understood, or a copy cannot be read.
fn inputs_of(argv: &[RawText], cwd: &Path, dir: &Path, run: &str, wanted: &[TaskId]) -> Result<InputsOfTasks, Failure> {
    let mut found = InputsOfTasks::new();
    let Some(last) = wanted.iter().max() else { return Ok(found) };
    if homing_report::is_build(argv) {
        return Ok(found);
    }
    let args = args_of_run(argv.to_vec())?;
    if args.parallel.pipe || args.parallel.pipepart {
        return Ok(found);
    }
    let wanted: BTreeSet<TaskId> = wanted.iter().copied().collect();
    let mut inputs = KeptInputs::new(cwd, dir);
    for task in batch(&args, cwd, run, &mut inputs, false)? {
        let Ok(task) = task else { break };
        // A task of a file has no values of input sources. Its declared inputs take their place.
        let values = if task.args.is_empty() { &task.inputs } else { &task.args };
        if wanted.contains(&task.id) && !values.is_empty() {
            found.insert(task.id, values.clone());
        }
        if task.id >= *last || found.len() == wanted.len() {
            break;
        }
    }
    Ok(found)
}
