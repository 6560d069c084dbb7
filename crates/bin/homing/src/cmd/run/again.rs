//! A run's own command line, understood again by those who read its journal.

use super::args::{Args, join_json};
use super::options::batch;
use crate::cmd::evidence::{Opening, Read};
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
struct Line {
    #[command(flatten)]
    args: Args,
}

/// The arguments of a run by the words in its journal.
pub fn args_of_run(argv: Vec<RawText>) -> Result<Args, Failure> {
    let words: Vec<OsString> = argv.into_iter().map(|word| word.to_path().into_os_string()).collect();
    // The first word is the program, the second `run`.
    let words = join_json(words).into_iter().enumerate().filter(|(at, _)| *at != 1).map(|(_, word)| word);
    let not_understood = |e| Failure::usage(format!("the run's own command line is not understood: {e}"));
    Line::try_parse_from(words).map(|line| line.args).map_err(not_understood)
}

/// The inputs of failed tasks, made anew from the command line and the copies that the run has kept. Where that cannot
/// be, there are none: the list is worth reading without them.
pub fn inputs_of_failed(read: &Read) -> InputsOfTasks {
    let Opening { argv, cwd, dir } = &read.opening;
    inputs_of(argv, cwd, dir, &read.name, &read.failures.tasks()).unwrap_or_default()
}

/// The evidence of a run as JSON, with its failed tasks.
pub fn whole_json(tally: &Tally, failures: Value) -> Value {
    let mut evidence = tally.json();
    evidence["failures"] = failures;
    evidence
}

/// The failed tasks of a run as JSON.
pub fn failures_json(read: &Read) -> Value {
    read.failures.json(&inputs_of_failed(read))
}

/// The values of the input sources of these tasks, from the copies that the run has kept in `dir`.
///
/// # Errors
/// What cannot be read. A build, and a run whose tasks are blocks of one input, have none.
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
        if wanted.contains(&task.id) && !task.args.is_empty() {
            found.insert(task.id, task.args.clone());
        }
        if task.id >= *last || found.len() == wanted.len() {
            break;
        }
    }
    Ok(found)
}
