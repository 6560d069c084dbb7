//! The error that a user reads when a command cannot go on, with its exit status.

use crate::exit;
use crate::text::shown_lines;
use std::fmt;

/// One clear line, and the next step if it is known.
#[derive(Debug)]
pub struct Failure {
    /// The failed action, its object and host, and the system's answer.
    pub message: String,
    /// The next step.
    pub hint: Option<String>,
    /// Exit status.
    pub status: i32,
}

impl Failure {
    /// A mistake in the request.
    pub fn usage(message: impl fmt::Display) -> Self {
        Failure { message: message.to_string(), hint: None, status: exit::USAGE }
    }
    /// Something outside of homing failed.
    pub fn system(message: impl fmt::Display) -> Self {
        Failure { message: message.to_string(), hint: None, status: exit::SYSTEM }
    }
    /// Writing to standard output failed during `doing`. If its reader is gone, the message is empty.
    pub fn unwritten(doing: &str, error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure { message: String::new(), hint: None, status: exit::UNREAD },
            _ => Failure::system(format!("{doing}: {error}")),
        }
    }
    /// Adds the next step.
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        // Messages quote names of files and hosts, and answers of other programs.
        write!(f, "homing: {}", shown_lines(&self.message))?;
        match &self.hint {
            Some(hint) => write!(f, "\n  try: {}", shown_lines(hint)),
            None => Ok(()),
        }
    }
}
