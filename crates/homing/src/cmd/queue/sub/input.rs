//! What comes on the submission's standard input.

use crate::cmd::run;
use homing_model::{Failure, RawText};
use std::ffi::OsString;
use std::path::PathBuf;

/// True when a batch takes its input lines from standard input.
pub fn is_read(batch: &run::Args) -> bool {
    let is_source = |w: &OsString| matches!(w.to_str(), Some(":::" | "::::" | ":::+" | "::::+"));
    let named = batch.words.iter().any(is_source) || !batch.arg_file.is_empty() || batch.tasks.is_some();
    let dash = |p: &PathBuf| p.as_os_str() == "-";
    !named || batch.arg_file.iter().chain(&batch.tasks).any(dash)
}

/// The input of a batch, for the job that runs when the pipe is gone.
pub fn of_batch() -> Result<RawText, Failure> {
    let none = || Failure::usage("the batch has no input sources").hint("::: FILE..., -a LISTFILE, or a pipe");
    piped()?.ok_or_else(none)
}

/// What is piped into the submission; `None` where that is a terminal.
pub fn piped() -> Result<Option<RawText>, Failure> {
    use std::io::{IsTerminal, Read};
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(None);
    }
    let mut text = Vec::new();
    let read = stdin.lock().take(LONGEST_INPUT + 1).read_to_end(&mut text);
    read.map_err(|e| Failure::system(format!("cannot read standard input: {e}")))?;
    if text.len() as u64 > LONGEST_INPUT {
        let bound = LONGEST_INPUT >> 20;
        return Err(
            Failure::usage(format!("more than {bound} MiB come from standard input")).hint("a file that it reads")
        );
    }
    Ok(Some(RawText(text)))
}

/// Input that is kept with a job, bytes.
const LONGEST_INPUT: u64 = 4 << 20;
