//! Lists the runs of a folder, and finds one of them.

use crate::holder::Holder;
use crate::lock;
use crate::name::has_form_of_name;
use crate::order;
use crate::read::event_of;
use crate::{Counts, FILE, JournalError, RunCounts, replay};
use homing_model::event::EventKind;
use homing_model::{Event, RawText};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum RunState {
    /// The run ended by itself.
    Ended {
        /// Exit status of homing.
        exit: i32,
        /// The time of the end, ns since 1970.
        ended_ns: i64,
    },
    /// A writer holds the run, according to its lock file.
    Running {
        /// The writer.
        by: Holder,
    },
    /// The run has no last record and no writer. `homing resume` continues it.
    Interrupted,
    /// The journal cannot be read.
    Unreadable {
        /// The reason.
        reason: String,
    },
}

/// One run, as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunInfo {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub dir: PathBuf,
    /// The time of the start, ns since 1970.
    pub started_ns: Option<i64>,
    /// The state of the run.
    #[serde(flatten)]
    pub state: RunState,
    /// The numbers of its tasks by outcome.
    pub counts: RunCounts,
    /// The command line.
    pub argv: Vec<RawText>,
    /// The name that the user has given the run.
    pub label: Option<String>,
}

/// The number of runs that the error of an ambiguous name lists.
const CANDIDATES: usize = 6;

/// Returns all runs below `root`, the newest first. Noted runs are in the order in which they began, runs of older
/// versions by their dates. A folder that is no run is left out. A missing root holds no runs.
pub fn runs(root: &Path) -> Vec<RunInfo> {
    let places = order::places(root);
    let mut all: Vec<RunInfo> = folders(root).map(|(name, dir)| info(name, dir)).collect();
    let key = |run: &RunInfo| (places.get(&run.name).copied(), run.started_ns, run.name.clone());
    all.sort_by_cached_key(|run| std::cmp::Reverse(key(run)));
    all
}

/// Returns the names of the runs below `root`, in the descending order of names. Opens no journal.
pub fn names(root: &Path) -> Vec<String> {
    let mut all: Vec<String> = folders(root).map(|(name, _)| name).collect();
    all.sort_by(|a, b| b.cmp(a));
    all
}

/// Returns the folders of the runs below `root` that a writer holds. Opens no journal.
pub fn live(root: &Path) -> Vec<PathBuf> {
    folders(root).map(|(_, dir)| dir).filter(|dir| lock::living(dir).is_some()).collect()
}

/// Returns the folder of a run by its name, its path, or `last` for the run that began last. The name that a user has
/// given finds the newest run of that name. It wins over a unique prefix of a run's name, which comes last.
pub fn find(root: &Path, name: &str) -> Result<PathBuf, JournalError> {
    if name.contains('/') && Path::new(name).join(FILE).is_file() {
        return Ok(PathBuf::from(name));
    }
    let missing = || JournalError::NotFound { name: name.to_string(), root: root.to_path_buf() };
    if name == "last" {
        return newest_first(root).next().ok_or_else(missing);
    }
    let mut like: Vec<(String, PathBuf)> = folders(root).filter(|(n, _)| n.starts_with(name)).collect();
    like.sort();
    if like.first().is_some_and(|(first, _)| first == name) {
        return Ok(like.remove(0).1);
    }
    if let Some(dir) = labelled(root, name) {
        return Ok(dir);
    }
    match like.len() {
        0 => Err(missing()),
        1 => Ok(like.remove(0).1),
        _ => {
            // The newest runs first: the names begin with the time.
            let more = like.len().saturating_sub(CANDIDATES);
            let candidates = like.into_iter().rev().take(CANDIDATES).map(|(n, _)| n).collect();
            Err(JournalError::Ambiguous { name: name.to_string(), candidates, more })
        }
    }
}

/// As [`find`], except that `last` skips runs with nothing to report, which have neither a task nor an end. In `homing
/// report last --failed -0 | homing run -0 ...` both programs begin together: the new run must not be the `last` one.
pub fn find_reported(root: &Path, name: &str) -> Result<PathBuf, JournalError> {
    if name != "last" {
        return find(root, name);
    }
    newest_first(root).find(|dir| has_begun(dir)).map_or_else(|| find(root, name), Ok)
}

