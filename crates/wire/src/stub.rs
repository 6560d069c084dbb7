//! Messages between a recipe's stand-in, which make starts, and the
//! coordinator of the build, over a socket of the same user on one host.
//! Framed as all else.

use crate::Stream;
use homing_model::{Outcome, RawText};
use serde::{Deserialize, Serialize};

/// From the stand-in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FromStub {
    /// First message: the recipe.
    Recipe {
        /// Program and arguments.
        words: Vec<RawText>,
        /// Working directory.
        cwd: RawText,
        /// The whole environment.
        env: Vec<(RawText, RawText)>,
    },
    /// A signal came: the recipe is to end.
    Signal(i32),
}

/// To the stand-in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToStub {
    /// What the recipe prints.
    Output {
        /// Which stream.
        stream: Stream,
        /// At most `CHUNK` bytes.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// It ended, and this host sees what it wrote.
    Done(Outcome),
    /// It has to run where the stand-in is.
    Here,
    /// It could not be run, or what it wrote is not to be seen: why, for people.
    Failed(String),
}
