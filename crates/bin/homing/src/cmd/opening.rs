//! The first record of a journal.

pub use homing_dispatch::source::environment::hostname;
use homing_model::RawText;
use homing_model::event::EventKind;
use std::ffi::OsString;
use std::path::Path;

/// Returns the first record of a run: its name, its words, and the process that runs it.
pub fn opening(run: &str, words: Vec<OsString>, cwd: &Path, tasks: Option<u64>, label: Option<&str>) -> EventKind {
    EventKind::RunStarted {
        v: homing_journal::FORMAT,
        run: run.into(),
        argv: words.into_iter().map(RawText::from).collect(),
        cwd: cwd.into(),
        host: hostname(),
        pid: std::process::id(),
        tasks,
        label: label.map(String::from),
    }
}