/// Returns the folders of the runs below `root`, that of the run that began last first. Older versions have noted no
/// order: their journals are opened only if none of the noted runs will do.
fn newest_first(root: &Path) -> impl Iterator<Item = PathBuf> {
    let places = order::places(root);
    let (mut noted, mut others): (Vec<_>, Vec<_>) = folders(root).partition(|(name, _)| places.contains_key(name));
    noted.sort_by_key(|(name, _)| std::cmp::Reverse(places.get(name).copied()));
    let others = std::iter::once_with(move || {
        others.sort_by_cached_key(|(name, dir)| {
            std::cmp::Reverse((first_event(dir).map(|event| event.at_ns), name.clone()))
        });
        others
    });
    noted.into_iter().chain(others.flatten()).map(|(_, dir)| dir)
}

/// Whether a run has begun a task, or has no writer any more.
fn has_begun(dir: &Path) -> bool {
    let Ok(mut events) = replay(dir) else { return false };
    let is_over = first_event(dir).is_some() && lock::living(dir).is_none();
    let is_begun = |what: &EventKind| {
        matches!(
            what,
            EventKind::TaskStarted { .. }
                | EventKind::TaskEnded { .. }
                | EventKind::TaskSkipped { .. }
                | EventKind::RunEnded { .. }
        )
    };
    is_over || events.any(|event| event.is_ok_and(|event| is_begun(&event.what)))
}

/// Whether the run in a folder has neither an end nor a writer. `homing resume` continues it.
pub fn is_interrupted(dir: &Path) -> bool {
    // The writer adds the end before it leaves, so this order finds one of them.
    lock::living(dir).is_none() && !matches!(last_event(dir), Some(Event { what: EventKind::RunEnded { .. }, .. }))
}

/// Returns the folder of the newest run to which the user has given this name.
pub fn labelled(root: &Path, label: &str) -> Option<PathBuf> {
    names(root).into_iter().map(|name| root.join(name)).find(|dir| label_of(dir).as_deref() == Some(label))
}

/// Whether `label` cannot be the second name of a run: it is the own name of a run below `root`, or a later run may get
/// it.
pub fn is_own_name(root: &Path, label: &str) -> bool {
    has_form_of_name(label) || root.join(label).join(FILE).is_file()
}

/// Returns the name that the user has given to the run in a folder.
pub(crate) fn label_of(dir: &Path) -> Option<String> {
    match first_event(dir)?.what {
        EventKind::RunStarted { label, .. } => label,
        _ => None,
    }
}

pub(crate) fn folders(root: &Path) -> impl Iterator<Item = (String, PathBuf)> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let dir = entry.path();
        dir.join(FILE).is_file().then_some((name, dir))
    })
}

fn info(name: String, dir: PathBuf) -> RunInfo {
    let mut info = RunInfo {
        name,
        started_ns: None,
        state: RunState::Interrupted,
        counts: RunCounts::default(),
        argv: Vec::new(),
        label: None,
        dir,
    };
    if let Some(Event { at_ns, what: EventKind::RunStarted { argv, label, .. } }) = first_event(&info.dir) {
        (info.started_ns, info.argv, info.label) = (Some(at_ns), argv, label);
    }
    if let Some(Event { at_ns, what: EventKind::RunEnded { exit, counts } }) = last_event(&info.dir) {
        info.state = RunState::Ended { exit, ended_ns: at_ns };
        info.counts = RunCounts::of_record(&counts);
        return info;
    }
    if let Some(by) = lock::living(&info.dir) {
        info.state = RunState::Running { by };
    }
    match count(&info.dir) {
        Ok(counts) => info.counts = counts,
        Err(e) => info.state = RunState::Unreadable { reason: e.to_string() },
    }
    info
}

/// Counts tasks over the whole journal.
fn count(dir: &Path) -> Result<RunCounts, JournalError> {
    let mut counts = Counts::default();
    for event in replay(dir)? {
        counts.add(&event?.what);
    }
    Ok(RunCounts::from(&counts))
}

pub(crate) fn first_event(dir: &Path) -> Option<Event> {
    let mut line = Vec::new();
    BufReader::new(File::open(dir.join(FILE)).ok()?).read_until(b'\n', &mut line).ok()?;
    event_of(line.strip_suffix(b"\n")?)
}

/// The last complete record, from the file's last 64 KiB.
fn last_event(dir: &Path) -> Option<Event> {
    let mut file = File::open(dir.join(FILE)).ok()?;
    let length = file.seek(SeekFrom::End(0)).ok()?;
    file.seek(SeekFrom::Start(length.saturating_sub(64 << 10))).ok()?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail).ok()?;
    let end = tail.iter().rposition(|b| *b == b'\n')?;
    let start = tail[..end].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    event_of(&tail[start..end])
}
