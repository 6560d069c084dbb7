//! Reads the journal of a run: its evidence, its failed tasks, and the command line that both refer to.

use super::runs::to_stdout;
use crate::progress::{columns, has_colors};
use homing_journal::JournalError;
use homing_model::fit::wrapped;
use homing_model::{Event, Failure, RawText};
use homing_report::{Failures, RunUsage, Tally};
use std::path::{Path, PathBuf};

/// How a run began, and the folder that keeps it.
#[derive(Default)]
pub struct Opening {
    pub dir: PathBuf,
    pub argv: Vec<RawText>,
    pub cwd: PathBuf,
}

/// The content of a journal.
pub struct JournalContent {
    /// The run's own name.
    pub name: String,
    pub opening: Opening,
    pub tally: Tally,
    pub failures: Failures,
    pub usage: RunUsage,
    /// All events, if the caller wants them.
    pub kept: Vec<Event>,
}

/// Returns the folder of a run that has something to report, and the run's own name.
pub fn found(run: &str) -> Result<(PathBuf, String), Failure> {
    let dir = homing_journal::find_reported(&homing_journal::root(), run).map_err(refused)?;
    let name = dir.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    Ok((dir, name))
}

/// Reads the journal of a run. `keep`: keep all events, too. `count`: add up the resources that it used.
pub fn read(run: &str, keep: bool, count: bool) -> Result<JournalContent, Failure> {
    read_found(found(run)?, keep, count, |_| ())
}

/// As [`read`], of a run that [`found`] has returned. Passes on each event to `also`.
pub fn read_found(
    (dir, name): (PathBuf, String),
    keep: bool,
    count: bool,
    mut also: impl FnMut(&Event),
) -> Result<JournalContent, Failure> {
    // The order matters: a run that ends between the two looks has its end in the journal.
    let interrupted = homing_journal::is_interrupted(&dir);
    let (mut tally, mut usage, mut kept) = (Tally::new(), RunUsage::new(&name, i64::MIN), Vec::new());
    let (mut opening, mut failures) = (Opening { dir: dir.clone(), ..Opening::default() }, Failures::default());
    events(&dir, |event| {
        if let homing_model::event::EventKind::RunStarted { argv, cwd, .. } = &event.what {
            (opening.argv, opening.cwd) = (argv.clone(), cwd.to_path());
        }
        tally.add(&event);
        failures.add(&event);
        also(&event);
        if count {
            usage.add(&event);
        }
        if keep {
            kept.push(event);
        }
    })?;
    if interrupted && !tally.is_over() {
        tally.interrupt();
    }
    Ok(JournalContent { name, opening, tally, failures, usage, kept })
}

/// Passes on each event of a journal that can be read.
fn events(dir: &Path, mut take: impl FnMut(Event)) -> Result<(), Failure> {
    for event in homing_journal::replay(dir).map_err(Failure::system)? {
        match event {
            Ok(event) => take(event),
            // The rest of the evidence is still useful.
            Err(damage @ JournalError::Damaged { .. }) => eprintln!("homing: {damage}; this line is left out"),
            Err(e) => return Err(Failure::system(e)),
        }
    }
    Ok(())
}

/// Prints the name of a run, and the command that shows more of it.
pub fn tell_run(name: &str) {
    eprintln!("run {name}: homing report {name}");
}

/// Prints the evidence for people.
pub fn evidence(tally: &Tally) -> Result<i32, Failure> {
    to_stdout(&wrapped(&tally.text(has_colors(std::io::stdout())), columns()))
}

pub fn refused(error: JournalError) -> Failure {
    match error {
        JournalError::NotFound { .. } | JournalError::Ambiguous { .. } => Failure::usage(error),
        other => Failure::system(other),
    }
}
