//! The journal of a run: one folder, one file of JSON lines, one writer.
//!
//! Resume, report and every list of runs read it; nothing else remembers a
//! run. A plain file rather than a database, since cluster homes lie on
//! network file systems, where shared memory maps and SQLite's locks lose
//! data. It can be read with `less` and `jq`, followed with `tail -f`, and a
//! cut at any byte costs the torn last line and no more.
//!
//! Main types: [`Journal`] appends, [`Replay`] reads, [`RunInfo`] is a line of the list of runs.
//!
//! It does not: interpret events (`report`, `account`), or decide what runs again (`dispatch`).

mod counts;
mod environment;
mod error;
mod holder;
mod kept;
pub mod lessons;
mod list;
mod lock;
mod name;
mod order;
mod prune;
mod ran;
mod read;
mod seal;
mod unbegun;
mod write;

pub use counts::Counts;
pub use environment::differing;
pub use error::JournalError;
pub use holder::{Holder, Life};
pub use kept::{Keeping, Kept, forget, kept};
pub use list::{RunInfo, RunState, find, live, names, runs};
pub use name::{root, root_note};
pub use prune::{PRUNED, Pruned, clock_doubt, prune};
pub use ran::ran;
pub use read::{Replay, replay};
pub use unbegun::Unbegun;
pub use write::Journal;

use std::time::Duration;

/// Version of the records, `v` of `run_started`. Added fields and kinds do not raise it.
pub const FORMAT: u32 = 1;

/// Whoever follows a journal looks at it so often: people see no more. A writer that nothing else makes write does so
/// as often.
pub const FOLLOWED_EVERY: Duration = Duration::from_millis(500);

/// The journal's file in the folder of a run.
pub const FILE: &str = "journal.jsonl";
