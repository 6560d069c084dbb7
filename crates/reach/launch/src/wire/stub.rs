//! Messages between a recipe's stand-in, which make starts, and the
//! coordinator of the build, over a socket of the same user on one host.
//! Framed as all else.

use crate::wire::Stream;
use homing_model::{Outcome, RawText};
use serde::{Deserialize, Serialize};

/// A recipe's place in its build, by the names of make's targets; absolute. The default is that nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its target, one line of the recipe after the other.
    pub target: Option<RawText>,
    /// Targets whose recipes are the makes that it is a recipe of.
    pub within: Vec<RawText>,
    /// What has to be made before.
    pub needs: Vec<RawText>,
    /// There is more of that than is told of: it may have waited for all that had ended.
    pub more: bool,
}

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
        /// What make knows of it.
        part: Part,
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
