//! What can go wrong, for a person.

use homing_model::Failure;
use std::io;
use std::path::{Path, PathBuf};

/// Why the queue could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// The spool could not be read or written.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// The spool is not what it must be.
    #[error("{}: {what}", path.display())]
    Spool {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// No job of that id.
    #[error("Job <{0}> is not found")]
    NotFound(String),
    /// The request is wrong.
    #[error("{0}")]
    Request(String),
    /// Another program said no.
    #[error("{0}")]
    Program(String),
}

impl QueueError {
    /// Whether there was no room on a disk, or none for this user.
    pub(crate) fn is_full(&self) -> bool {
        let full = |e: &io::Error| matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        matches!(self, QueueError::Io { source, .. } if full(source))
    }
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> QueueError {
        move |source| QueueError::Io { doing, path: path.to_path_buf(), source }
    }
}

/// What it is to the user: a mistake of the request is no failure of the machine.
impl From<QueueError> for Failure {
    fn from(error: QueueError) -> Failure {
        match error {
            QueueError::NotFound(_) | QueueError::Request(_) => Failure::usage(error),
            QueueError::Program(said) => match homing_slurm::advice(&said) {
                Some(advice) => Failure::system(said).hint(advice),
                None => Failure::system(said),
            },
            other => Failure::system(other),
        }
    }
}
