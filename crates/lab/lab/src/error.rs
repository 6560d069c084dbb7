//! The errors of the lab, worded for the person who typed the command.

use std::io;
use std::path::PathBuf;

/// A failure of the lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The caller is not root.
    #[error("the lab needs root: it makes mounts, network interfaces and namespaces")]
    NotRoot,
    /// A program of the machine is missing.
    #[error("the lab needs the program {program}; install the Debian package {package}")]
    Missing {
        /// Program name.
        program: &'static str,
        /// Debian package that holds it.
        package: &'static str,
    },
    /// The request cannot be met as written.
    #[error("{0}")]
    Request(String),
    /// A lab of this name is up.
    #[error("lab {0} is up already")]
    Up(String),
    /// A state directory without running hosts, or a half-made lab.
    #[error("lab {name} was left half-made or its hosts died; run `homing lab down --name {name}` first")]
    Stale {
        /// Lab name.
        name: String,
    },
    /// No such lab.
    #[error("no lab named {0} is up")]
    Down(String),
    /// No such host in the lab.
    #[error("lab {lab} has no running host {host}; it has {known}")]
    NoHost {
        /// Lab name.
        lab: String,
        /// The host in the request.
        host: String,
        /// Hosts there are, in node-set form.
        known: String,
    },
    /// A program ran and failed.
    #[error("{doing}: `{command}` ended with {status}: {stderr}")]
    Program {
        /// The activity of the lab.
        doing: String,
        /// The command line, for reading.
        command: String,
        /// Exit status or signal.
        status: String,
        /// Its standard error.
        stderr: String,
    },
    /// The system refused something.
    #[error("{doing} {path}: {source}")]
    Io {
        /// The activity of the lab.
        doing: &'static str,
        /// The path of that activity.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A host did not come up.
    #[error("host {host} of the lab did not come up: {why}; the end of its console:\n{console}")]
    Boot {
        /// Host name.
        host: String,
        /// The missing part.
        why: String,
        /// Last lines of its console.
        console: String,
    },
    /// Something could not be removed.
    #[error("lab {name} is not completely removed: {left}")]
    Left {
        /// Lab name.
        name: String,
        /// The parts that are left.
        left: String,
    },
}

/// Result of the lab's functions.
pub type Result<T> = std::result::Result<T, LabError>;

/// Adds an activity and its path to an error.
pub trait Doing<T> {
    /// Turns an I/O error into a [`LabError::Io`].
    fn doing(self, doing: &'static str, path: impl Into<PathBuf>) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: impl Into<PathBuf>) -> Result<T> {
        self.map_err(|source| LabError::Io { doing, path: path.into(), source })
    }
}

impl<T> Doing<T> for rustix::io::Result<T> {
    fn doing(self, doing: &'static str, path: impl Into<PathBuf>) -> Result<T> {
        self.map_err(|e| LabError::Io { doing, path: path.into(), source: e.into() })
    }
}
