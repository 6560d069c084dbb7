//! The errors of the queue, in words for people.

use homing_model::Failure;
use std::io;
use std::path::{Path, PathBuf};

/// Why the queue could not fulfil a request.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// The spool could not be read or written.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The spool is not as it must be.
    #[error("{}: {what}", path.display())]
    Spool {
        /// The folder.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// No job of that id.
    #[error("no job {0}")]
    NotFound(String),
    /// The request is wrong.
    #[error("{0}")]
    Request(String),
    /// Another program refused or failed.
    #[error("{0}")]
    Program(String),
}

impl QueueError {
    /// Whether a disk or this user's quota was full.
    pub(crate) fn is_full(&self) -> bool {
        let full = |e: &io::Error| matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        matches!(self, QueueError::Io { source, .. } if full(source))
    }
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> QueueError {
        move |source| QueueError::Io { doing, path: path.to_path_buf(), source }
    }
}

/// Maps it to the user's view: a mistake in the request is no failure of the machine.
impl From<QueueError> for Failure {
    fn from(error: QueueError) -> Failure {
        match error {
            QueueError::NotFound(_) => Failure::usage(error).hint("homing jobs -a"),
            QueueError::Request(_) => Failure::usage(error),
            QueueError::Program(said) => match homing_scheduler::slurm::advice(&said) {
                Some(advice) => Failure::system(said).hint(advice),
                None => Failure::system(said),
            },
            other => Failure::system(other),
        }
    }
}
