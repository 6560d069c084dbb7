//! The errors of a journal, with their messages for users.

use crate::holder::{Holder, Life};
use std::io;
use std::path::{Path, PathBuf};

/// Why a journal could not be written, read or found.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A system call failed.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The verb.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The disk or the quota is full. The unwritten records stay in memory: `flush` may be called again once there is
    /// space.
    #[error("no space left to write the journal {}: {source}; free some space", path.display())]
    Full {
        /// The journal.
        path: PathBuf,
        /// `ENOSPC` or `EDQUOT`.
        source: io::Error,
    },
    /// A run of this name exists already.
    #[error("a run {run} exists already in {}", root.display())]
    Exists {
        /// Its name.
        run: String,
        /// The folder of runs.
        root: PathBuf,
    },
    /// Another writer holds the journal.
    #[error("{}", held(holder, *life, lock))]
    Held {
        /// The other writer.
        holder: Box<Holder>,
        /// Whether the other writer lives. A dead process may still hold its lock.
        life: Life,
        /// The lock file.
        lock: PathBuf,
    },
    /// A record in the middle cannot be read.
    #[error("line {line} of {} is damaged: {reason}", path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        /// The message of the parser.
        reason: String,
    },
    /// The kept input of a run differs from the input that the run had read.
    #[error("{} is damaged: its length or checksum differs from the record of that input; start a new run, which \
        reads it again", copy.display())]
    DamagedInput {
        /// The copy.
        copy: PathBuf,
    },
    /// A later homing wrote the journal.
    #[error("{} has format {found}, this homing reads up to {}", path.display(), crate::FORMAT)]
    Newer {
        /// The journal.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// No run has the wanted name.
    #[error("no run {name:?} in {}; `homing runs` lists them", root.display())]
    NotFound {
        /// The wanted name.
        name: String,
        /// The folder that was searched.
        root: PathBuf,
    },
    /// The wanted name is a prefix of several names.
    #[error("{name:?} is ambiguous: {}{}", candidates.join(", "), and_more(*more))]
    Ambiguous {
        /// The wanted name.
        name: String,
        /// The newest names with this prefix.
        candidates: Vec<String>,
        /// The number of other names with this prefix.
        more: usize,
    },
    /// The name cannot be the name of a folder.
    #[error("{name:?} is not a valid name of a run: use letters, digits, `.`, `_`, `-`, and no dot at the beginning")]
    BadName {
        /// The name.
        name: String,
    },
}

fn and_more(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" and {more} more; `homing runs` lists them") }
}

fn held(holder: &Holder, life: Life, lock: &Path) -> String {
    let Holder { host, pid, .. } = holder;
    match life {
        Life::Alive => format!(
            "the run is still going on: process {pid} on {host} writes it; `homing report` shows its progress, `kill \
             -INT {pid}` on that host ends it"
        ),
        Life::Gone => format!(
            "process {pid} on {host}, which wrote the run, was killed and cannot end: it waits for a file system \
             that does not answer; once it answers, or is unmounted on that host (`umount -l`), the run can be resumed"
        ),
        Life::Unknown => {
            let lock = lock.display();
            format!(
                "the run is being written by process {pid} on {host}; if that process no longer exists, remove {lock}"
            )
        }
    }
}

impl JournalError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> JournalError {
        let path = path.to_path_buf();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => JournalError::Full { path, source },
            _ => JournalError::Io { doing, path, source },
        }
    }
}
