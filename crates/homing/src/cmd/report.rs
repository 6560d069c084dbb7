//! `homing report`: the evidence of a run, as lines, as JSON, as a page.

use super::runs::to_stdout;
use crate::failure::Failure;
use crate::progress::has_colors;
use homing_journal::JournalError;
use homing_model::Event;
use homing_report::Tally;
use std::path::PathBuf;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    /// The run: its name, the beginning of its name, or `last`
    #[arg(value_name = "RUN")]
    run: String,
    /// Draw it into one self-contained HTML file; `-` for standard output
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print the evidence as JSON
    #[arg(long)]
    json: bool,
}

/// Reads the journal and reports.
pub fn run(args: Args) -> Result<i32, Failure> {
    let dir = homing_journal::find(&homing_journal::root(), &args.run).map_err(refused)?;
    let mut tally = Tally::new();
    let mut kept: Vec<Event> = Vec::new();
    for event in homing_journal::replay(&dir).map_err(Failure::system)? {
        match event {
            Ok(event) => {
                tally.add(&event);
                if args.html.is_some() {
                    kept.push(event);
                }
            }
            // The rest of the evidence is still worth reading.
            Err(damage @ JournalError::Damaged { .. }) => eprintln!("homing: {damage}; the line is left out"),
            Err(e) => return Err(Failure::system(e)),
        }
    }
    if let Some(file) = &args.html {
        let page = homing_report::html(&kept);
        if file.as_os_str() == "-" {
            return to_stdout(&page);
        }
        std::fs::write(file, page).map_err(|e| Failure::system(format!("cannot write {}: {e}", file.display())))?;
    }
    if args.json {
        return to_stdout(&(serde_json::to_string_pretty(&tally.json()).map_err(Failure::system)? + "\n"));
    }
    evidence(&tally)
}

/// Prints the evidence for people.
pub(super) fn evidence(tally: &Tally) -> Result<i32, Failure> {
    to_stdout(&tally.text(has_colors(std::io::stdout())))
}

pub(super) fn refused(error: JournalError) -> Failure {
    match error {
        JournalError::NotFound { .. } | JournalError::Ambiguous { .. } => Failure::usage(error),
        other => Failure::system(other),
    }
}
