//! The job log of a run: the tasks that it lists already, and the lines that a run which broke off did not write.

use homing_batch::{JoblogEntry, JoblogSeen};
use homing_model::Failure;
use homing_model::event::EventKind;
use homing_model::{Event, Outcome, Task, TaskId};
use homing_os::folder::{Existing, make_file};
use homing_os::threads::lock;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The ends of tasks that are in the journal but not in the job log.
pub type Unlisted = HashMap<TaskId, JoblogEnd>;

/// The end of one task.
pub struct JoblogEnd {
    /// The line of the job log, without the command.
    entry: JoblogEntry,
    /// The slot: `{%}` of its command.
    slot: u32,
}

/// Returns the tasks that are skipped because the job log lists them, and whether each succeeded. With `failed`,
/// failed tasks are not among them.
pub fn done(path: &Path, failed: bool) -> Result<HashMap<TaskId, bool>, Failure> {
    let (path, _) = place(path);
    if !path.is_file() {
        return Ok(HashMap::new());
    }
    let log = read(&path)?;
    let well = log.succeeded();
    let skipped = if failed { well.clone() } else { log.ended() };
    Ok(skipped.into_iter().map(|task| (task, well.contains(&task))).collect())
}

fn read(path: &Path) -> Result<JoblogSeen, Failure> {
    let cannot = |why: &dyn Display| Failure::usage(format!("cannot read the job log {}: {why}", path.display()));
    // A pipe would block the read.
    if path.metadata().is_ok_and(|meta| !meta.is_file()) {
        return Err(cannot(&"it is no regular file"));
    }
    let file = File::open(path).map_err(|e| cannot(&e))?;
    homing_batch::read_joblog(BufReader::new(file)).map_err(Failure::usage)
}

/// Returns the tasks that `--retry-failed` runs: the commands in the job log, with their numbers.
pub fn failed(path: &Path) -> Result<Vec<Task>, Failure> {
    Ok(read(&place(path).0)?.failed())
}

/// Returns the path of a job log, and whether lines are added to it, as with `+FILE`.
fn place(path: &Path) -> (PathBuf, bool) {
    match path.as_os_str().as_bytes().strip_prefix(b"+") {
        Some(rest) if !rest.is_empty() => (OsStr::from_bytes(rest).into(), true),
        _ => (path.into(), false),
    }
}

/// Opens the job log for the next line. With `goes_on`, its lines stay.
pub fn open(path: &Path, goes_on: bool) -> Result<File, Failure> {
    let (path, adds) = place(path);
    let going_on = (adds || goes_on) && path.metadata().is_ok_and(|m| m.is_file() && m.len() > 0);
    let existing = if going_on { Existing::Append } else { Existing::Empty };
    let opened = make_file(&path, existing, 0o666).and_then(|mut file| {
        if going_on {
            // A line that a crash cut off would make the next one unreadable.
            let seen = homing_batch::read_joblog(BufReader::new(File::open(&path)?)).map_err(io::Error::other)?;
            file.set_len(seen.whole_bytes)?;
        } else {
            file.write_all(homing_batch::JOBLOG_HEADER.as_bytes())?;
        }
        Ok(file)
    });
    opened.map_err(|e| Failure::system(format!("cannot write the job log {}: {e}", path.display())))
}

/// Compares the journal in `dir` with the job log of its run. Ignores damage of the journal.
pub fn unlisted(path: &Path, dir: &Path) -> Result<Unlisted, Failure> {
    let (path, _) = place(path);
    let log = if path.is_file() { read(&path)? } else { JoblogSeen::default() };
    let mut ends = ends(homing_journal::replay(dir).map_err(Failure::system)?.flatten());
    ends.retain(|_, end| !log.lines.contains(&end.entry.line()));
    Ok(ends)
}

/// Returns the last end of each task.
fn ends(events: impl Iterator<Item = Event>) -> Unlisted {
    let (mut slots, mut ends) = (HashMap::new(), Unlisted::default());
    for event in events {
        match event.what {
            EventKind::TaskStarted { task, slot, .. } => drop(slots.insert(task, slot)),
            EventKind::TaskEnded { task, host, outcome, start_ns, wall_us, stdout_bytes, last: true, .. } => {
                let slot = slots.remove(&task).unwrap_or(1);
                let (seq, sent, received, command) = (task, 0, stdout_bytes, Vec::new());
                let entry = JoblogEntry { seq, host, start_ns, wall_us, sent, received, exit: 0, signal: 0, command };
                if is_listed(&outcome) {
                    ends.insert(task, JoblogEnd { entry: entry.with_outcome(&outcome), slot });
                }
            }
            _ => {}
        }
    }
    ends
}

/// Whether the job log lists this outcome. As in GNU parallel, it lists neither tasks that were killed with the run
/// nor tasks that never started. Both must run again.
pub fn is_listed(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Killed | Outcome::NotRun(_))
}

/// Writes the missing lines of a job log, as the source yields the tasks again.
pub struct Missing {
    unlisted: Mutex<Unlisted>,
    file: File,
    here: bool,
}

impl Missing {
    /// `file`: the job log; `here`: tasks run on this machine, which the job log calls `:`.
    pub fn new(unlisted: Unlisted, file: &File, here: bool) -> Result<Missing, Failure> {
        // A duplicate shares the position in the file, so neither writer overwrites the other's lines.
        let file = file.try_clone().map_err(Failure::system)?;
        Ok(Missing { unlisted: Mutex::new(unlisted), file, here })
    }

    /// Writes the line of a task that does not run again, if the job log lacks it.
    pub fn write(&self, task: &Task) -> io::Result<()> {
        let mut unlisted = lock(&self.unlisted);
        let Some(JoblogEnd { mut entry, slot }) = unlisted.remove(&task.id) else { return Ok(()) };
        let mut command = task.command.clone();
        homing_batch::fill_slot(&mut command, slot);
        entry.sent = task.stdin_bytes();
        entry.command = homing_batch::command_line(&command);
        if entry.host.is_empty() || self.here {
            entry.host = ":".into();
        }
        // A full disk is reported once.
        entry.write(&mut &self.file).inspect_err(|_| unlisted.clear())
    }
}
