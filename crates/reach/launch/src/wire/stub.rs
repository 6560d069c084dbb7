//! Messages between the coordinator of a build and a stub, which make starts in place of a recipe. They travel over a
//! socket between processes of the same user on one host, framed like all messages.

use crate::wire::OutputStream;
use homing_model::{Outcome, RawText};
use serde::{Deserialize, Serialize};

/// A recipe's place in its build, by the absolute names of make's targets. The default: nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipePosition {
    /// Its target; the lines of the recipe run one after the other.
    pub target: Option<RawText>,
    /// The targets of the outer makes, whose recipes run the make of this recipe.
    pub within: Vec<RawText>,
    /// Targets that have to be made before it.
    pub needs: Vec<RawText>,
    /// There are more such targets than listed: it may have waited for all that had ended.
    pub more: bool,
}

/// Messages from the stub.
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
        /// Its place in the build, from make.
        part: RecipePosition,
    },
    /// The stub received this signal: the recipe is to end.
    Signal(i32),
}

/// Messages to the stub.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToStub {
    /// Output of the recipe.
    Output {
        /// Which stream.
        stream: OutputStream,
        /// At most `CHUNK` bytes.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// It ended, and this host sees the files that it wrote.
    Done(Outcome),
    /// It has to run on the host of the stub.
    Here,
    /// It could not be run, or this host cannot see the files that it wrote. The reason, for people.
    Failed(String),
}
