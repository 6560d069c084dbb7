//! The decisions of a build whose recipes run on many hosts: which host gets
//! a recipe, which changes it must see before it starts, and what is told at
//! the end. No I/O and no clock.

mod changes;
mod evidence;
mod missing;
mod order;
mod place;
mod trace;
mod words;

pub use changes::ChangeLog;
pub use evidence::{Evidence, Ran};
pub use missing::missing_files;
pub use order::{order, room};
pub use place::{Candidate, Choice, Why, choose};
pub use trace::trace;
pub use words::{Recipe, Step, file_words, folders_named, runs_make};
