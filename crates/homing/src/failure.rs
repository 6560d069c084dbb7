//! What a user reads when a command cannot go on, and the exit status that goes with it.

use homing_lab::LabError;
use homing_model::text::shown_lines;
use std::fmt;

pub use homing_model::exit;

/// One clear line, and what to do next when that is known.
#[derive(Debug)]
pub struct Failure {
    /// What was being done, to what, on which host, and what the system answered.
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
    /// What was being done with standard output failed; that its reader is gone needs no word.
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
        // Messages quote names of files and hosts, and what other programs answered.
        write!(f, "homing: {}", shown_lines(&self.message))?;
        match &self.hint {
            Some(hint) => write!(f, "\n  try: {}", shown_lines(hint)),
            None => Ok(()),
        }
    }
}

/// Mistakes of the caller end with another status than failures of the machine.
impl From<LabError> for Failure {
    fn from(e: LabError) -> Failure {
        match &e {
            LabError::Down(name) => {
                let up: Vec<String> = homing_lab::names().into_iter().filter(|name| homing_lab::is_up(name)).collect();
                match up.as_slice() {
                    [] => Failure::usage(&e).hint(format!("homing lab up --name {name}")),
                    up => Failure::usage(format!("{e}; up: {}", up.join(", "))),
                }
            }
            LabError::NotRoot => Failure::usage(&e).hint("sudo homing lab ..."),
            LabError::Up(name) => {
                let failure = Failure::usage(&e);
                failure.hint(format!("homing lab status --name {name}"))
            }
            LabError::Request(_) | LabError::NoHost { .. } | LabError::Stale { .. } => Failure::usage(e),
            _ => Failure::system(e),
        }
    }
}
