//! Standard input of `homing sub`.

use crate::cmd::run;
use homing_model::{Failure, RawText};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Programs that take such a list themselves.
const TAKE_LISTS: [&str; 2] = ["parallel", "homing"];

/// Refuses a list of inputs behind a single command, which would get the list as its arguments.
pub fn refuse_list(words: &[OsString]) -> Result<(), Failure> {
    let Some(source) = words.iter().find(|word| run::is_separator(word)) else { return Ok(()) };
    if Path::new(&words[0]).file_name().is_some_and(|program| TAKE_LISTS.iter().any(|name| program == *name)) {
        return Ok(());
    }
    let source = source.display();
    let why = format!("homing sub takes one command, and no list of inputs ({source}) without --batch");
    Err(Failure::usage(why).hint(format!("homing sub --batch 'COMMAND {{}}' {source} INPUT...")))
}

/// Returns whether a batch reads its input lines from standard input.
pub fn is_read(batch: &run::Args) -> bool {
    let dash = |p: &PathBuf| p.as_os_str() == "-";
    !batch.names_source() || batch.arg_file.iter().chain(&batch.tasks).any(dash)
}

/// Reads the input of a batch, for the job that runs when the pipe is gone.
pub fn of_batch() -> Result<RawText, Failure> {
    let none = || Failure::usage("the batch has no input sources").hint("::: FILE..., -a LISTFILE, or a pipe");
    piped()?.ok_or_else(none)
}

/// Reads the standard input of the submission; `None` if it is a terminal.
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
        return Err(Failure::usage(format!("standard input has more than {bound} MiB"))
            .hint("put it into a file that the job reads"));
    }
    Ok(Some(RawText(text)))
}

/// The largest input that is kept with a job, in bytes.
const LONGEST_INPUT: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_inputs_belongs_to_a_batch_or_to_a_program_that_takes_one() {
        let refused = |words: &[&str]| refuse_list(&words.iter().map(OsString::from).collect::<Vec<_>>());
        for source in [":::", "::::", ":::+", "::::+"] {
            let why = refused(&["true {}", source, "1", "2"]).unwrap_err().to_string();
            assert!(why.contains("--batch") && why.contains(source), "{why}");
        }
        for words in
            [&["echo", "a:::b"][..], &["/usr/bin/parallel", "gzip", ":::", "a"], &["homing", "run", ":::"], &[]]
        {
            assert!(refused(words).is_ok(), "{words:?}");
        }
    }
}
