//! Why nothing was measured.

use std::fmt;

/// Why nothing was measured.
#[derive(Debug)]
pub struct BenchError {
    /// What was being done, to what, on which host, and what the system answered.
    pub message: String,
    /// The next step, where it is known.
    pub hint: Option<String>,
    /// The request is wrong; else a host or a program did not do its part.
    pub is_request: bool,
}

impl BenchError {
    /// A mistake in the request.
    pub fn request(message: impl fmt::Display) -> BenchError {
        BenchError { message: message.to_string(), hint: None, is_request: true }
    }

    /// A host or a program did not do its part.
    pub fn failed(message: impl fmt::Display) -> BenchError {
        BenchError { message: message.to_string(), hint: None, is_request: false }
    }

    /// Adds the next step.
    pub fn hint(mut self, hint: impl fmt::Display) -> BenchError {
        self.hint = Some(hint.to_string());
        self
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for BenchError {}
